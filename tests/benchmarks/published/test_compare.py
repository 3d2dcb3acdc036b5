"""Every branch of the verdicts, on numbers whose intervals were worked out by hand."""

import json
from decimal import Decimal

import pytest

from benchmarks.published import compare, tables

# Student's t at 0.975, from a printed table: 4.3027 for 2 degrees of freedom, 3.1824 for 3.
TABLE = {
    "table": "made_up",
    "paper": "A paper",
    "place": "Table 1",
    "study": "nothing",
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
    return tables.load(path)


def runs(metric="loss@1x", **rows):
    """Give the values of rows seeds 0, 1, 2 and so on."""
    return {row: {i: {metric: x} for i, x in enumerate(xs)} for row, xs in rows.items()}


def differing(*differences, row="lssa"):
    """Return values of a row that differ so from softmax, whose own values scatter far more."""
    values = [a + b for a, b in zip(SOFTMAX, differences, strict=True)]
    return runs(softmax=SOFTMAX, **{row: values})


def test_the_papers_sign_with_an_interval_that_excludes_zero(table):
    judged = compare.verdict(table, "lssa", "loss@1x", differing(-0.21, -0.20, -0.19))
    assert judged.outcome == "same direction"
    # standard deviation 0.01, half-width 4.3027 * 0.01 / sqrt(3)
    assert judged.interval == pytest.approx((-0.2, -0.22484, -0.17516), abs=1e-5)
    assert judged.reason == "ours -0.2 [-0.2248, -0.1752] over 3 seeds, the paper's -0.5"


def test_the_other_sign(table):
    judged = compare.verdict(table, "lssa", "loss@1x", differing(0.19, 0.20, 0.21))
    assert judged.outcome == "contradicted"
    assert judged.reason.startswith("ours +0.2 [+0.1752, +0.2248]")


def test_an_interval_that_includes_zero(table):
    judged = compare.verdict(table, "lssa", "loss@1x", differing(-0.3, -0.2, -0.1))
    assert judged.outcome == "inconclusive"
    # standard deviation 0.1, half-width 4.3027 * 0.1 / sqrt(3)
    assert judged.interval == pytest.approx((-0.2, -0.44841, 0.04841), abs=1e-5)


def test_a_fourth_seed_can_decide(table):
    ours = runs(softmax=[1.0] * 4, lssa=[0.7, 0.8, 0.9, 0.8])
    judged = compare.verdict(table, "lssa", "loss@1x", ours)
    # standard deviation sqrt(0.02 / 3), half-width 3.1824 * 0.081650 / 2
    assert judged.interval == pytest.approx((-0.2, -0.32992, -0.07008), abs=1e-5)
    assert judged.outcome == "same direction"


def test_pairs_are_of_one_seed_whatever_their_order(table):
    softmax, lssa = {7: 1.0, 8: 1.5, 9: 2.0, 3: 50.0}, {9: 1.81, 5: -50.0, 7: 0.79, 8: 1.3}
    ours = {
        "softmax": {seed: {"loss@1x": x} for seed, x in softmax.items()},
        "lssa": {seed: {"loss@1x": x} for seed, x in lssa.items()},
    }
    judged = compare.verdict(table, "lssa", "loss@1x", ours)
    assert judged.interval == pytest.approx((-0.2, -0.22484, -0.17516), abs=1e-5)


@pytest.mark.parametrize(
    ("differences", "outcome"),
    [
        # The column's only difference is 0.5, so the margin is 0.25.
        ((-0.02, 0.0, 0.02), "equivalent"),
        ((0.0, 0.0, 0.0), "equivalent"),  # one function, two names
        ((0.19, 0.20, 0.21), "equivalent"),  # a difference, but a small one
        ((-0.2, 0.0, 0.2), "inconclusive"),  # half-width 4.3027 * 0.2 / sqrt(3) = 0.497
        ((0.25, 0.26, 0.27), "inconclusive"),  # 0.26 +- 0.025
        ((0.29, 0.30, 0.31), "contradicted"),  # 0.30 +- 0.025
        ((-0.31, -0.30, -0.29), "contradicted"),
    ],
)
def test_where_the_paper_shows_no_difference(table, differences, outcome):
    judged = compare.verdict(table, "exp", "loss@1x", differing(*differences, row="exp"))
    assert judged.outcome == outcome
    assert judged.reason.endswith("the paper's +0.0; within 0.25 is no difference")


def test_a_margin_is_stated_or_half_of_the_smallest_difference_shown(tmp_path):
    def margin(metric, **change):
        path = tmp_path / "made_up.json"
        path.write_text(json.dumps(TABLE | change))
        made = tables.load(path)
        return made.margin(made.metric(metric))

    assert margin("loss@2x") == pytest.approx(Decimal("0.05")), "of 0.5 and 0.1, the smaller's half"
    assert margin("sink") is None, "nothing to compare with"
    stated = [metric | {"margin": 0.03} for metric in TABLE["metrics"]]
    assert margin("loss@2x", metrics=stated) == Decimal("0.03")
    equal = [{"row": "exp", "metric": "loss@2x", "words": "a negligible change"}]
    assert margin("loss@2x", equal=equal) == Decimal("0.25"), "what is called equal is none"
    with pytest.raises(ValueError, match="margin of loss@1x must be a positive number"):
        margin("sink", metrics=[metric | {"margin": 0} for metric in TABLE["metrics"]])
    with pytest.raises(ValueError, match="no row 'relu'"):
        margin("sink", equal=[equal[0] | {"row": "relu"}])


def test_what_the_paper_calls_equal_is_judged_so_whatever_its_digits(tmp_path):
    ours = differing(-0.02, 0.0, 0.02, row="softmax_neg")
    judged = compare.verdict(tables.get("lssar_table_a4"), "softmax_neg", "loss@1x", ours)
    # Half of 3.1954 - 3.1911; the half-width of ours is 0.0497.
    assert judged.outcome == "inconclusive"
    assert judged.reason.endswith("the paper's +0.0004; within 0.00215 is no difference")


def test_without_a_margin_nothing_is_equivalent(tmp_path):
    path = tmp_path / "made_up.json"
    path.write_text(json.dumps(TABLE | {"rows": [TABLE["rows"][0], TABLE["rows"][2]]}))
    ours = differing(0.0, 0.0, 0.0, row="exp")
    judged = compare.verdict(tables.load(path), "exp", "loss@1x", ours)
    assert (judged.outcome, judged.reason.split("; ")[1]) == ("inconclusive", "no margin is known")


def test_one_unit_of_the_last_digit_is_a_difference_but_not_of_a_rise(table):
    # 4.6 and 4.5 cannot have been equal; of 4.6 - 3.0 and 4.5 - 3.0, four roundings are in the way
    ours = {
        "softmax": {i: {"loss@1x": x, "loss@2x": x + 1} for i, x in enumerate(SOFTMAX)},
        "exp": {i: {"loss@1x": x, "loss@2x": x + 1.25} for i, x in enumerate(SOFTMAX)},
    }
    assert compare.verdict(table, "exp", "loss@2x", ours).outcome == "same direction"
    judged = compare.verdict(table, "exp", "rise@2x", ours)
    assert judged.outcome == "inconclusive"
    assert judged.reason.endswith("no margin is known"), "no rise of the table differs"


def test_derived_metrics_of_ours_are_derived_seed_by_seed(table):
    lssa = {0: (1.0, 1.5), 1: (1.1, 1.7), 2: (1.2, 1.6)}
    ours = {
        "softmax": {seed: {"loss@1x": 1.0, "loss@2x": 2.0} for seed in range(4)},
        "lssa": {seed: {"loss@1x": x, "loss@2x": y} for seed, (x, y) in lssa.items()}
        | {3: {"loss@1x": 9.0}},
    }
    rise = compare.verdict(table, "lssa", "rise@2x", ours)
    # rises 0.5, 0.6, 0.4 less 1: half-width 4.3027 * 0.1 / sqrt(3); the paper's are both 1.5
    assert rise.interval == pytest.approx((-0.5, -0.74841, -0.25159), abs=1e-5)
    assert rise.outcome == "inconclusive"
    growth = compare.verdict(table, "lssa", "growth@2x", ours)
    # 1.5, 1.7 / 1.1, 1.6 / 1.2 less 2; the paper's are 1.6 and 1.5
    ratios = [-0.5, 1.7 / 1.1 - 2, 1.6 / 1.2 - 2]
    assert growth.interval[0] == pytest.approx(sum(ratios) / 3)
    assert growth.outcome == "contradicted"
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
    judged = compare.verdict(table, "lssa", "loss@1x", ours)
    assert (judged.outcome, judged.reason, judged.interval) == ("not run", reason, None)


def test_the_baseline_is_not_compared_at_another_scale(table):
    judged = compare.verdict(table, "softmax", "loss@1x", runs(softmax=SOFTMAX))
    assert judged.outcome == "not run"
    assert judged.reason == "absolute values of another size or machine are not compared"


def test_a_number_whose_baseline_is_not_printed_has_no_difference(table):
    ours = runs("sink", softmax=SOFTMAX, lssa=SOFTMAX)
    judged = compare.verdict(table, "lssa", "sink", ours)
    assert judged.outcome == "not run"
    assert judged.reason == "the paper prints no number of the baseline softmax"


@pytest.mark.parametrize("row", ["softmax", "exp"])
@pytest.mark.parametrize(
    ("values", "outcome", "reason"),
    [
        # The margin is 0.25, and 0.05 as 3.0 stands for 2.95 to 3.05.
        # half-width 4.3027 * 0.1 / sqrt(3) = 0.2484
        ([2.85, 2.95, 3.05], "equivalent", "ours 2.95 [2.702, 3.198]"),
        ([2.95, 3.05, 3.15], "equivalent", "ours 3.05 [2.802, 3.298]"),
        ([3.0, 3.1, 3.2], "inconclusive", "ours 3.1 [2.852, 3.348]"),
        ([3.5, 3.6, 3.7], "contradicted", "ours 3.6 [3.352, 3.848]"),
        ([3.29, 3.29, 3.29], "equivalent", "ours 3.29"),
        ([3.31, 3.31, 3.31], "contradicted", "ours 3.31"),
    ],
)
def test_at_the_papers_scale_values_are_compared(table, row, values, outcome, reason):
    judged = compare.verdict(table, row, "loss@1x", runs(**{row: values}), same_scale=True)
    assert judged.outcome == outcome
    assert judged.reason.startswith(reason)
    assert judged.reason.endswith("over 3 seeds, the paper's 3.0; within 0.3 is the paper's value")


def test_at_the_papers_scale_too_an_interval_needs_three_seeds(table):
    judged = compare.verdict(table, "softmax", "loss@1x", runs(softmax=[3.0, 3.0]), same_scale=True)
    assert (judged.outcome, judged.reason) == ("not run", "2 seeds; an interval needs 3")


def test_what_the_table_lacks_is_refused(table):
    with pytest.raises(ValueError, match="no sink of exp in made_up: the paper prints none"):
        compare.verdict(table, "exp", "sink", {})
    with pytest.raises(ValueError, match="no row 'lssar p=15' in made_up"):
        compare.verdict(table, "lssar p=15", "loss@1x", {})
    with pytest.raises(ValueError, match="no metric 'loss@4x' in made_up"):
        compare.verdict(table, "lssa", "loss@4x", {})


def test_verdicts_are_on_every_number_once(table):
    judged = compare.verdicts(table, differing(-0.21, -0.20, -0.19))
    assert [(v.row, v.metric) for v in judged] == [
        *(("softmax", m) for m in ("loss@1x", "loss@2x", "rise@2x", "growth@2x")),
        *(("lssa", m) for m in ("loss@1x", "loss@2x", "sink", "rise@2x", "growth@2x")),
        *(("exp", m) for m in ("loss@1x", "loss@2x", "rise@2x", "growth@2x")),
    ]
    assert [v.metric for v in judged if v.outcome == "same direction"] == ["loss@1x"]
    assert compare.counts(judged) == "1 same direction, 12 not run"


def test_what_is_measured_once_counts_once_for_each_outcome():
    judged = [
        compare.Verdict(row, metric, outcome, "")
        for row, metric, outcome in (
            ("short", "Fx", compare.SAME_DIRECTION),
            ("short", "Fy", compare.SAME_DIRECTION),
            ("short", "a", compare.SAME_DIRECTION),
            ("long", "Fx", compare.SAME_DIRECTION),
            ("long", "Fy", compare.CONTRADICTED),
        )
    ]
    found = compare.distinct(judged, {"Fx": "force", "Fy": "force"})
    assert found == [judged[0], *judged[2:]]


def test_every_published_number_can_be_judged():
    for table in tables.tables():
        judged = compare.verdicts(table, {})
        assert judged
        assert {v.outcome for v in judged} == {"not run"}
