"""Checks of settings: what is too small, infinite or empty is refused by its name."""

from types import SimpleNamespace

import pytest

from orbits.runs.settings import check_at_least, check_not_empty

SETTINGS = SimpleNamespace(steps=3, lrs=(0.1, 0.2), limit=None, seeds=(), rate=float("inf"))


@pytest.mark.parametrize(
    ("least", "message"),
    [
        ({"steps": 4}, "steps must be at least 4, got 3"),
        ({"lrs": 0.15}, "lrs must be at least 0.15, got 0.1"),
        ({"rate": 0}, "rate must be finite, got inf"),
    ],
)
def test_a_value_below_its_least_is_refused(least, message):
    with pytest.raises(ValueError, match=message):
        check_at_least(SETTINGS, least)


def test_values_that_fit_pass():
    check_at_least(SETTINGS, {"steps": 3, "lrs": 0.1, "limit": 1, "seeds": 0})
    check_not_empty(SETTINGS, "lrs")


def test_an_empty_list_is_refused():
    with pytest.raises(ValueError, match="seeds must not be empty"):
        check_not_empty(SETTINGS, "lrs", "seeds")
