"""Shifts as data: the eight of the exam, a user's file, plain settings, and what is refused."""

import json
import pickle

import pytest

from orbits import shifts
from orbits.shifts import Shift

EXAM = {
    "planet_heavier": ({"planet_mass": (2, 4)}, 0, "m1"),
    "star_heavier": ({"star_mass": (4, 8)}, 0, "m2"),
    "planet_lighter": ({"planet_mass": (0.0125, 0.05)}, 0, "m1"),
    "both_heavier": ({"planet_mass": (2, 4), "star_mass": (4, 8)}, 0, None),
    "closer": ({"semi_major_axis": (0.3, 0.5)}, 0, "r"),
    "more_eccentric": ({"eccentricity": (0.6, 0.8)}, 0, "r"),
    "double_step": ({}, 1, None),
    "half_step": ({}, -1, None),
}

FILE = """
- name: lightest
  redraw: {planet_mass: [0.001, 0.0125]}
  exponent: m1
- name: far_and_fast
  about: wide orbits at a quarter of the time step
  redraw: {semi_major_axis: [2, 3], eccentricity: [0, 0.1]}
  dt_octaves: -2
"""


def write(tmp_path, text):
    path = tmp_path / "mine.yaml"
    path.write_text(text)
    return path


def test_the_shifts_of_the_exam():
    # Addresses of kept results hold their names: a shift that changes gets another one.
    assert shifts.names() == tuple(EXAM)
    for name, (redraw, octaves, exponent) in EXAM.items():
        shift = shifts.get(name)
        assert (dict(shift.redraw), shift.dt_octaves, shift.exponent) == (redraw, octaves, exponent)
        assert shift.about
        assert "\n" not in shift.about


@pytest.mark.parametrize("name", EXAM)
def test_a_shift_travels_as_json_and_between_processes(name):
    shift = shifts.get(name)
    assert Shift.from_plain(json.loads(json.dumps(shift.as_plain()))) == shift
    sent = pickle.loads(pickle.dumps(shift))
    assert sent == shift
    assert sent.about == shift.about
    assert hash(sent) == hash(shift)
    assert shifts.of(name) == shifts.of(shift.as_plain()) == shifts.of(shift)
    assert "about" not in shift.as_plain(), "prose must not change an address"


def test_a_users_file(tmp_path):
    lightest, far = shifts.load(write(tmp_path, FILE))
    assert lightest == Shift("lightest", {"planet_mass": (0.001, 0.0125)}, exponent="m1")
    assert far == Shift(
        "far_and_fast", {"semi_major_axis": (2, 3), "eccentricity": (0, 0.1)}, dt_octaves=-2
    )
    assert far.about == "wide orbits at a quarter of the time step"
    assert "lightest" not in shifts.names()


def test_a_file_may_repeat_a_shift_of_the_exam_but_not_change_it(tmp_path):
    same = "[{name: half_step, dt_octaves: -1}]"
    assert shifts.load(write(tmp_path, same)) == (shifts.get("half_step"),)
    with pytest.raises(ValueError, match="'half_step' is another shift of the exam"):
        shifts.load(write(tmp_path, "[{name: half_step, dt_octaves: -2}]"))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"dt_octaves": 1}, "needs a name"),
        ({"name": "none", "dt_octaves": 1}, "name other than 'none'"),
        ({"name": "a\x1b[31m", "dt_octaves": 1}, r"none is a control character, got 'a\\x1b\[31m'"),
        ({"name": 61 * "a", "dt_octaves": 1}, "take at most 60 letters"),
        ({"name": "a", "dt_octaves": 1, "about": "b\nc"}, "about must be one line"),
        ({"name": "a"}, "shift 'a': it shifts nothing"),
        ({"name": "a", "steps": 1}, "shift 'a': unknown key 'steps'; choose from name, redraw"),
        ({"name": "a", "redraw": {"mass": [1, 2]}}, "unknown element 'mass'; choose from planet_m"),
        ({"name": "a", "redraw": [1, 2]}, "redraw must map"),
        ({"name": "a", "redraw": {"planet_mass": [2, 1]}}, r"needs low < high, got \[2, 1\]"),
        ({"name": "a", "redraw": {"planet_mass": [2, 2]}}, "low < high"),
        ({"name": "a", "redraw": {"planet_mass": [1]}}, "must be two numbers"),
        ({"name": "a", "redraw": {"planet_mass": [1, "2"]}}, "must be two numbers"),
        ({"name": "a", "redraw": {"planet_mass": [1, float("inf")]}}, "must be two numbers"),
        ({"name": "a", "redraw": {"star_mass": [0, 1]}}, "star_mass must be positive"),
        ({"name": "a", "redraw": {"eccentricity": [0.5, 1]}}, r"must stay in \[0, 1\)"),
        ({"name": "a", "redraw": {"eccentricity": [-0.1, 0.5]}}, "eccentricity must stay in"),
        ({"name": "a", "dt_octaves": 0.5}, "dt_octaves must be a whole number from -32 to 32, got"),
        ({"name": "a", "dt_octaves": 2000}, "from -32 to 32, got 2000"),
        ({"name": "a", "dt_octaves": 1, "exponent": "m3"}, "unknown exponent 'm3'; choose from m1"),
        ({"name": "a", "dt_octaves": 1, "about": 3}, "about must be one line"),
        ("a", "must be a mapping"),
    ],
)  # fmt: skip
def test_impossible_settings_are_refused_in_one_line(tmp_path, settings, message):
    with pytest.raises(ValueError, match=message) as direct:
        Shift.from_plain(settings)
    assert "\n" not in str(direct.value)
    with pytest.raises(ValueError, match=message) as read:
        shifts.load(write(tmp_path, json.dumps([settings]).replace("Infinity", ".inf")))
    assert "mine.yaml" in str(read.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (FILE + "- {name: lightest, dt_octaves: 1}\n", "two shifts are called 'lightest'"),
        ("", "must be a list of shifts"),
        ("lightest: {dt_octaves: 1}", "must be a list of shifts"),
        ("- [", "is not YAML"),
    ],
)
def test_a_file_that_is_no_list_of_shifts_is_refused(tmp_path, text, message):
    with pytest.raises(ValueError, match=message) as error:
        shifts.load(write(tmp_path, text))
    assert "\n" not in str(error.value)


def test_a_name_that_is_not_there():
    with pytest.raises(ValueError, match=r"unknown shift 'nearer'; choose from planet_heavier, "):
        shifts.get("nearer")
    with pytest.raises(FileNotFoundError):
        shifts.load("no/such/file.yaml")
