"""The cells of the study ``cost``: each times one step of a GPT, in training or evaluation."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from unittest import mock

import torch
from torch import Tensor, nn
from torch.nn import functional

import attention
from attention import linear
from attention.backends import BACKENDS, Backend
from benchmarks.cost import eager, timing
from benchmarks.cost.cost import Costs, CostStudy
from benchmarks.study import MEASUREMENT
from orbits.runs.cell import Cell, Outcome, leave_out
from orbits.runs.choices import check_choice
from orbits.runs.result import Case
from worldmodel.models.backbone import GPT

MODES = ("train", "evaluation")
METRICS = {
    "seconds": "latency",
    "seconds_20": "latency_20",
    "seconds_80": "latency_80",
    "tokens_per_s": "throughput",
    "bytes": "memory",
}
"""Names of the study's metrics for those of :func:`timings`."""
EAGER = Backend(
    refuses=lambda spec, q, v: None,
    avoids=lambda spec, q, v: "it is measured, not used",
    attend=lambda q, k, v, spec, learned: eager.attend(q, k, v, spec, (learned or {}).get("tau")),
)


@dataclass(frozen=True)
class Size:
    """Size of a model and of its batch, and their precision.

    Attributes:
        batch: Sequences of a step.
        dtype: Precision of the products.
        n_layer: Blocks.
        n_head: Heads of 64 channels.
        vocabulary: Tokens.
        length: Tokens of a sequence.
    """

    batch: int
    dtype: torch.dtype
    n_layer: int = 12
    n_head: int = 12
    vocabulary: int = 50_257
    length: int = 1024


SIZES = {
    "lssar-a7": Size(4, torch.bfloat16),
    "zeros-7": Size(8, torch.float32),
    "small": Size(1, torch.float32, n_layer=1, n_head=2, vocabulary=257),
    "small-256": Size(4, torch.float32, n_layer=1, n_head=2, vocabulary=257, length=256),
    "tiny": Size(1, torch.float32, n_layer=1, n_head=2, vocabulary=257, length=64),
}
"""Sizes: GPT-2 124M as in LSSAR Table A7 and ZeroS Table 7, and small blocks in its place."""
VERSION = 2
"""Version of the cells; in the first, embeddings were fifty times as long."""
CPU_REPEATS = 15
"""Steps that are timed on a CPU."""
ELSEWHERE = {("cpu", "triton"): timing.NEEDS_GPU, ("cuda", "blocked"): "is for a CPU"}
"""Reasons why an implementation is not timed on a device."""


def cells(study: CostStudy, settings: Costs) -> Iterator[Cell]:
    """Yield a cell per round, mode, size, variant and implementation.

    Training comes before evaluation, so that what no time is left for is least wanted.
    """
    for size in settings.sizes:
        check_choice("size", size, SIZES)
    timed = [(name, backend) for name in settings.attention for backend in backends(name)]
    places = itertools.product(settings.rounds, MODES, settings.sizes, timed)
    for number, mode, size, (name, backend) in places:
        setting = {"setting": size, "mode": mode, "backend": backend}
        case = Case(study.name, MEASUREMENT, attention.label(name), seed=number, setting=setting)
        if reason := ELSEWHERE.get((settings.device, backend)):
            yield Cell(leave_out, case, {"why": reason})
            continue
        arguments = {"size": size, "backend": backend, "variant": name, "mode": mode}
        arguments |= {"device": settings.device}
        yield Cell(measure, case, arguments, version=VERSION)


def backends(name: str) -> tuple[str, ...]:
    """Return the implementations of a variant or linear mixer that are timed."""
    if name in linear.names():
        return ("own",)
    if name not in eager.NAMES:
        known = ", ".join((*eager.NAMES, *linear.names()))
        raise ValueError(f"{name!r} has no plain implementation to time; choose from {known}")
    one = torch.empty(1, 1, 1, 64)
    blocked = BACKENDS["blocked"].refuses(attention.get(name), one, one) is None
    served = {"sdpa": name == "softmax", "eager": True, "blocked": blocked, "triton": True}
    return tuple(backend for backend, serves in served.items() if serves)


def measure(size: str, backend: str, variant: str, mode: str, device: str) -> Outcome:
    """Time a step of one of ``MODES``; see :func:`timings`."""
    timing.free_memory(device)
    values = timings(size, backend, variant, mode == "train", device)
    # Without gradients autograd keeps nothing on a CPU.
    metrics = {METRICS[name]: value for name, value in values.items() if value}
    return timing.outcome(metrics, device)


@mock.patch.dict(BACKENDS, eager=EAGER)
def timings(size: str, backend: str, variant: str, trained: bool, device: str) -> dict[str, float]:
    """Time a step of a GPT.

    Returns:
        ``seconds`` with quantiles, see :func:`timing.times`; ``tokens_per_s``; ``bytes``: on a GPU
        the absolute peak, weights and optimiser included, as the papers' tables have it; on a CPU
        what autograd keeps beside the parameters, nothing in evaluation.
    """
    sizes = SIZES[size]
    torch.manual_seed(0)
    with torch.device(device):  # a GPU draws 124M weights sooner
        model = Model(variant, backend, sizes.n_layer, sizes.n_head, sizes.vocabulary)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=device == "cuda")
    tokens = torch.randint(sizes.vocabulary, (sizes.batch, sizes.length + 1), device=device)

    def step() -> None:
        precision = torch.autocast(device, sizes.dtype, enabled=sizes.dtype != torch.float32)
        with precision, torch.set_grad_enabled(trained):
            loss = model(tokens)
        if trained:
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()

    step()
    if device == "cuda":
        used = timing.peak_bytes(step)
    else:
        used = timing.kept_bytes(step, model.parameters())
    times = timing.times(step, device, milliseconds=500, repeats=CPU_REPEATS)
    rate = sizes.batch * sizes.length / times["seconds"]
    return {**times, "bytes": used, "tokens_per_s": rate}


class Model(nn.Module):
    """GPT with a tied embedding, and its loss."""

    def __init__(
        self, variant: str, backend: str, n_layer: int, n_head: int, vocabulary: int
    ) -> None:
        super().__init__()
        arguments = None if backend == "own" else {"backend": backend}
        self.gpt = GPT(variant, arguments, n_layer, n_head, head_dim=64)
        self.embedding = nn.Embedding(vocabulary, self.gpt.width)
        # As GPT-2's. Of embeddings of length 1 a channel, probabilities end below 2^-126, numbers
        # on which a CPU spends half of the step.
        nn.init.normal_(self.embedding.weight, std=0.02)

    def forward(self, tokens: Tensor) -> Tensor:
        """Return the loss of [B, T + 1] tokens."""
        hidden = self.gpt(self.embedding(tokens[:, :-1]))
        logits = functional.linear(hidden, self.embedding.weight)
        return functional.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten())
