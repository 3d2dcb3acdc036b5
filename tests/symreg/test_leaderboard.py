import itertools
import json

import pytest

from symreg import leaderboard

CELL = itertools.count()


def predictor(model="lssar", arm="pretrained", seed=0, protocol="fixed", r=-2.0, width=0.1, **more):
    metrics = {
        "r2_log": 0.99 - 0.01 * seed,
        "exponents": {
            "r": [r, r - width, r + width],
            "m1": [1.0, 0.9, 1.1],
            "m2": [1.0, 0.9, 1.1],
        },
        "constant": [39.0, 38.0, 40.0],
    }
    return line("predictor", model, arm, seed, protocol, metrics) | more


def law(verdict="law", model="lssar", arm="pretrained", protocol="fixed", **more):
    metrics = {"verdict": verdict, "constant": 39.5, "shape": "C*m1*m2/r**2"}
    metrics |= {} if verdict == "law" else {"constant": None, "shape": "C*r"}
    return line("law", model, arm, 0, protocol, metrics) | {"engine": "operon@0.6.2"} | more


def line(kind, model, arm, seed, protocol, metrics):
    row = {"protocol": protocol, "model": model, "arm": arm, "labels": 100, "seed": seed}
    return {
        "schema": 1,
        "task": "newton",
        "cell": f"{next(CELL):016x}",
        "status": "ok",
        "kind": kind,
        "row": row,
        "engine": None,
        "cpu_s": 2.0,
        "metrics": metrics,
    }


def test_wilson_against_published_values():
    # Brown, Cai, DasGupta (2001) and the closed form by hand for 10/10: 1/(1 + z^2/10).
    assert leaderboard.wilson(10, 10) == pytest.approx((0.7224672, 1.0), abs=1e-6)
    assert leaderboard.wilson(0, 10) == pytest.approx((0.0, 0.2775328), abs=1e-6)
    assert leaderboard.wilson(5, 10) == pytest.approx((0.2365931, 0.7634069), abs=1e-6)
    for bad in ((1, 0), (3, 2), (-1, 2)):
        with pytest.raises(ValueError, match="no rate"):
            leaderboard.wilson(*bad)


def test_seeds_make_one_row_with_mean_and_envelope():
    lines = [predictor(seed=0, r=-2.0, width=0.1), predictor(seed=1, r=-1.8, width=0.4)]
    (row,) = leaderboard.rows(lines)
    assert row.seeds == 2
    assert row.exponents["r"] == pytest.approx((-1.9, -2.2, -1.4))
    assert row.r2_log == pytest.approx((0.985, 0.98, 0.99))
    assert row.constant == (39.0, 38.0, 40.0)


def test_failed_lines_stay_in_the_denominator():
    failed = law(status="failed", metrics={}, error="out of memory")
    lines = [predictor(), law(), law(), law("another law"), failed]
    lines.append(predictor(seed=1, status="failed", metrics={}))
    (row,) = leaderboard.rows(lines)
    (entry,) = row.laws
    assert (entry.found, entry.total, entry.failed) == (2, 4, 1)
    assert (entry.low, entry.high) == leaderboard.wilson(2, 4)
    assert entry.constant == (39.5, 39.5, 39.5)
    assert (entry.shape, entry.shape_count, entry.shapes) == ("C*m1*m2/r**2", 2, 2)
    assert entry.verdicts == {"another law": 1, "law": 2}
    assert (row.seeds, row.failed) == (1, 1)


def test_a_law_found_in_a_world_where_it_does_not_rule_is_named():
    elsewhere = law("another law")
    elsewhere["metrics"]["laws"] = ["newton"]
    open_between = law("another law")
    open_between["metrics"]["laws"] = ["softened", "yukawa"]
    neither, older = law("another law"), law("another law")
    neither["metrics"]["laws"] = []
    lines = [predictor(), law(), law(), elsewhere, open_between, neither, older]
    for each in lines:
        each["task"] = "power_1_5"
    (row,) = leaderboard.rows(lines, "power_1_5")
    (entry,) = row.laws
    assert entry.world == "power_1_5"
    assert entry.laws == {"power_1_5": 2, "newton": 1, "softened or yukawa": 1, "none": 1} | {
        "not compared": 1  # scored before formulas were compared with every law
    }
    assert (entry.found, entry.total) == (2, 6)
    text = leaderboard.to_markdown([row], "power_1_5")
    assert (
        r"power\_1\_5 / power\_1\_5 2, newton 1, softened or yukawa 1, none 1, not compared 1"
        in text
    )


def test_only_failed_lines_still_make_a_row():
    lines = [
        predictor(status="failed", metrics={}),
        law(status="failed", metrics={}, engine="pysr@2.7.2"),
    ]
    (row,) = leaderboard.rows(lines)
    assert (row.seeds, row.r2_log, row.constant) == (0, None, None)
    assert (row.laws[0].found, row.laws[0].total, row.laws[0].shape) == (0, 1, None)


