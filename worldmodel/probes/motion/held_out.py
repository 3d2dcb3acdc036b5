"""Held-out sequences for the probes of motion: a model's predictions on them, and their errors."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from orbits.arithmetic import Array
from orbits.ceiling import fit
from orbits.protocols import Protocol
from orbits.runs import statistics
from orbits.runs.statistics import Interval
from orbits.systems import Systems
from worldmodel.models.gpt_world import world_model
from worldmodel.models.orbit import OrbitModel
from worldmodel.probes.motion import references
from worldmodel.world_model import Seen, is_exact, predicted, rollout, seen

BELIEVED_STEPS = 30
"""Most steps of a fit under a law that is not that of the world."""
_LARGEST_BATCH = 250
_MOST_LOGITS = 2**27


@dataclass(frozen=True)
class HeldOutSystems:
    """Held-out systems as observed; the second half of each sequence is predicted.

    Attributes:
        protocol: The protocol of observation.
        world: The systems, N.
        labelled: Whether forces are predicted: of systems with one planet.
    """

    protocol: Protocol
    world: Systems
    labelled: bool = False

    @property
    def n_prompt(self) -> int:
        """Rows of the prompt: the time-step row and the first half of the points."""
        return 1 + self.protocol.n_points // 2

    @cached_property
    def batch(self) -> dict[str, npt.NDArray]:
        """The observation, as :meth:`orbits.protocols.Protocol.observe` returns it."""
        return self.protocol.observe(self.world, self.labelled)

    @cached_property
    def observed(self) -> Array:
        """The centres in AU of the observed bins, [N, T, 2]; zero in row 0."""
        return self.decoded(self.batch["tokens"])

    @cached_property
    def steps(self) -> npt.NDArray[np.int64]:
        """Number of steps that each row lies beyond the prompt, [N, T]."""
        return references.steps_ahead(self.batch["body"], self.n_prompt)

    @property
    def most_steps(self) -> int:
        """Steps beyond the prompt that all bodies of all sequences have."""
        beyond = self.steps.shape[1] - self.n_prompt
        return int(beyond // references.turn(self.batch["body"]).max())

    def decoded(self, tokens: npt.NDArray) -> Array:
        """Return the centres in AU of bins [N, T, 2]; zero in row 0."""
        points = np.zeros(tokens.shape)
        points[:, 1:] = self.protocol.tokens.decode(tokens[:, 1:])
        return points

    def errors(self, points: Array) -> dict[str, Array]:
        """Return the distance in AU of each predicted row from the truth, NaN elsewhere.

        Returns:
            ``planet`` and ``star``, each [N, T].
        """
        distance = np.linalg.norm(points - self.batch["coordinates"], axis=-1)
        body, predicted = self.batch["body"], self.steps > 0
        return {
            "planet": np.where(predicted & (body > 0), distance, np.nan),
            "star": np.where(predicted & (body == 0), distance, np.nan),
        }


def batches(test: HeldOutSystems) -> list[slice]:
    """Return slices of the sequences whose logits fit in memory together."""
    n, rows = test.batch["body"].shape
    size = min(_LARGEST_BATCH, max(1, _MOST_LOGITS // (2 * rows * test.protocol.n_bins)))
    return [slice(start, min(start + size, n)) for start in range(0, n, size)]


def joined(parts: Sequence[Mapping[str, npt.NDArray]]) -> dict[str, npt.NDArray]:
    """Return one after the other the arrays that parts have under the same names."""
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def tensors(model: OrbitModel, batch: Mapping[str, npt.NDArray]) -> dict[str, Tensor]:
    """Return a model's inputs for an observation, on the model's device."""
    device = model.device
    return {
        "tokens": torch.from_numpy(batch["tokens"].astype(np.int64)).to(device),
        "coordinates": torch.from_numpy(batch["coordinates"].astype(np.float32)).to(device),
    }


def seen_by(model: Any, batch: Mapping[str, npt.NDArray]) -> tuple[Any, Seen]:
    """Return a model as a world model, and its view of an observation."""
    world = world_model(model)
    return world, seen(batch, world.layout, is_exact(world))


def next_points(model: Any, batch: Mapping[str, npt.NDArray]) -> dict[str, npt.NDArray]:
    """Return a model's predictions of each row from the true rows before it.

    Returns:
        ``nll`` float32 [B, T], nats of the row's two bins together
        (:mod:`worldmodel.models.next_point`), of a model that predicts a distribution;
        ``expected`` float32 [B, T, 2], the mean place in AU; ``mode`` uint16 [B, T, 2], the bins
        that a rollout takes. Zero in row 0.
    """
    world, read = seen_by(model, batch)
    prediction = predicted(world, read)
    nats = prediction.nats(read)
    found = {
        "nll": None if nats is None else nats.sum(axis=-1),
        "expected": prediction.expected()[:, :-1],
        "mode": world.layout.encode(prediction.likeliest()[:, :-1]),
    }
    arrays = {}
    for name, value in found.items():
        if value is not None:
            array = value.astype(np.uint16 if name == "mode" else np.float32)
            arrays[name] = np.concatenate([np.zeros_like(array[:, :1]), array], axis=1)
    return arrays


def medians(
    model: Any, test: HeldOutSystems, batch: Mapping[str, npt.NDArray] | None = None
) -> Array:
    """Return the median of each coordinate given the true rows before it, [N, T, 2] in AU.

    Row 0 is zero. The model is shown the batch in place of the observation, if there is one.
    """
    return _next_places(model, test, lambda prediction: prediction.median(), batch)


def expectations(model: Any, test: HeldOutSystems) -> Array:
    """Return the mean of each coordinate likewise, which unlikely places far away move."""
    return _next_places(model, test, lambda prediction: prediction.expected())


def spreads(model: Any, test: HeldOutSystems) -> Array:
    """Return half the width of the middle 68% of each coordinate likewise, in AU."""
    low = _next_places(model, test, lambda prediction: prediction.quantile(0.16))
    high = _next_places(model, test, lambda prediction: prediction.quantile(0.84))
    return (high - low) / 2


def _next_places(
    model: Any,
    test: HeldOutSystems,
    of: Callable[[Any], npt.NDArray],
    batch: Mapping[str, npt.NDArray] | None = None,
) -> Array:
    shown, found = test.batch if batch is None else batch, []
    for rows in batches(test):
        some = {name: value[rows] for name, value in shown.items()}
        found.append(of(predicted(*seen_by(model, some)))[:, :-1])
    points = np.concatenate(found).astype(np.float64)
    return np.concatenate([np.zeros_like(points[:, :1]), points], axis=1)


def rolled_out(
    model: Any,
    batch: Mapping[str, npt.NDArray],
    n_prompt: int,
    generator: torch.Generator | None = None,
) -> npt.NDArray[np.float64]:
    """Return a prompt as the model reads it, and its continuation, [B, T, 2] in AU; zero in row 0.

    The prompt is exact where the model's input is, and else the centres of its bins. With a
    generator a model of this package draws each row from its distribution.
    """
    world, read = seen_by(model, batch)
    prompt, n_rows = read.rows(n_prompt), read.tokens.shape[1] - n_prompt
    points: npt.NDArray[np.float64] = (
        rollout(world, prompt, n_rows)
        if generator is None
        else world.rolled_out(prompt, n_rows, generator)
    )
    points[:, 0] = 0
    return points


def continued(
    model: Any,
    test: HeldOutSystems,
    batch: Mapping[str, npt.NDArray] | None = None,
    generator: torch.Generator | None = None,
) -> Array:
    """Return prompts and a model's continuations of all sequences, [N, T, 2] in AU."""
    shown = test.batch if batch is None else batch
    parts = [
        rolled_out(model, {k: v[rows] for k, v in shown.items()}, test.n_prompt, generator)
        for rows in batches(test)
    ]
    return np.concatenate(parts)


