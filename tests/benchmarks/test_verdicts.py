"""Every branch of the verdicts, on numbers whose intervals were worked out by hand."""

import json

import pytest

from benchmarks import published, verdicts

# Student's t at 0.975, from a printed table: 4.3027 for 2 degrees of freedom, 3.1824 for 3.
TABLE = {
    "table": "made_up",
    "paper": "A paper",
    "place": "Table 1",
    "task": "nothing",
    "setting": "small",
    "baseline": "softmax",
    "metrics": [
        {"name": "loss@1x", "direction": "lower", "unit": "nats"},
        {"name": "loss@2x", "direction": "lower", "unit": "nats"},
        {"name": "sink", "direction": "lower", "unit": "%"},
    ],
    "derived": [
        {"name": "rise@2x", "of": ["loss@2x", "loss@1x"], "op": "difference"},
        {"name": "growth@2x", "of": ["loss@2x", "loss@1x"], "op": "ratio"},
    ],
    "rows": [
        {"row": "softmax", "label": "Softmax", "values": {"loss@1x": 3.0, "loss@2x": 4.5}},
        {"row": "lssa", "label": "LSSA", "values": {"loss@1x": 2.5, "loss@2x": 4.0, "sink": 5.5}},
        {"row": "exp", "label": "exp", "values": {"loss@1x": 3.0, "loss@2x": 4.6}},
    ],
}
SOFTMAX = [1.0, 1.5, 2.0]


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "made_up.json"
    path.write_text(json.dumps(TABLE))
    return published.load(path)


def runs(metric="loss@1x", **rows):
    """Give the values of rows seeds 0, 1, 2 and so on."""
    return {row: {i: {metric: x} for i, x in enumerate(xs)} for row, xs in rows.items()}


def differing(*differences, row="lssa"):
    """Return values of a row that differ so from softmax, whose own values scatter far more."""
    values = [a + b for a, b in zip(SOFTMAX, differences, strict=True)]
    return runs(softmax=SOFTMAX, **{row: values})


def test_the_papers_sign_with_an_interval_that_excludes_zero(table):
    judged = verdicts.verdict(table, "lssa", "loss@1x", differing(-0.21, -0.20, -0.19))
    assert judged.outcome == "reproduced"
    # standard deviation 0.01, half-width 4.3027 * 0.01 / sqrt(3)
    assert judged.interval == pytest.approx((-0.2, -0.22484, -0.17516), abs=1e-5)
    assert judged.reason == (
        "same sign: ours -0.2 [-0.2248, -0.1752] over 3 seeds, the paper's -0.5"
    )


def test_the_other_sign(table):
    judged = verdicts.verdict(table, "lssa", "loss@1x", differing(0.19, 0.20, 0.21))
    assert judged.outcome == "not reproduced"
    assert judged.reason.startswith("opposite: ours +0.2 [+0.1752, +0.2248]")


def test_an_interval_that_includes_zero(table):
    judged = verdicts.verdict(table, "lssa", "loss@1x", differing(-0.3, -0.2, -0.1))
    assert judged.outcome == "not reproduced"
    assert judged.reason.startswith("no difference shown")
    # standard deviation 0.1, half-width 4.3027 * 0.1 / sqrt(3)
    assert judged.interval == pytest.approx((-0.2, -0.44841, 0.04841), abs=1e-5)


def test_a_fourth_seed_can_decide(table):
    ours = runs(softmax=[1.0] * 4, lssa=[0.7, 0.8, 0.9, 0.8])
    judged = verdicts.verdict(table, "lssa", "loss@1x", ours)
    # standard deviation sqrt(0.02 / 3), half-width 3.1824 * 0.081650 / 2
    assert judged.interval == pytest.approx((-0.2, -0.32992, -0.07008), abs=1e-5)
    assert judged.outcome == "reproduced"


