"""Cells of a world model: the law of its continuations, and read-outs of its states."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import training
from benchmarks.training_options import Job
from orbits import motion, protocols
from orbits.protocols import Protocol
from orbits.runs.cell import Outcome
from orbits.runs.statistics import Interval, r_squared
from worldmodel.controls.noisy_observer import NoisyObserver
from worldmodel.models.orbit import NextTokenModel
from worldmodel.probes.implied.asked import Prompts, own_prompts, shifted_prompts
from worldmodel.probes.implied.references import continuations, truths
from worldmodel.probes.motion import rollout
from worldmodel.probes.motion.held_out import mean_of
from worldmodel.probes.read_out import Features, hidden_states, read, recent_places
from worldmodel.probes.settings import Settings

INSIDE, CLOSER = "inside", "closer"
"""Places of continued orbits: in the training box, and closer to the star than any in it."""

Plain = dict[str, Any]


def check_world(protocol: Protocol, places: Sequence[int]) -> None:
    """Refuse a world that these questions cannot be asked in, with a ValueError."""
    if protocol.law != motion.NEWTON:
        raise ValueError(f"law {protocol.law!r} has no Kepler's ellipses; take newton")
    if protocol.max_planets != 1 or protocol.sampler != "identifiable":
        raise ValueError(
            f"protocol {protocol.name!r} has no closer orbits of one planet; take identifiable"
        )
    if protocol.n_points % 4 or protocol.n_points < 20:
        raise ValueError(f"n_points must be a multiple of 4 from 20 on, got {protocol.n_points}")
    if max(places) > protocol.n_points // 2:
        raise ValueError(
            f"places must be at most half of n_points, {protocol.n_points // 2}, got {max(places)}"
        )


def carried(
    data: Plain,
    world: Plain,
    n: int,
    pretrained: Path | None = None,
    job: Job | None = None,
) -> list[Outcome]:
    """Ask a world model for next points and for continuations.

    Returns:
        An outcome for each place where orbits are continued, the first with the next points too.
    """
    protocol = _protocol(data, world)
    model = training.trained_or_not(pretrained, job, NextTokenModel)
    asked = _prompts(protocol, n)
    held = asked[INSIDE].test
    next_points = rollout.next_point(model, protocol, held.world)
    outcomes = []
    for where, prompts in asked.items():
        metrics = _measured(prompts, prompts.continued(model))
        metrics |= next_points if where == INSIDE else {}
        outcomes.append(Outcome(metrics, setting={"where": where}))
    return outcomes


def references(data: Plain, world: Plain, n: int) -> list[Outcome]:
    """Measure continuations without a model: the truth, a fit, extrapolation, a table."""
    protocol, outcomes = _protocol(data, world), []
    for where, prompts in _prompts(protocol, n).items():
        others = [*truths(prompts.test), *continuations(prompts.test, protocol)]
        for name, arm, points in others:
            metrics = _measured(prompts, points)
            outcomes.append(Outcome(metrics, variant=name, arm=arm, setting={"where": where}))
    return outcomes


def observed(data: Plain, world: Plain, n: int, noise: float, n_rows: int) -> list[Outcome]:
    """Measure continuations by who holds the law, and sees few rows through noise."""
    protocol, outcomes = _protocol(data, world), []
    observer = NoisyObserver(protocol, noise, n_rows)
    for where, prompts in _prompts(protocol, n).items():
        batch, first = prompts.test.batch, prompts.test.n_prompt
        points = observer.rollout(batch["coordinates"], first, batch["tokens"][:, 0, 0])
        outcomes.append(Outcome(_measured(prompts, points), setting={"where": where}))
    return outcomes


def read_outs(
    data: Plain,
    world: Plain,
    n: int,
    labels: int,
    body: str,
    pretrained: Path | None = None,
    job: Job | None = None,
) -> list[Outcome]:
    """Read a model's states by ridge regression; an outcome for each layer."""
    features = hidden_states(training.trained_or_not(pretrained, job, NextTokenModel))
    return _read(features, _protocol(data, world), n, labels, body)


def read_places(
    data: Plain, world: Plain, n: int, labels: int, body: str, n_rows: int
) -> list[Outcome]:
    """Read the last exact places, without a model; arguments as for :func:`read_outs`."""
    protocol = _protocol(data, world)
    return _read(recent_places(protocol.tokens, n_rows), protocol, n, labels, body)


def _read(features: Features, protocol: Protocol, n: int, labels: int, body: str) -> list[Outcome]:
    settings = Settings(n_sequences=n, labels=labels)
    layers: dict[str, dict[str, Interval]] = {}
    for place, sums in read(features, protocol, settings, body=body).items():
        layer, target = place.split("/")
        layers.setdefault(layer, {})[f"r2_{target}"] = r_squared(*sums.T)
    return [Outcome(metrics, setting={"layer": layer}) for layer, metrics in layers.items()]


def _protocol(data: Plain, world: Mapping[str, Any]) -> Protocol:
    """Return the world of a cell."""
    return protocols.get(data["protocol"], data["protocol_args"]).unchanged(world)


def _prompts(protocol: Protocol, n: int) -> dict[str, Prompts]:
    """Return the prompts inside the training box and closer than any orbit in it."""
    return {
        INSIDE: own_prompts(protocol, protocol.law, 0, n),
        CLOSER: shifted_prompts(protocol, CLOSER, 0, n),
    }


def _measured(prompts: Prompts, points: np.ndarray) -> dict[str, Interval]:
    errors = prompts.test.errors(points)
    off = np.fmax(errors["planet"], errors["star"])  # one of them is NaN in each row
    return {**prompts.measured(points), "rollout_error": mean_of(off)}