def first_and_last(test: HeldOutSystems, *points: Array) -> dict[str, Interval]:
    """Return the errors of continuations [N, T, 2] a step after the prompt and at the end, in AU.

    They are distances of all bodies from the truth, of several continuations their means.
    """
    bodies = test.protocol.n_bodies or 2
    first, places = (test.n_prompt - 1) // bodies, test.protocol.n_points // bodies
    errors = [test.errors(each) for each in points]
    # Of planet and star one is NaN in each row.
    off = np.mean([np.fmax(each["planet"], each["star"]) for each in errors], axis=0)
    return {
        "first_error": mean_of(off[:, 1 + bodies * first : 1 + bodies * (first + 1)]),
        "last_error": mean_of(off[:, 1 + bodies * (places - 1) : 1 + bodies * places]),
    }


def fitted_next(
    test: HeldOutSystems, population: Systems | None = None, believed: str | None = None
) -> Array:
    """Return where the orbit that fits the points before each one best puts it, [N, T, 2].

    The ceiling of next points, for systems of one planet; the observed points in the prompt.
    """
    points, start = test.observed.copy(), None
    # From the truth three steps have converged to 1e-7 AU.
    most = 3 if believed is None else BELIEVED_STEPS
    for row in range(test.n_prompt, points.shape[1]):
        orbit = fit(
            test.protocol, test.world, row - 1, population, most, believed=believed, start=start
        )
        points[:, row] = orbit.points[:, row - 1]
        start = None if believed is None else orbit.theta  # else from the truth each time
    return points


def mean_of(values: Array) -> Interval:
    """Return the mean of values [N, ...] that are not NaN, with its interval over sequences."""
    table = values.reshape(len(values), -1)
    return statistics.mean(np.nansum(table, axis=1), np.isfinite(table).sum(axis=1))


def median_of(values: Array) -> Interval:
    """Return the median of values [N, ...] that are not NaN, with its interval over sequences."""
    return statistics.median(values.reshape(len(values), -1))


def curve(values: Array) -> dict[str, Any]:
    """Return the mean over sequences of [N, H], and 1.96 standard errors, as lists."""
    n = np.isfinite(values).sum(axis=0)
    half = 1.96 * np.nanstd(values, axis=0, ddof=1) / np.sqrt(n)
    return {"mean": np.nanmean(values, axis=0).tolist(), "half_width": half.tolist()}
