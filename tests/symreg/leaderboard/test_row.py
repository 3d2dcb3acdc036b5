"""Rows from results: seeds, failures, ranking, and when two rows may be said to differ."""

import dataclasses
import json
import math

import pytest

from orbits.runs.statistics import wilson
from symreg.leaderboard import tables
from symreg.leaderboard.read import read
from tests.symreg.leaderboard.written import failed, forces, search, table


def test_seeds_make_one_row_with_their_mean_and_an_interval_over_trainings():
    others = [
        forces(seed=seed, r=r, width=0.4, metrics={"r2_log": r2, "cosine": 0.9})
        for seed, r, r2 in ((1, -1.8, 0.98), (2, -1.9, 0.97))
    ]
    (row,) = table([forces(), *others])
    assert row.seeds == 3
    # Student's t: half-width 4.3027 * 0.1 / sqrt(3), whatever the intervals over sequences are
    assert row.exponents["r"] == pytest.approx((-1.9, -2.14841, -1.65159), abs=1e-5)
    assert row.r2_log == pytest.approx(0.98)
    assert row.values["r2_log"] == {0: 0.99, 1: 0.98, 2: 0.97}
    assert row.constant == (39.0, 39.0, 39.0)
    assert row.distance == pytest.approx(0.5), "of m1, in all"
    (two,) = table([forces(), others[0]])
    assert two.exponents["r"] == pytest.approx((-1.9, -math.inf, math.inf)), "no interval of two"
    (one,) = table([forces()])
    assert one.exponents["r"] == pytest.approx((-2, -2.1, -1.9)), "over sequences"


def test_what_has_bounds_is_shown_one_by_one_where_there_are_few():
    def boxes(n):
        values = [0.99, 0.98, 0.97, 1.0][:n]
        found = [
            forces(seed=i, r=-2 - x, metrics={"r2_log": x, "dropped": 0})
            for i, x in enumerate(values)
        ]
        made = tables.contestants("", table(found))
        (shown,) = made.rows
        names = [column.heading for column in made.columns]
        return [shown[names.index(name)].detail for name in ("r", "R2 of ln F")]

    assert boxes(1) == ["[-3.090, -2.890]", ""]
    assert boxes(2) == ["(-2.990, -2.980)", "(0.9900, 0.9800)"]
    assert boxes(3) == ["[-3.005, -2.955]", "(0.9900, 0.9800, 0.9700)"]
    # 0.985 +- 3.1824 * 0.012910 / 2, and R2 is at most 1
    assert boxes(4) == ["[-3.006, -2.964]", "[0.9645, 1.0000]"]


def test_failed_results_stay_in_the_denominator():
    results = [forces(), search(), search(), search("another law"), failed(search())]
    results.append(failed(forces(seed=1)))
    (row,) = table(results)
    (entry,) = row.laws
    assert (entry.found, entry.total, entry.failed) == (2, 4, 1)
    assert (entry.low, entry.high) == wilson(2, 4)[1:]
    assert entry.constant == (39.5, 39.5, 39.5)
    assert (entry.shape, entry.shape_count, entry.shapes) == ("C*m1*m2/r**2", 2, 2)
    assert entry.verdicts == {"another law": 1, "law": 2}
    assert (row.seeds, row.failed) == (1, 1)


def test_a_law_found_in_a_world_where_it_does_not_rule_is_named():
    world = {"law": "power_1_5"}
    found = [["newton"], ["softened", "yukawa"], []]
    results = [forces(**world), search(**world), search(**world), search("another law", **world)]
    results += [search("another law", details={"laws": laws}, **world) for laws in found]
    (row,) = table(results, "power_1_5")
    (entry,) = row.laws
    assert entry.world == "power_1_5"
    assert entry.laws == {"power_1_5": 2, "newton": 1, "softened or yukawa": 1, "none": 1} | {
        "not compared": 1  # scored before formulas were compared with every law
    }
    assert (entry.found, entry.total) == (2, 6)
    assert table(results, "newton") == []


def test_only_failed_results_still_make_a_row():
    (row,) = table([failed(forces()), failed(search(engine="pysr@2.7.2"))])
    assert (row.seeds, row.r2_log, row.constant) == (0, None, None)
    assert (row.laws[0].found, row.laws[0].total, row.laws[0].shape) == (0, 1, None)