def test_an_offset_law_does_not_count_as_the_law():
    (row,) = leaderboard.rows([law("law up to an offset")])
    assert row.laws[0].found == 0


def test_a_cell_counts_once():
    repeated = law()
    (row,) = leaderboard.rows([repeated, dict(repeated), law()])
    assert row.laws[0].total == 2


def test_engines_protocols_arms_and_labels_are_not_mixed():
    other_labels = predictor()
    other_labels["row"]["labels"] = "unlimited"
    lines = [
        predictor(),
        predictor(protocol="paper"),
        predictor(arm="scratch"),
        other_labels,
        law(),
        law(engine="pysr@2.7.2"),
    ]
    rows = leaderboard.rows(lines)
    assert len(rows) == 4
    searched = [row for row in rows if row.laws]
    assert [[entry.engine for entry in row.laws] for row in searched] == [
        ["operon@0.6.2", "pysr@2.7.2"]
    ]


def test_ranked_by_exponents_then_law_rate_with_controls_last():
    lines = [
        predictor("truth", arm="control"),
        law(model="truth", arm="control"),
        predictor("far", r=-1.2),
        predictor("near", r=-1.9),
        predictor("best", r=-1.9),
        law(model="best"),
        law(model="silent", verdict="no law found"),
    ]
    for order in (lines, lines[::-1]):
        models = [row.model for row in leaderboard.rows(order)]
        assert models == ["best", "near", "far", "silent", "truth"]


def three_seeds(*arguments, **more):
    return [predictor(*arguments, seed=seed, **more) for seed in range(3)]


def test_separated_needs_disjoint_intervals():
    lines = [*three_seeds("a", r=-2.0), *three_seeds("b", r=-1.85), *three_seeds("c", r=-1.5)]
    lines.append(law(model="a"))
    a, b, c = sorted(leaderboard.rows(lines), key=lambda row: row.model)
    assert not leaderboard.separated(a, b, "r")
    assert leaderboard.separated(a, c, "r")
    assert leaderboard.separated(c, a, "r")
    assert not leaderboard.separated(a, c, "constant")
    assert not leaderboard.separated(a, c, "law@operon@0.6.2")
    with pytest.raises(ValueError, match="unknown metric 'r2'"):
        leaderboard.separated(a, b, "r2")
    (other,) = leaderboard.rows([predictor(protocol="paper")])
    with pytest.raises(ValueError, match="different protocols"):
        leaderboard.separated(a, other, "r")


def test_separated_needs_three_seeds():
    lines = [*three_seeds("a", r=-2.0), *three_seeds("b", r=-1.5)[:2]]
    a, b = leaderboard.rows(lines)
    assert a.exponents["r"][2] < b.exponents["r"][1]
    assert not leaderboard.separated(a, b, "r")


def test_separated_law_rates():
    lines = [law(model="a") for _ in range(10)] + [law("another law", "b") for _ in range(10)]
    a, b = leaderboard.rows([*lines, *three_seeds("a"), *three_seeds("b")])
    assert leaderboard.separated(a, b, "law@operon@0.6.2")


def test_constants_are_of_the_laws_found_and_errors_of_every_search():
    lines = [law() for _ in range(5)] + [law("another law")]
    for place, entry in enumerate(lines):
        entry["metrics"] |= {"error_outside": 0.01 * (place + 1)}
    for entry, constant in zip(lines, [39.0, 39.4, 39.5, 39.6, 41.0], strict=False):
        entry["metrics"]["constant"] = constant
    (row,) = leaderboard.rows(lines)
    median, low, high = row.laws[0].constant
    assert median == 39.5
    assert 39.0 <= low < median < high <= 41.0
    median, low, high = row.laws[0].error_outside
    assert median == pytest.approx(0.035)
    assert 0.01 <= low < median < high <= 0.06
    assert row.laws[0].complexity is None, "no line states one"


def test_read_lines(tmp_path):
    path = tmp_path / "results.jsonl"
    lines = [predictor(), law()]
    path.write_text("\n\n".join(json.dumps(entry) for entry in lines) + "\n")
    assert leaderboard.read_lines(path) == lines


@pytest.mark.parametrize(
    "change",
    [{"schema": 2}, {"kind": "opinion"}, {"status": "maybe"}, {"row": {}}, {"metrics": {}}],
)
def test_a_line_that_is_no_result_is_named_by_number(tmp_path, change):
    path = tmp_path / "results.jsonl"
    path.write_text(json.dumps(law()) + "\n" + json.dumps(law(**change)) + "\n")
    with pytest.raises(ValueError, match="line 2: not a result line"):
        leaderboard.read_lines(path)


@pytest.mark.parametrize("text", ["", "{", "[1]\n", "3\n"])
def test_other_files_are_refused(tmp_path, text):
    path = tmp_path / "results.jsonl"
    path.write_text(text)
    with pytest.raises(ValueError, match="result line"):
        leaderboard.read_lines(path)
