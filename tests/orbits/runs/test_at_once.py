"""Models that were trained alike, all at once: the table, and what is said of it."""

import numpy as np

from orbits.runs.at_once import TITLE, at_once

RNG = np.random.default_rng(0)


def seeds(values):
    return dict(enumerate(values))


def rows(apart, n=4):
    """Return rows of two measures by five seeds, of which the first is apart in one."""
    return [
        {"loss": seeds(RNG.normal(apart * (k == 0), 1, 5)), "time": seeds(RNG.normal(0, 1, 5))}
        for k in range(n)
    ]


MEASURES = {"ln loss": lambda row: row["loss"], "seconds": lambda row: row["time"]}


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
    assert claim.startswith("trained: all 4 at once differ in ln loss (p 0.00")
    # Two groups in a column: the smaller p value counts twice.
    first, second = sorted(row[2].order for row in table.rows)
    assert first < 0.025 < second
    assert {row[2].detail for row in table.rows} == {
        f"corrected {2 * first:.2g}",
        f"corrected {second:.2f}",
    }


def test_a_measure_that_a_group_lacks_is_an_empty_box_and_no_member_of_the_family():
    whole, part = rows(0), [{**row, "time": {}} for row in rows(0)]
    table, claims = at_once("", {"whole": whole, "part": part}, MEASURES)
    assert table.title == TITLE
    assert not claims
    (whole, part) = table.rows
    assert part[3].text in ("", "-")
    assert f"p {whole[3].order:.2f}".startswith(whole[3].text)
    assert whole[3].detail == f"corrected {whole[3].order:.2f}"


def test_nothing_that_can_be_compared_is_a_table_without_rows():
    table, claims = at_once("", {"a pair": rows(9, n=2)}, MEASURES)
    assert (table.rows, claims) == ([], [])
