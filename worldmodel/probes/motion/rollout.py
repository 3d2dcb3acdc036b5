"""The rollout probe: errors of next points and of free rollouts, and conserved quantities.

The second half of held-out sequences is predicted. A next point is predicted from the true rows
before it; a rollout goes on from the first half by the model's own predictions, each the likeliest
bin. Errors are distances in AU from where the body is, of the mean of the predicted distribution
for next points and of the chosen bin in rollouts.

Energy and angular momentum come from rolled-out places by central differences, which miss the
truth by themselves where an orbit is observed a dozen times per turn: the true orbit, in bins and
measured in the same way, says by how much. An error is the mean share by which a rollout misses
the true orbit's value, a drift the median size of the slope of that deviation, with its sign, per
step: a rollout that is wrong in another way at every step has a large one, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from orbits import solar_system
from orbits.arithmetic import Array
from orbits.ceiling import fit
from orbits.protocols import Protocol
from orbits.runs import artefact
from orbits.runs.cell import Outcome
from orbits.runs.page import Picture
from orbits.runs.result import Result
from orbits.runs.statistics import Interval
from orbits.systems import Systems
from worldmodel.controls.linear_autoregression import linear_autoregression, refusal
from worldmodel.controls.names import FILTER, FIT, IN_BINS
from worldmodel.models.orbit import OrbitModel
from worldmodel.probes.base import Pieces, Probe
from worldmodel.probes.checkpoint import Checkpoint
from worldmodel.probes.looks import own_setting
from worldmodel.probes.motion import figures, references
from worldmodel.probes.motion.held_out import (
    HeldOutSystems,
    batches,
    curve,
    fitted_next,
    joined,
    mean_of,
    median_of,
    next_points,
    rolled_out,
)
from worldmodel.probes.settings import Settings

NEXT, FREE = {"asked": "next point"}, {"asked": "rollout"}
SHOWN = 4
"""Sequences that are drawn: the first ones, whatever they look like."""


class Rollout(Probe):
    """The rollout probe."""

    name = "rollout"
    about = "Errors of next points and of free rollouts; what rollouts conserve."
    uses = ("n_sequences", "seeds", "data_seed")
    asks = ("predict_next",)
    of = ("NextTokenModel",)

    def refusal(self, checkpoint: Checkpoint, settings: Settings) -> str | None:
        """Return why a checkpoint cannot continue orbits, or None."""
        protocol = checkpoint.protocol
        least = 8 * (protocol.max_planets + 1)
        if protocol.n_points < least:
            return (
                f"n_points={protocol.n_points} is less than four steps of {protocol.max_planets} "
                f"planets and their star in each half; train with {least} or more"
            )
        return None

    def measure(self, checkpoint: Checkpoint, settings: Settings, pieces: Pieces) -> list[Outcome]:
        """Return errors of the model, of its untrained twin and of the references."""
        indices = np.arange(settings.n_sequences)
        world = checkpoint.protocol.systems(settings.data_seed, "test", indices)
        test = HeldOutSystems(checkpoint.protocol, world)
        models = {checkpoint.arm: checkpoint.model, **checkpoint.twins(settings.seeds[0])}
        outcomes = []
        work = [(arm, rows) for arm in models for rows in batches(test)]
        parts: dict[str, list[dict[str, npt.NDArray]]] = {arm: [] for arm in models}
        for arm, rows in pieces.progress(work):
            parts[arm].append(_predicted(models[arm], test, rows, {"arm": arm}, pieces))
        for arm, each in parts.items():
            predictions = joined(each)
            rolled = predictions["rolled"]
            files = {}
            if arm != "untrained":
                arrays = {**_shown(test, rolled), **_film(checkpoint.model, test)}
                artefact.save_arrays(pieces.folder / "orbits.npz", arrays, {})
                files = {"orbits": "orbits.npz"}
            outcomes.append(Outcome(_next_metrics(test, predictions), arm=arm, setting=NEXT))
            outcomes.append(_free(test, rolled, conserves=True, arm=arm, files=files))
        return outcomes + _references(test)

    def draw(self, results: Sequence[Result], out: Path) -> list[Picture]:
        """Draw errors, conservation, orbits and an animation."""
        return figures.draw_all([x for x in results if own_setting(x) == FREE], out)


def next_point(model: OrbitModel, protocol: Protocol, world: Systems) -> dict[str, Interval]:
    """Return how well a model predicts the next points of systems, each [value, low, high].

    Returns:
        ``nll``, nats of a row's two bins together; ``planet_error`` and ``star_error``, AU, of the
        mean of the predicted distribution, with ``_mode`` of its likeliest bins. Means over rows,
        with intervals over sequences.
    """
    test = HeldOutSystems(protocol, world)
    parts = [
        next_points(model, {name: value[rows] for name, value in test.batch.items()})
        for rows in batches(test)
    ]
    return _next_metrics(test, joined(parts))


def next_point_references(protocol: Protocol, world: Systems) -> dict[str, dict[str, Interval]]:
    """Return the same errors of references: a body at rest, a straight line, the fitted orbit."""
    test = HeldOutSystems(protocol, world)
    simple = references.last_points(test.observed, test.batch["body"], np.minimum(test.steps, 1))
    if protocol.max_planets == 1:
        simple[FIT] = fitted_next(test)
    return {name: _errors(test, points) for name, points in simple.items()}


def _predicted(
    model: OrbitModel, test: HeldOutSystems, rows: slice, piece: dict[str, Any], pieces: Pieces
) -> dict[str, npt.NDArray]:
    """Return next points and rollouts of some sequences."""
    batch = {name: value[rows] for name, value in test.batch.items()}

    def compute() -> dict[str, npt.NDArray]:
        rolled = rolled_out(model, batch, test.n_prompt)
        return {**next_points(model, batch), "rolled": rolled}

    return pieces.arrays({**piece, "first": rows.start, "end": rows.stop, "rolled": "AU"}, compute)


def _next_metrics(test: HeldOutSystems, predictions: dict[str, npt.NDArray]) -> dict[str, Interval]:
    """Return the errors in AU of next points, and of a distribution the nats per row."""
    nats = predictions.get("nll")
    likelihood = (
        {}
        if nats is None
        else {
            "nll": mean_of(np.where(test.steps > 0, nats, np.nan)),
            "nll_all_rows": mean_of(nats[:, 1:]),
        }
    )
    return {
        **likelihood,
        **_errors(test, predictions["expected"]),
        **{f"{k}_mode": v for k, v in _errors(test, test.decoded(predictions["mode"])).items()},
    }


def _errors(test: HeldOutSystems, points: Array) -> dict[str, Interval]:
    return {f"{body}_error": mean_of(error) for body, error in test.errors(points).items()}


def _free(test: HeldOutSystems, points: Array, conserves: bool, **case: Any) -> Outcome:
    """Return the errors of a rollout and their curves."""
    metrics, curves = _errors(test, points), {}
    for body, error in test.errors(points).items():
        by_step = [
            np.nanmean(np.where(test.steps == h, error, np.nan), axis=1)
            for h in range(1, 1 + test.most_steps)
        ]
        curves[f"{body}_error"] = curve(np.stack(by_step, axis=1))
    if conserves and test.protocol.is_two_body:
        missed = references.deviations(
            test.protocol, test.world, points, test.batch["body"], test.n_prompt
        )
        for name, value in missed.items():
            defined = np.isfinite(value).any(axis=2).all(axis=0)
            # To miss by all of it or by many times it is equally wrong: close encounters of
            # bodies that a rollout makes by mistake must not be the whole mean.
            share = np.nanmean(np.minimum(np.abs(value[:, defined]), 1), axis=2)
            metrics[f"{name}_error"] = mean_of(share)
            metrics[f"{name}_drift"] = median_of(np.abs(_slope(value[:, defined])))
            curves[f"{name}_error"] = curve(share)
    return Outcome(metrics, {"curves": curves}, setting=FREE, **case)


def _slope(values: Array) -> Array:
    """Return the least-squares slope per step of each planet's row in [N, H, P], [N, P]."""
    step = np.arange(values.shape[1]) - (values.shape[1] - 1) / 2
    return np.einsum("nhp,h->np", values, step) / np.sum(step**2)


