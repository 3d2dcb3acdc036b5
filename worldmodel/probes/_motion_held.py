"""Held-out sequences for the probes of motion: what a model answers on them, and its errors."""

from __future__ import annotations

from collections.abc import Mapping
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
from orbits.systems import Systems
from worldmodel import intervals
from worldmodel.probes import _motion
from worldmodel.rollout import rollout
from worldmodel.tasks import NextTokenTask, OrbitTask

_LARGEST_BATCH = 250
_MOST_LOGITS = 2**27

Metric = list[float]


@dataclass(frozen=True)
class Held:
    """Observed systems, of which the second half is asked.

    Attributes:
        protocol: What observes.
        world: The systems, N.
        labelled: Whether forces are asked: of systems with one planet.
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
        """How many steps each row lies beyond the prompt, [N, T]."""
        return _motion.steps_ahead(self.batch["body"], self.n_prompt)

    @property
    def most_steps(self) -> int:
        """As many steps as all bodies of all sequences go beyond the prompt."""
        beyond = self.steps.shape[1] - self.n_prompt
        return int(beyond // _motion.turn(self.batch["body"]).max())

    def decoded(self, tokens: npt.NDArray) -> Array:
        """Return the centres in AU of bins [N, T, 2]; zero in row 0."""
        points = np.zeros(tokens.shape)
        points[:, 1:] = self.protocol.tokens.decode(tokens[:, 1:])
        return points

    def errors(self, points: Array) -> dict[str, Array]:
        """Return the distance in AU of each asked row from the truth, NaN elsewhere.

        Args:
            points: Predicted places in AU, [N, T, 2].

        Returns:
            ``planet`` and ``star``, each [N, T].
        """
        distance = np.linalg.norm(points - self.batch["coordinates"], axis=-1)
        body, asked = self.batch["body"], self.steps > 0
        return {
            "planet": np.where(asked & (body > 0), distance, np.nan),
            "star": np.where(asked & (body == 0), distance, np.nan),
        }


def batches(held: Held) -> list[slice]:
    """Return which sequences go through a model together, so that logits fit in memory."""
    n, rows = held.batch["body"].shape
    size = min(_LARGEST_BATCH, max(1, _MOST_LOGITS // (2 * rows * held.protocol.n_bins)))
    return [slice(start, min(start + size, n)) for start in range(0, n, size)]


def tensors(task: OrbitTask, batch: Mapping[str, npt.NDArray]) -> dict[str, Tensor]:
    """Return what a task reads of an observation, where the task is."""
    device = task.device
    return {
        "tokens": torch.from_numpy(batch["tokens"].astype(np.int64)).to(device),
        "coordinates": torch.from_numpy(batch["coordinates"].astype(np.float32)).to(device),
    }


@torch.no_grad()
def next_points(task: OrbitTask, batch: Mapping[str, npt.NDArray]) -> dict[str, npt.NDArray]:
    """Return what a model expects of each row from the true rows before it.

    Returns:
        ``nll`` float32 [B, T], nats of the row's two bins together; ``expected`` float32
        [B, T, 2], the mean place in AU; ``mode`` uint16 [B, T, 2], the likeliest bins. Zero in
        row 0.
    """
    read = tensors(task, batch)
    log_p = task(read).log_softmax(dim=-1)
    layout = task.layout
    centres = layout.low + (torch.arange(layout.n_bins, device=log_p.device) + 0.5) * layout.width
    nll = -log_p.gather(-1, read["tokens"][:, 1:, :, None])[..., 0].sum(dim=-1)
    found = {
        "nll": nll.float(),
        "expected": (log_p.exp() @ centres.to(log_p.dtype)).float(),
        "mode": log_p.argmax(dim=-1).to(torch.int32),
    }
    arrays = {}
    for name, value in found.items():
        array = value.cpu().numpy()
        array = array.astype(np.uint16) if name == "mode" else array
        arrays[name] = np.concatenate([np.zeros_like(array[:, :1]), array], axis=1)
    return arrays


def rolled_out(
    task: OrbitTask, batch: Mapping[str, npt.NDArray], n_prompt: int
) -> npt.NDArray[np.uint16]:
    """Return a prompt and its continuation by the likeliest bins, [B, T, 2]."""
    prompt = {name: value[:, :n_prompt] for name, value in tensors(task, batch).items()}
    n_rows = batch["tokens"].shape[1] - n_prompt
    assert isinstance(task, NextTokenTask)
    return rollout(task, prompt, n_rows).cpu().numpy().astype(np.uint16)


def fitted_next(held: Held, population: Systems | None = None) -> Array:
    """Return where the orbit that fits the points before each asked one best puts it, [N, T, 2].

    The ceiling of next points, for systems of one planet; the observed points in the prompt.

    Args:
        held: What is asked.
        population: As for :func:`orbits.ceiling.fit`.
    """
    points = held.observed.copy()
    for row in range(held.n_prompt, points.shape[1]):
        # It starts at the truth: three steps have converged to 1e-7 AU.
        found = fit(held.protocol, held.world, row - 1, population, iterations=3)
        points[:, row] = found.points[:, row - 1]
    return points


def mean_of(values: Array) -> Metric:
    """Return the mean of what is not NaN in [N, ...], with its interval over sequences."""
    table = values.reshape(len(values), -1)
    return intervals.mean(np.nansum(table, axis=1), np.isfinite(table).sum(axis=1))


def median_of(values: Array) -> Metric:
    """Return the median of what is not NaN in [N, ...], with its interval over sequences."""
    return intervals.median(values.reshape(len(values), -1))


def curve(values: Array) -> dict[str, Any]:
    """Return the mean over sequences of [N, H], and 1.96 standard errors, as lists."""
    n = np.isfinite(values).sum(axis=0)
    half = 1.96 * np.nanstd(values, axis=0, ddof=1) / np.sqrt(n)
    return {"mean": np.nanmean(values, axis=0).tolist(), "half_width": half.tolist()}
