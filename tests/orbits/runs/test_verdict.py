"""Verdicts: a difference is named with its interval, and none is where none is shown."""

import math

from orbits.runs.verdict import against, beside, shown, span

LEVEL = {0: 10.0, 1: 11.0, 2: 12.1}
ROWS = {
    "softmax": {0: 10.0, 1: 11.0, 2: 12.0},
    "far": {0: 30.0, 1: 31.1, 2: 32.0},
    "low": {0: 2.0, 1: 3.1, 2: 4.0},
    "near": {0: 12.0, 1: 9.0, 2: 13.0},
    "two": {0: 50.0, 1: 50.0},
}


def test_sides_and_what_is_not_shown():
    said = beside(against(ROWS, "softmax"), "softmax", ".1f", " points")
    assert said.startswith("lower than softmax: low (-8.0 [")
    assert "; higher: far (+20.0 [" in said
    assert said.endswith("; no difference is shown for near")
    assert "two" not in said  # two trainings show nothing


def test_a_name_with_a_comma_is_told_from_two_names():
    rows = {"softmax": ROWS["softmax"], "p = 15, first": ROWS["near"], "near": ROWS["near"]}
    said = beside(against(rows, "softmax"), "softmax")
    assert said.endswith("is shown for p = 15 (first), near")


def test_two_sides_name_as_many_rows_as_a_sentence_holds():
    far = {
        f"far {i}": {seed: 30 + i + value + 1e-3 * seed**2 for seed, value in LEVEL.items()}
        for i in range(3)
    }
    rows = {"softmax": LEVEL, **far}
    assert "far 0 (" in beside(against(rows, "softmax"), "softmax")
    said = beside(against(rows | {"low": ROWS["low"]}, "softmax"), "softmax")
    assert "; higher: far 2 (" in said
    assert "far 0" not in said
    assert said.endswith(" and 1 more")


def test_many_values_are_a_range():
    assert span({"a": 1, "b": 2}) == "a 1.00, b 2.00"
    assert span({"a": 1, "b": 4, "c": 2, "d": 3}, ".1f", "models") == "1.0 to 4.0 in 4 models"


def test_without_the_other_row_nothing_is_said():
    assert beside(against(ROWS, "linear"), "linear") == ""


def test_near_its_bounds_each_training_is_shown():
    assert shown(ROWS["softmax"], ".0f", "%", (0, 100)) == "11% (10, 11, 12)"


def test_with_one_bound_three_are_shown_one_by_one_and_more_have_an_interval_up_to_it():
    upper = (-math.inf, 1.0)
    assert shown({0: 0.5, 1: 0.51, 2: 0.52}, ".2f", "", upper) == "0.51 (0.50, 0.51, 0.52)"
    five = dict(enumerate((0.9, 0.99, 0.99, 0.99, 0.99)))
    assert shown(five, ".2f", "", upper) == "0.97 [0.92, 1.00]"