def _references(test: HeldOutSystems) -> list[Outcome]:
    """Return the errors of the true orbit, its fit, a linear filter, and bodies at rest or not."""
    outcomes = []
    orbits = [(IN_BINS, "oracle", test.observed, test.observed)]
    if test.protocol.max_planets == 1:
        orbits.append((FIT, "ceiling", fitted_next(test), _fitted_free(test)))
    if refusal(test.protocol) is None:
        linear = linear_autoregression(test.protocol)
        rolled = linear.rollout(test.observed, test.n_prompt)
        orbits.append((FILTER, "control", linear.next_points(test.observed), rolled))
    for variant, arm, following, rolled in orbits:
        errors = _errors(test, following)
        outcomes.append(Outcome(errors, variant=variant, arm=arm, setting=NEXT))
        outcomes.append(_free(test, rolled, conserves=True, variant=variant, arm=arm))
    body = test.batch["body"]
    once = references.last_points(test.observed, body, np.minimum(test.steps, 1))
    often = references.last_points(test.observed, body, test.steps)
    for variant in once:
        errors = _errors(test, once[variant])
        outcomes.append(Outcome(errors, variant=variant, arm="control", setting=NEXT))
        rolled = often[variant]
        outcomes.append(_free(test, rolled, conserves=False, variant=variant, arm="control"))
    return outcomes


def _fitted_free(test: HeldOutSystems) -> Array:
    """Return the observed prompt and the orbit that fits it best, [N, T, 2]."""
    points = test.observed.copy()
    orbit = fit(test.protocol, test.world, test.n_prompt - 1)
    points[:, test.n_prompt :] = orbit.points[:, test.n_prompt - 1 :]
    return points


def _shown(test: HeldOutSystems, rolled: Array) -> dict[str, npt.NDArray]:
    """Return the first sequences, as the figures need them."""
    return {
        "true": test.batch["coordinates"][:SHOWN],
        "rolled": rolled[:SHOWN],
        "body": test.batch["body"][:SHOWN],
        "n_prompt": np.array(test.n_prompt),
    }


def _film(model: OrbitModel, test: HeldOutSystems) -> dict[str, npt.NDArray]:
    """Return one sequence true and rolled out: the Solar System where the protocol holds it."""
    is_solar = True
    try:
        film = solar_system.single_sequence(test.protocol)
    except ValueError:  # its box is too small
        is_solar = False
        film = {name: value[:1] for name, value in test.batch.items()}
    rolled = rolled_out(model, film, test.n_prompt)
    return {
        "film_true": film["coordinates"][0],
        "film_rolled": rolled[0],
        "film_body": film["body"][0],
        "film_dt": film["dt"][0],
        "film_is_solar": np.array(is_solar),
    }


PROBE = Rollout()
