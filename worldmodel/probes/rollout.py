"""How well a world model predicts: the next point, a free rollout, and what motion conserves.

The second half of held-out sequences is asked. A next point is predicted from the true rows
before it; a rollout goes on from the first half by the model's own answers, each the likeliest
bin. Errors are distances in AU from where the body is, of the mean of the predicted distribution
for next points and of the chosen bin in rollouts.

Energy and angular momentum come from rolled-out places by central differences, which miss the
truth by themselves where an orbit is observed a dozen times per turn: the true orbit, in bins and
measured in the same way, says by how much. An error is the mean share by which a rollout misses
the true orbit's value, a drift the median size of the slope of that deviation, with its sign, per
step: a rollout that is wrong in another way at every step has a large one, too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from orbits import artefacts, solar_system
from orbits.arithmetic import Array
from orbits.ceiling import fit
from orbits.manifest import manifest
from orbits.protocols import Protocol
from orbits.systems import Systems
from worldmodel.controls.linear_autoregression import FILTER, linear_autoregression, refusal
from worldmodel.probes import Line, _motion, _motion_figures
from worldmodel.probes._motion_held import (
    Held,
    batches,
    curve,
    fitted_next,
    mean_of,
    median_of,
    next_points,
    rolled_out,
)
from worldmodel.probing import Settings, Store, Subject
from worldmodel.tasks import NextTokenTask, OrbitTask

NEXT, FREE = {"asked": "next point"}, {"asked": "rollout"}
SHOWN = 4
"""Sequences that are drawn: the first ones, whatever they look like."""


class Rollout:
    """The probe; see the module."""

    name = "rollout"
    about = "Errors of next points and of free rollouts; what rollouts conserve."
    uses = ("n_sequences", "seeds", "data_seed")
    trains = False
    captions: Mapping[str, str] = _motion_figures.CAPTIONS

    def refusal(self, subject: Subject, settings: Settings) -> str | None:
        """Return why a checkpoint cannot continue orbits, or None."""
        if not isinstance(subject.task, NextTokenTask):
            return f"a {type(subject.task).__name__} predicts no next row; take a NextTokenTask"
        protocol = subject.protocol
        least = 8 * (protocol.max_planets + 1)
        if protocol.n_points < least:
            return (
                f"n_points={protocol.n_points} is less than four steps of {protocol.max_planets} "
                f"planets and their star in each half; train with {least} or more"
            )
        return None

    def measure(self, subject: Subject, settings: Settings, store: Store) -> list[Line]:
        """Return lines of the model, of its untrained twin and of the references."""
        indices = np.arange(settings.n_sequences)
        world = subject.protocol.systems(settings.data_seed, "test", indices)
        held = Held(subject.protocol, world)
        lines = []
        twin = subject.untrained(settings.seeds[0])
        for arm, task in ((subject.row["arm"], subject.task), ("untrained", twin)):
            piece = {"arm": arm, "data_seed": settings.data_seed, "twin": settings.seeds[0]}
            found = _answers(task, held, piece, store)
            rolled = held.decoded(found["rolled"])
            files = {}
            if arm != "untrained":
                path = store.file("orbits.npz")
                arrays = {**_shown(held, rolled), **_film(task, held)}
                artefacts.save_arrays(path, arrays, manifest(piece, seed=settings.seeds[0]))
                files = {"orbits": store.relative(path)}
            who = {"name": subject.model, "arm": arm}
            lines.append({**who, "setting": NEXT, "metrics": _next_metrics(held, found)})
            lines.append({**who, **_free(held, rolled, conserves=True), "files": files})
        return lines + _references(held)

    def draw(self, lines: Sequence[Line], out: Path) -> dict[str, Path]:
        """Draw errors, conservation, orbits and an animation."""
        return _motion_figures.draw_all([x for x in lines if x["setting"] == FREE], out)


def next_point(task: OrbitTask, protocol: Protocol, world: Systems) -> dict[str, list[float]]:
    """Return how well a model predicts the next points of systems, each [value, low, high].

    Args:
        task: A model of next points.
        protocol: What observes the systems.
        world: The systems, N. The second half of each sequence is asked.

    Returns:
        ``nll``, nats of a row's two bins together; ``planet_error`` and ``star_error``, AU, of the
        mean of the predicted distribution, with ``_mode`` of its likeliest bins. Means over rows,
        with intervals over sequences.
    """
    held = Held(protocol, world)
    parts = [
        next_points(task, {name: value[rows] for name, value in held.batch.items()})
        for rows in batches(held)
    ]
    found = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    return _next_metrics(held, found)


def next_point_references(protocol: Protocol, world: Systems) -> dict[str, dict[str, list[float]]]:
    """Return the same errors of what knows no model: a rest, a straight line, the orbit's fit."""
    held = Held(protocol, world)
    found = _motion.references(held.observed, held.batch["body"], np.minimum(held.steps, 1))
    if protocol.max_planets == 1:
        found["orbit fit"] = fitted_next(held)
    return {name: _errors(held, points) for name, points in found.items()}


