"""Verdicts: a difference is named with its interval, and none is where none is shown."""

from orbits.runs.verdict import against, beside, shown

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
    assert "higher than softmax: far (+20.0 [" in said
    assert said.endswith("no difference from softmax is shown for near")
    assert "two" not in said  # two trainings show nothing


def test_a_name_with_a_comma_is_told_from_two_names():
    rows = {"softmax": ROWS["softmax"], "p = 15, first": ROWS["near"], "near": ROWS["near"]}
    said = beside(against(rows, "softmax"), "softmax")
    assert said.endswith("is shown for p = 15 (first), near")


def test_without_the_other_row_nothing_is_said():
    assert beside(against(ROWS, "linear"), "linear") == ""


def test_near_its_bounds_each_training_is_shown():
    assert shown(ROWS["softmax"], ".0f", "%", (0, 100)) == "11% (10, 11, 12)"
