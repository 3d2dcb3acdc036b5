"""Single steps: the exponent behind a model's next places in each test world.

S is defined as that of paths (:mod:`benchmarks.worlds.asked`), for the kicks behind single
predicted places. Where a model believes another law than the orbit obeys, its kick also holds its
misfit of the state (:mod:`orbits.implied.one_step`): an S below 1 does not say which law that is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks import training
from benchmarks.training_options import Job
from benchmarks.worlds.asked import N_BOOT, SEED, Asked, Exponents
from orbits.arithmetic import Array
from orbits.implied.one_step import OneStep
from orbits.mixture import Mixture
from orbits.runs.cell import Outcome
from orbits.runs.statistics import Interval, percentiles
from worldmodel.controls.linear_autoregression import LinearAutoregression
from worldmodel.data.mixture import tell
from worldmodel.models.mixture import MixtureModel
from worldmodel.probes.motion.held_out import HeldOutSystems, medians

Plain = Mapping[str, Any]


def of_model(
    world: Plain,
    tested: Sequence[Plain],
    n_test: int,
    pretrained: Path | None = None,
    job: Job | None = None,
) -> Outcome:
    """Ask a model, one of random weights where there is a job, for the median of next places."""
    model = training.trained_or_not(pretrained, job, MixtureModel)
    asked = Asked.of(world, tested, [], n_test)
    seen = [observed(asked, test, bool(model.hparams["told"])) for test in asked.worlds]
    found = [medians(model, test, batch) for test, batch in zip(asked.worlds, seen, strict=True)]
    return Outcome(_measured(asked, found))


def of_filter(
    world: Plain, tested: Sequence[Plain], n_test: int, mixture: Sequence[float], steps: int
) -> Outcome:
    """Ask the linear filter of the mixture, which knows no law."""
    asked = Asked.of(world, tested, [], n_test)
    follow = LinearAutoregression(Mixture(asked.protocol, tuple(mixture)), 0, steps).next_points
    return Outcome(_measured(asked, [follow(test.observed) for test in asked.worlds]))


def observed(asked: Asked, test: HeldOutSystems, told: bool) -> dict[str, npt.NDArray]:
    """Return what a model sees of a test world, with its exponent if it is told the law."""
    batch = {name: test.batch[name].copy() for name in ("tokens", "coordinates")}
    if told:
        number = [x.protocol.law for x in asked.worlds].index(test.protocol.law)
        tell(batch["coordinates"], asked.values[number])
    return batch


def _measured(asked: Asked, points: Sequence[Array]) -> dict[str, Interval]:
    """Return ``S``, and ``exponent@WORLD`` and ``missed@WORLD`` of each test world."""
    found, true, missed = [], [], {}
    for value, test, rows in zip(asked.values, asked.worlds, points, strict=True):
        steps = OneStep(test.protocol, test.world, (test.n_prompt - 1) // 2)
        found.append(steps.resampled(rows, N_BOOT, SEED))
        true.append(steps.resampled(test.observed, N_BOOT, SEED))
        missed[f"missed@{value:g}"] = steps.missed(rows, test.batch["coordinates"])
    values, drawn = _stacked(found)
    unit, units = _stacked(true)
    share = float(asked.slope(values) / asked.slope(unit))
    exponents = {
        f"exponent@{world:g}": percentiles(one, each)
        for world, one, each in zip(asked.values, values, drawn, strict=True)
    }
    followed = percentiles(share, asked.slope(drawn) / asked.slope(units))
    return {"S": followed, **exponents, **missed}


def _stacked(found: Sequence[tuple[float, Array]]) -> Exponents:
    """Return the exponents of all worlds together."""
    return np.array([value for value, _ in found]), np.array([drawn for _, drawn in found])
