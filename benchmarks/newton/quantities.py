"""The metrics of the flagship, each with its direction and unit."""

from __future__ import annotations

from collections.abc import Mapping

from orbits.runs.result import Quantity
from symreg.leaderboard.quantities import FORCES, SEARCH
from worldmodel.probes.quantities import QUANTITIES as PROBES

WORLD_MODEL: Mapping[str, Quantity] = {
    "val_nll": Quantity("lower", "nats", "validation loss of a row's two bins together"),
    "nll": Quantity("lower", "nats", "of a next point's two bins, second half of a sequence"),
    "nll_all_rows": Quantity("lower", "nats", "the same over the whole sequence"),
    "planet_error": Quantity("lower", "AU", "distance of the mean of the predicted distribution"),
    "star_error": Quantity("lower", "AU", "the same of the star"),
    "planet_error_mode": Quantity("lower", "AU", "distance of the likeliest bin"),
    "star_error_mode": Quantity("lower", "AU", "the same of the star"),
    **{name: PROBES[name] for name in ("exponent_within", "first_error", "last_error")},
}
EXAM: Mapping[str, Quantity] = {
    "exam": Quantity("lower", "", "geometric mean of times_ceiling over the shifts"),
    "times_ceiling": Quantity("lower", "", "rms error of ln F over that of the causal ceiling"),
    "median_log_error": Quantity("lower", "", "median absolute error of ln F"),
    "mean_log_error": Quantity("none", "", "mean of ln F predicted less ln F"),
    "median_exam": Quantity("lower", "", "geometric mean of median_log_error over the shifts"),
    "exponent": Quantity("none", "", "exponent of the shifted variable, inside the shift"),
    "law_exponent": Quantity("none", "", "the same of the true force on the same points"),
}
QUANTITIES: Mapping[str, Quantity] = {**WORLD_MODEL, **FORCES, **SEARCH, **EXAM}