def _answers(
    task: OrbitTask, held: Held, piece: dict[str, Any], store: Store
) -> dict[str, npt.NDArray]:
    """Return next points and rollouts of all sequences, batch by batch."""
    parts = []
    for rows in store.progress(batches(held), piece["arm"]):
        batch = {name: value[rows] for name, value in held.batch.items()}

        def compute(batch: dict[str, npt.NDArray] = batch) -> dict[str, npt.NDArray]:
            rolled = rolled_out(task, batch, held.n_prompt)
            return {**next_points(task, batch), "rolled": rolled}

        parts.append(store.arrays({**piece, "first": rows.start, "end": rows.stop}, compute))
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def _next_metrics(held: Held, found: dict[str, npt.NDArray]) -> dict[str, list[float]]:
    """Return the likelihood in nats per row and the errors in AU of next points."""
    asked = held.steps > 0
    return {
        "nll": mean_of(np.where(asked, found["nll"], np.nan)),
        "nll_all_rows": mean_of(found["nll"][:, 1:]),
        **_errors(held, found["expected"]),
        **{f"{k}_mode": v for k, v in _errors(held, held.decoded(found["mode"])).items()},
    }


def _errors(held: Held, points: Array) -> dict[str, list[float]]:
    return {f"{body}_error": mean_of(error) for body, error in held.errors(points).items()}


def _free(held: Held, points: Array, conserves: bool) -> dict[str, Any]:
    """Return setting, metrics and curves of a rollout."""
    metrics, curves = _errors(held, points), {}
    for body, error in held.errors(points).items():
        by_step = [
            np.nanmean(np.where(held.steps == h, error, np.nan), axis=1)
            for h in range(1, 1 + held.most_steps)
        ]
        curves[f"{body}_error"] = curve(np.stack(by_step, axis=1))
    if conserves and not held.protocol.interacting:
        missed = _motion.deviations(
            held.protocol, held.world, points, held.batch["body"], held.n_prompt
        )
        for name, value in missed.items():
            known = np.isfinite(value).any(axis=2).all(axis=0)
            # To miss by all of it or by many times it is equally wrong: close encounters of
            # bodies that a rollout makes by mistake must not be the whole mean.
            share = np.nanmean(np.minimum(np.abs(value[:, known]), 1), axis=2)
            metrics[f"{name}_error"] = mean_of(share)
            metrics[f"{name}_drift"] = median_of(np.abs(_slope(value[:, known])))
            curves[f"{name}_error"] = curve(share)
    return {"setting": FREE, "metrics": metrics, "curves": curves}


def _slope(values: Array) -> Array:
    """Return the least-squares slope per step of each planet's row in [N, H, P], [N, P]."""
    step = np.arange(values.shape[1]) - (values.shape[1] - 1) / 2
    return np.einsum("nhp,h->np", values, step) / np.sum(step**2)


def _references(held: Held) -> list[Line]:
    """Return the lines of what knows no model: lines, a linear filter, the true orbit, its fit."""
    body = held.batch["body"]
    lines = []
    known = [("true orbit in bins", "oracle", held.observed, held.observed)]
    if held.protocol.max_planets == 1:
        known.append(("orbit fit", "ceiling", fitted_next(held), _fitted_free(held)))
    if refusal(held.protocol) is None:
        linear = linear_autoregression(held.protocol)
        rolled = linear.rollout(held.observed, held.n_prompt)
        known.append((FILTER, "control", linear.next_points(held.observed), rolled))
    for name, arm, following, rolled in known:
        who = {"name": name, "arm": arm}
        lines.append({**who, "setting": NEXT, "metrics": _errors(held, following)})
        lines.append({**who, **_free(held, rolled, conserves=True)})
    once = _motion.references(held.observed, body, np.minimum(held.steps, 1))
    often = _motion.references(held.observed, body, held.steps)
    for name in once:
        who = {"name": name, "arm": "control"}
        lines.append({**who, "setting": NEXT, "metrics": _errors(held, once[name])})
        lines.append({**who, **_free(held, often[name], conserves=False)})
    return lines


def _fitted_free(held: Held) -> Array:
    """Return the observed prompt and the orbit that fits it best, [N, T, 2]."""
    points = held.observed.copy()
    found = fit(held.protocol, held.world, held.n_prompt - 1)
    points[:, held.n_prompt :] = found.points[:, held.n_prompt - 1 :]
    return points


def _shown(held: Held, rolled: Array) -> dict[str, npt.NDArray]:
    """Return the first sequences, as the figures need them."""
    return {
        "true": held.batch["coordinates"][:SHOWN],
        "rolled": rolled[:SHOWN],
        "body": held.batch["body"][:SHOWN],
        "n_prompt": np.array(held.n_prompt),
    }


def _film(task: OrbitTask, held: Held) -> dict[str, npt.NDArray]:
    """Return one sequence true and rolled out: the Solar System where the protocol holds it."""
    is_solar = True
    try:
        film = solar_system.single_sequence(held.protocol)
    except ValueError:  # its box is too small
        is_solar = False
        film = {name: value[:1] for name, value in held.batch.items()}
    rolled = rolled_out(task, film, held.n_prompt)
    return {
        "film_true": film["coordinates"][0],
        "film_rolled": held.decoded(rolled)[0],
        "film_body": film["body"][0],
        "film_dt": film["dt"][0],
        "film_is_solar": np.array(is_solar),
    }


PROBE = Rollout()