def test_pairs_are_of_one_seed_whatever_their_order(table):
    softmax, lssa = {7: 1.0, 8: 1.5, 9: 2.0, 3: 50.0}, {9: 1.81, 5: -50.0, 7: 0.79, 8: 1.3}
    ours = {
        "softmax": {seed: {"loss@1x": x} for seed, x in softmax.items()},
        "lssa": {seed: {"loss@1x": x} for seed, x in lssa.items()},
    }
    judged = verdicts.verdict(table, "lssa", "loss@1x", ours)
    assert judged.interval == pytest.approx((-0.2, -0.22484, -0.17516), abs=1e-5)


@pytest.mark.parametrize(
    ("differences", "outcome", "reason"),
    [
        ((-0.02, 0.0, 0.02), "reproduced", "no difference in either"),
        ((0.0, 0.0, 0.0), "reproduced", "no difference in either"),  # one function, two names
        ((0.19, 0.20, 0.21), "not reproduced", "a difference where the paper shows none"),
    ],
)
def test_where_the_paper_shows_no_difference(table, differences, outcome, reason):
    judged = verdicts.verdict(table, "exp", "loss@1x", differing(*differences, row="exp"))
    assert (judged.outcome, judged.reason.split(":")[0]) == (outcome, reason)


def test_one_unit_of_the_last_digit_is_a_difference_but_not_of_a_rise(table):
    # 4.6 and 4.5 cannot have been equal; of 4.6 - 3.0 and 4.5 - 3.0, four roundings are in the way
    ours = {
        "softmax": {i: {"loss@1x": x, "loss@2x": x + 1} for i, x in enumerate(SOFTMAX)},
        "exp": {i: {"loss@1x": x, "loss@2x": x + 1.25} for i, x in enumerate(SOFTMAX)},
    }
    assert verdicts.verdict(table, "exp", "loss@2x", ours).outcome == "reproduced"
    judged = verdicts.verdict(table, "exp", "rise@2x", ours)
    assert judged.outcome == "not reproduced"
    assert judged.reason.startswith("a difference where the paper shows none")


def test_derived_metrics_of_ours_are_derived_seed_by_seed(table):
    lssa = {0: (1.0, 1.5), 1: (1.1, 1.7), 2: (1.2, 1.6)}
    ours = {
        "softmax": {seed: {"loss@1x": 1.0, "loss@2x": 2.0} for seed in range(4)},
        "lssa": {seed: {"loss@1x": x, "loss@2x": y} for seed, (x, y) in lssa.items()}
        | {3: {"loss@1x": 9.0}},
    }
    rise = verdicts.verdict(table, "lssa", "rise@2x", ours)
    # rises 0.5, 0.6, 0.4 less 1: half-width 4.3027 * 0.1 / sqrt(3); the paper's are both 1.5
    assert rise.interval == pytest.approx((-0.5, -0.74841, -0.25159), abs=1e-5)
    assert rise.reason.startswith("a difference where the paper shows none")
    growth = verdicts.verdict(table, "lssa", "growth@2x", ours)
    # 1.5, 1.7 / 1.1, 1.6 / 1.2 less 2; the paper's are 1.6 and 1.5
    ratios = [-0.5, 1.7 / 1.1 - 2, 1.6 / 1.2 - 2]
    assert growth.interval[0] == pytest.approx(sum(ratios) / 3)
    assert growth.outcome == "not reproduced"
    assert growth.reason.startswith("opposite")
    assert growth.reason.endswith("the paper's +0.1")


@pytest.mark.parametrize(
    ("ours", "reason"),
    [
        ({}, "no run of ours"),
        (runs(softmax=SOFTMAX), "no run of ours"),
        (runs("loss@2x", softmax=SOFTMAX, lssa=SOFTMAX), "no run of ours"),
        (runs(lssa=SOFTMAX), "no run of the baseline softmax"),
        (
            {"softmax": {0: {"loss@1x": 1.0}}, "lssa": {1: {"loss@1x": 1.0}}},
            "no common seed; an interval needs 3",
        ),
        (runs(softmax=SOFTMAX, lssa=[1.0]), "one seed; an interval needs 3"),
        (runs(softmax=SOFTMAX, lssa=[1.0, 1.0]), "2 seeds; an interval needs 3"),
        (
            runs(softmax=SOFTMAX, lssa=[1.0, float("nan"), 1.0]),
            "not finite in seed 1: no interval",
        ),
    ],
)
def test_what_was_not_run(table, ours, reason):
    judged = verdicts.verdict(table, "lssa", "loss@1x", ours)
    assert (judged.outcome, judged.reason, judged.interval) == ("not run", reason, None)