def test_an_offset_law_does_not_count_as_the_law():
    (row,) = table([search("law up to an offset")])
    assert (row.laws[0].found, row.laws[0].found_nooff) == (0, 1)


def test_a_cell_counts_once_and_other_kinds_do_not_count():
    repeated = search()
    other = dataclasses.replace(repeated, case=dataclasses.replace(repeated.case, kind="x"))
    (row,) = table([repeated, dataclasses.replace(repeated), other, search()])
    assert row.laws[0].total == 2


def test_engines_protocols_arms_and_labels_are_not_mixed():
    results = [forces(), forces(protocol="paper"), forces(arm="scratch"), forces(labels="all")]
    rows = table([*results, search(), search(engine="pysr@2.7.2")])
    assert len(rows) == 4
    engines = [[entry.engine for entry in row.laws] for row in rows if row.laws]
    assert engines == [["operon@0.6.2", "pysr@2.7.2"]]


def test_ranked_by_exponents_and_not_by_law_rate_with_controls_last():
    results = [
        forces("truth", arm="control"),
        search(model="truth", arm="control"),
        forces("far", r=-1.2),
        forces("near", r=-1.9),
        forces("best", r=-1.9),
        forces("mute", metrics={"dropped": 0.99}),
        search(model="best"),
        search(model="silent", verdict="no law found"),
    ]
    for order in (results, results[::-1]):
        models = [row.model for row in table(order)]
        assert models == ["best", "near", "far", "silent", "mute", "truth"]


def test_constants_are_of_the_laws_found_and_errors_of_every_search():
    constants = [39.0, 39.4, 39.5, 39.6, 41.0]
    results = [
        search(metrics={"constant": constant, "error_outside": 0.01 * (place + 1)})
        for place, constant in enumerate(constants)
    ]
    results.append(search("another law", metrics={"error_outside": 0.06, "complexity": None}))
    (row,) = table(results)
    median, low, high = row.laws[0].constant
    assert median == 39.5
    assert 39.0 <= low < median < high <= 41.0
    median, low, high = row.laws[0].error_outside
    assert median == pytest.approx(0.035)
    assert 0.01 <= low < median < high <= 0.06
    (row,) = table([search(metrics={"complexity": None})])
    assert row.laws[0].complexity is None, "no result states one"


LAW = {"verdict": "law", "shape": ""}


def test_results_are_read_from_lines(tmp_path):
    path = tmp_path / "results.jsonl"
    results = [forces("a\u2028b"), search()]
    lines = (json.dumps(each.to_json(), ensure_ascii=False) for each in results)
    path.write_text("\n\n".join(lines) + "\n", encoding="utf-8")
    assert [each.to_json() for each in read(path)] == [each.to_json() for each in results]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"schema": 1}, "schema must be 2"),
        ({"status": "maybe"}, "status must be"),
        ({"metrics": {"constant": {"value": "1"}}}, "value must be a number"),
        ({"details": {}}, "verdict must be text"),
        ({"details": {"verdict": "law", "shape": 3}}, "shape must be text"),
        ({"details": {"verdict": "law", "shape": "", "laws": "newton"}}, "laws must be names"),
        ({"details": {**LAW, "symbolic": ["yes"]}}, "symbolic must be text"),
        ({"details": {**LAW, "front": [{"a": 1}]}}, "front cannot be drawn"),
        ({"details": {**LAW, "front": "abc"}}, "front cannot be drawn"),
        ({"details": {**LAW, "residuals": {"r": {"centre": [1]}}}}, "residuals cannot be drawn"),
    ],
)
def test_a_line_that_is_no_result_is_named_by_number(tmp_path, change, said):
    path = tmp_path / "results.jsonl"
    lines = [search().to_json(), search().to_json() | change]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    with pytest.raises(ValueError, match=f"line 2: not a result: .*{said}"):
        read(path)


@pytest.mark.parametrize("text", ["", "{", "[1]\n", "3\n", "\n"])
def test_other_files_are_refused(tmp_path, text):
    path = tmp_path / "results.jsonl"
    path.write_text(text)
    with pytest.raises(ValueError, match=r"results\.jsonl.*(not a result|no results)"):
        read(path)
