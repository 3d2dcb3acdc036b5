"""Models that were trained alike, all at once: the tables, what is said of them, and how often."""

import importlib
import re

import numpy as np
import pytest

from orbits.runs.at_once import TITLE, at_once, in_each

RNG = np.random.default_rng(1)


def seeds(values):
    return dict(enumerate(values))


def rows(apart, n=4):
    """Return rows of two measures by five seeds, of which the first is apart in one."""
    return {
        f"model {k}": {
            "loss": seeds(RNG.normal(apart * (k == 0), 1, 5)),
            "time": seeds(RNG.normal(0, 1, 5)),
        }
        for k in range(n)
    }


def models(values):
    """Return models by name of an array [R, S]."""
    return {f"model {k}": seeds(row) for k, row in enumerate(values)}


MEASURES = {"ln loss": lambda row: row["loss"], "seconds": lambda row: row["time"]}


@pytest.fixture
def few_permutations(monkeypatch):
    # The function of this name hides the module.
    monkeypatch.setattr(importlib.import_module("orbits.runs.statistics.paired"), "RESAMPLES", 199)


def test_a_row_for_each_group_and_a_sentence_for_each_that_differs():
    groups = {"trained": rows(6), "from scratch": rows(0), "a pair": rows(9, n=2)}
    table, claims = at_once("forces", groups, MEASURES)
    assert table.title == f"{TITLE}: forces"
    headings = [column.heading for column in table.columns]
    assert headings == ["trained alike", "models", "ln loss", "seconds"]
    assert [[box.text for box in row[:2]] for row in table.rows] == [
        ["trained", "4"],
        ["from scratch", "4"],
    ]
    (claim,) = claims
    assert claim.startswith("trained: all 4 at once differ in ln loss (p 0.0")
    # Two groups in a column: the smaller p value counts twice.
    first, second = sorted(row[2].order for row in table.rows)
    assert first < 0.025 < second
    assert {row[2].detail for row in table.rows} == {
        f"corrected {2 * first:.2g}",
        f"corrected {second:.2f}",
    }


def test_a_measure_that_a_group_lacks_is_an_empty_box_and_no_member_of_the_family():
    whole = rows(0)
    part = {name: {**row, "time": {}} for name, row in rows(0).items()}
    table, claims = at_once("", {"whole": whole, "part": part}, MEASURES)
    assert table.title == TITLE
    assert not claims
    (whole, part) = table.rows
    assert part[3].text in ("", "-")
    assert f"p {whole[3].order:.2f}".startswith(whole[3].text)
    assert whole[3].detail == f"corrected {whole[3].order:.2f}"


def test_a_model_that_makes_the_difference_alone_is_named_once_for_all_measures():
    values = [[1, 2, 3, 1, 2, 3], [2, 3, 1, 2, 3, 1], [3, 1, 2, 3, 1, 2], [9, 8, 9, 8, 9, 8]]
    steps = [[1, 2, 3, 4, 5, 6], [2, 3, 4, 5, 6, 7], [4, 5, 6, 7, 8, 9], [6, 7, 9, 9, 9, 10]]
    measures = {"loss": values, "time": values, "error": steps}
    groups = {"trained": {f"model {k}": k for k in range(4)}}
    readers = {name: lambda k, rows=rows: seeds(rows[k]) for name, rows in measures.items()}
    _, (claim,) = at_once("", groups, readers)
    assert re.sub(r"0\.0\d+", "small", claim) == (
        "trained: all 4 at once differ in loss (p small), time (p small), error (p small); "
        "without model 3 no difference is shown in loss, time."
    )


def test_nothing_that_can_be_compared_is_a_table_without_rows():
    table, claims = at_once("", {"a pair": rows(9, n=2)}, MEASURES)
    assert (table.rows, claims) == ([], [])
    table, claims = in_each({})
    assert (table.rows, claims) == ([], [])


def test_three_models_with_three_seeds_are_compared_in_one_measure_and_not_in_two():
    apart = models([[1, 11, 101], [2, 12, 102], [3, 13, 103]])
    table, claims = in_each({"loss": apart})
    assert len(table.rows) == 1
    assert claims == ["loss: all 3 at once differ (p 0.028)."]
    table, claims = in_each({"loss": apart, "error": apart})  # 2 * 0.028 is above the level
    assert (table.rows, claims) == ([], [])
    four = models([[1, 11, 101], [2, 12, 102], [3, 13, 103], [4, 14, 104]])
    table, claims = in_each({"loss": apart, "error": four, "time": apart})
    assert [row[0].text for row in table.rows] == ["error"]
    assert table.rows[0][2].text == table.rows[0][2].detail.replace("corrected", "p")


def test_accuracies_that_are_all_alike_are_left_out():
    table, _ = in_each({"solved": models(np.full((5, 3), 100.0)), "loss": models(np.eye(5, 4))})
    assert "solved" not in [row[0].text for row in table.rows]


def test_no_difference_in_several_measures_of_one_table_is_claimed_in_five_percent(
    few_permutations,
):
    rng = np.random.default_rng(1)
    claimed = 0
    for _ in range(150):
        # Two measures of the same trainings, and one of others with fewer models.
        values = rng.standard_t(3, (6, 3)) + rng.normal(size=3)
        measures = {"loss": values, "rise": values + rng.normal(size=(6, 3)), "time": values[:3]}
        claimed += bool(in_each({name: models(x) for name, x in measures.items()})[1])
    assert claimed <= 0.05 * 150 + 3 * (0.05 * 0.95 * 150) ** 0.5


def test_a_difference_that_is_there_is_found_and_one_model_that_learned_nothing_is_named(
    few_permutations,
):
    rng = np.random.default_rng(2)
    level = np.array([0, 0, 0, 0, 0, 20.0])[:, None]
    _, alone = in_each({"loss": models(rng.normal(size=(6, 5)) + level)})
    assert alone[0].endswith("; without model 5 no difference is shown.")
    steps = 3.0 * np.arange(6)[:, None]
    _, all_differ = in_each({"loss": models(rng.normal(size=(6, 3)) + steps)})
    assert "without" not in all_differ[0]