def test_the_baseline_is_not_compared_at_another_scale(table):
    judged = verdicts.verdict(table, "softmax", "loss@1x", runs(softmax=SOFTMAX))
    assert judged.outcome == "not run"
    assert judged.reason == "absolute values are not comparable at this scale"


def test_a_number_whose_baseline_is_not_printed_has_no_difference(table):
    ours = runs("sink", softmax=SOFTMAX, lssa=SOFTMAX)
    judged = verdicts.verdict(table, "lssa", "sink", ours)
    assert judged.outcome == "not run"
    assert judged.reason == "the paper prints no number of the baseline softmax"


@pytest.mark.parametrize("row", ["softmax", "exp"])
@pytest.mark.parametrize(
    ("values", "outcome", "reason"),
    [
        # half-widths 4.3027 * 0.1 / sqrt(3) = 0.2484: 2.95 +- 0.2484 and 3.4 +- 0.2484
        ([2.85, 2.95, 3.05], "reproduced", "in our interval: ours 2.95 [2.702, 3.198]"),
        ([3.3, 3.4, 3.5], "not reproduced", "outside our interval: ours 3.4 [3.152, 3.648]"),
        # 3.0 stands for 2.95 to 3.05
        ([3.04, 3.04, 3.04], "reproduced", "in our interval"),
        ([3.06, 3.06, 3.06], "not reproduced", "outside our interval"),
    ],
)
def test_at_the_papers_scale_values_are_compared(table, row, values, outcome, reason):
    judged = verdicts.verdict(table, row, "loss@1x", runs(**{row: values}), same_scale=True)
    assert judged.outcome == outcome
    assert judged.reason.startswith(reason)
    assert judged.reason.endswith("over 3 seeds, the paper's 3.0")


def test_at_the_papers_scale_too_an_interval_needs_three_seeds(table):
    judged = verdicts.verdict(
        table, "softmax", "loss@1x", runs(softmax=[3.0, 3.0]), same_scale=True
    )
    assert (judged.outcome, judged.reason) == ("not run", "2 seeds; an interval needs 3")


def test_what_the_table_lacks_is_refused(table):
    with pytest.raises(ValueError, match="no sink of exp in made_up: the paper prints none"):
        verdicts.verdict(table, "exp", "sink", {})
    with pytest.raises(ValueError, match="no row 'lssar p=15' in made_up"):
        verdicts.verdict(table, "lssar p=15", "loss@1x", {})
    with pytest.raises(ValueError, match="no metric 'loss@4x' in made_up"):
        verdicts.verdict(table, "lssa", "loss@4x", {})


def test_verdicts_are_on_every_number_once(table):
    judged = verdicts.verdicts(table, differing(-0.21, -0.20, -0.19))
    assert [(v.row, v.metric) for v in judged] == [
        *(("softmax", m) for m in ("loss@1x", "loss@2x", "rise@2x", "growth@2x")),
        *(("lssa", m) for m in ("loss@1x", "loss@2x", "sink", "rise@2x", "growth@2x")),
        *(("exp", m) for m in ("loss@1x", "loss@2x", "rise@2x", "growth@2x")),
    ]
    assert [v.metric for v in judged if v.outcome == "reproduced"] == ["loss@1x"]


def test_every_published_number_can_be_judged():
    for table in published.tables():
        judged = verdicts.verdicts(table, {})
        assert judged
        assert {v.outcome for v in judged} == {"not run"}
