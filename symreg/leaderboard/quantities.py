"""Meaning, unit and direction of a leaderboard's metrics."""

from __future__ import annotations

import math
from collections.abc import Mapping

from orbits.runs.result import Quantity

_FORCE = "solar mass AU / year^2"

FORCES: Mapping[str, Quantity] = {
    "r2": Quantity("higher", "", "R2 of predicted against true force", bounds=(-math.inf, 1)),
    "r2_log": Quantity(
        "higher", "", "R2 of the logarithms of predicted, or found, force", bounds=(-math.inf, 1)
    ),
    "cosine": Quantity(
        "higher", "", "mean cosine between predicted and true force vectors", bounds=(-1, 1)
    ),
    "dropped": Quantity("lower", "", "share of predictions that have no logarithm", bounds=(0, 1)),
    "rms_log_error": Quantity("lower", "", "root mean square of ln(predicted / true)"),
    "median_relative_error": Quantity("lower", "", "median of |predicted / true - 1|"),
    "constant": Quantity("none", _FORCE, "the power law's, or formula's, value at r = m1 = m2 = 1"),
    "exponent_r": Quantity("none", "", "exponent of the distance"),
    "exponent_m1": Quantity("none", "", "exponent of the first mass"),
    "exponent_m2": Quantity("none", "", "exponent of the second mass"),
    "law_exponent_r": Quantity("none", "", "the same of the true force on the same points"),
    "law_exponent_m1": Quantity("none", "", "the same of the true force on the same points"),
    "law_exponent_m2": Quantity("none", "", "the same of the true force on the same points"),
    "exponent_r_within": Quantity("none", "", "exponent of the distance along orbits"),
    "exponent_r_between": Quantity("none", "", "exponent of the distance between orbits"),
}
SEARCH: Mapping[str, Quantity] = {
    **{name: FORCES[name] for name in ("r2_log", "dropped", "constant")},
    **{name: FORCES[name] for name in ("exponent_r", "exponent_m1", "exponent_m2")},
    "constant_relative_error": Quantity("lower", "", "of the constant, to the law's own"),
    "complexity": Quantity("lower", "", "nodes of the formula"),
    "offset": Quantity("none", _FORCE, "additive constant of the formula"),
    "offset_share": Quantity("none", "", "offset over the median of the predictions"),
    "median_relative_difference": Quantity("lower", "", "median of |formula / predicted - 1|"),
    "error_in_range": Quantity("lower", "", "median of |formula / law - 1| on the points"),
    "error_outside": Quantity("lower", "", "median of |formula / law - 1| beyond their range"),
    "n_points": Quantity("none", "", "points that the formula was scored on"),
}
