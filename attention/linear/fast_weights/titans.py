"""Titans: attention over a segment and a neural memory (Behrouz et al. 2024)."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional

from attention.linear._convolution import with_previous
from attention.linear._norm import normalised, smooth_unit
from attention.linear._projection import Projection
from attention.linear._segments import Segmented
from attention.linear.fast_weights._memory import Rates, chunked, recurrent
from attention.linear.mixer import RecurrentState
from attention.parts.precision import full_precision
from attention.positions import rope

FORGET = 0.01
"""Initial alpha, the rate at which the memory forgets."""


class Titans(Segmented):
    """Memory as a context: y = Attn([p, M(q), x]) of a segment, o = y * M_t(y) (Eqs. 21 to 25).

    A segment is read by softmax attention together with learned tokens p (persistent memory) and
    with what the memory, as it was before the segment, answers to its positions. The memory, a
    matrix for each head, then learns |k_t M - v_t|^2 = 0 of y by gradient descent with momentum and
    forgetting (``_memory.py``), with gradients at the matrix before the segment (Eq. 16), and its
    answer to y_t gates y_t. The rates alpha_t, eta_t and theta_t are sigmoids of linear functions
    of y_t, theta_t times (1 - eta_t) / (2 segment). Queries and keys of the memory are SiLU's, of
    length 1 in each head; values are SiLU's.

    Arguments:
        segment: Positions of a segment, and of the mini-batches that the memory learns from.
        persistent: Tokens of the persistent memory.
    """

    name = "titans"
    source = "Behrouz et al. 2024 (arXiv:2501.00663), Sects. 3 and 4.1: Titans, memory as a context"
    about = "Attention over a segment, its memory's answers and learned tokens; the memory learns."
    kept = "3 H D^2 + 4 H D (L - 1)"
    arguments: ClassVar = {"segment": 64, "persistent": 4}
    deviations = (
        "a position sees the memory's answers to itself and earlier ones (the figure's to the "
        "whole segment, which look ahead), and is gated by the memory after itself, not after the "
        "segment. The memory is linear (L_M = 1), a matrix for each head: with two layers "
        "forgetting drives both to 0, where no gradient is, and with a LayerNorm behind them, as "
        "in public code, rounding grows from segment to segment. theta is (1 - eta) sigmoid / (2 "
        "segment), so that a segment's steps do not overshoot; alpha starts at 0.01; o = "
        "RMSNorm(y) SiLU(RMSNorm(M(y))), where the paper leaves the gate open. No short "
        "convolutions."
    )
    undecayed = ("memory",)

    def __init__(self, n_head: int, head_dim: int, **args: Any) -> None:
        super().__init__(n_head, head_dim, **args)
        if head_dim % 2:
            raise ValueError(f"titans rotates pairs of channels: head_dim {head_dim} is odd")
        width = self.width
        self.query, self.key, self.value = (nn.Linear(width, width, bias=False) for _ in range(3))
        self.ask, self.write_key, self.write_value, self.project = (
            nn.Linear(width, width, bias=False) for _ in range(4)
        )
        self.rates = Projection(width, 3 * n_head)
        start = [math.log(FORGET / (1 - FORGET)), 0.0, 0.0]
        self.rate_offsets = nn.Parameter(torch.tensor(start).repeat(n_head))
        self.persistent = nn.Parameter(0.02 * torch.randn(self.args["persistent"], width))
        self.memory = nn.Parameter(0.02 * torch.randn(n_head, head_dim, head_dim))
        self.norm, self.memory_norm = (nn.RMSNorm(width, eps=1e-6) for _ in range(2))

    def _mix(self, x: Tensor, cache: RecurrentState, chunk: int | None) -> Tensor:
        heads = [self._split(layer(x)) for layer in (self.query, self.key, self.value, self.ask)]
        with full_precision(x):
            # What the memory answers comes back to it: a rounding in between would grow.
            memory = self.memory.to(heads[0].dtype).expand(len(x), -1, -1, -1)
            kept = [cache.tensors.get(name, memory) for name in ("start", "memory")]
            kept.append(cache.tensors.get("momentum", torch.zeros_like(memory)))
            found = []
            for place, piece in self._pieces(cache.length, x.shape[1], chunk):
                q, k, v, asked = (z[..., piece, :] for z in heads)
                answers = smooth_unit(functional.silu(asked)) @ kept[0]
                y = self._attended(q, k, v, answers, place, cache)
                y = normalised(self.norm, self._merge(y, y))
                read, *kept = self._learned(y, kept[0], kept[1], kept[2], chunk)
                if place + y.shape[1] == self.args["segment"]:
                    kept[0] = kept[1]
                gate = normalised(self.memory_norm, self._merge(read, read))
                found.append(y * functional.silu(gate))
        named = zip(("start", "memory", "momentum"), (z.clone() for z in kept), strict=True)
        cache.tensors = {**cache.tensors, **dict(named)}
        return self.project(torch.cat(found, dim=1).to(x.dtype))

    def _attended(
        self, q: Tensor, k: Tensor, v: Tensor, answers: Tensor, place: int, cache: RecurrentState
    ) -> Tensor:
        """Return y of positions from ``place`` of a segment on, all [B, H, L, D].

        RoPE's positions are those in the row of tokens: the persistent ones, then the memory's
        answers to a segment, then its inputs.
        """
        segment, fixed = self.args["segment"], self.args["persistent"]
        places = torch.arange(place, place + q.shape[-2], device=q.device)
        q, k = rope(q, places + fixed + segment), rope(k, places + fixed + segment)
        answers = self._merge(answers, answers)
        k_answers, v_answers = (self._head(layer, answers) for layer in (self.key, self.value))
        k_answers = rope(k_answers, places + fixed)
        written = torch.cat([self._merge(z, z) for z in (k, k_answers, v, v_answers)], dim=-1)
        seen = with_previous(written, segment - 1, cache, "recent_context")
        seen = seen[:, segment - 1 - place :]
        k, k_answers, v, v_answers = (self._split(z) for z in seen.chunk(4, dim=-1))
        persistent = self.persistent[None].to(q.dtype)
        k_fixed, v_fixed = (self._head(layer, persistent) for layer in (self.key, self.value))
        k_fixed = rope(k_fixed, torch.arange(fixed, device=q.device))
        scores = [q @ z.mT * self.head_dim**-0.5 for z in (k_fixed, k_answers, k)]
        later = torch.ones_like(scores[1][0, 0], dtype=torch.bool).triu(place + 1)
        scores[1:] = [z.masked_fill(later, -math.inf) for z in scores[1:]]
        weights = torch.cat(scores, dim=-1).softmax(dim=-1)
        return weights @ torch.cat([v_fixed.expand(len(q), -1, -1, -1), v_answers, v], dim=-2)

    def _learned(
        self, y: Tensor, start: Tensor, memory: Tensor, momentum: Tensor, chunk: int | None
    ) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Return M_t(y_t), [B, H, L, D], of y [B, L, width], and the matrices after the last.

        Args:
            y: Positions of one segment.
            start: M before the segment, [B, H, D, D].
            memory: M before y.
            momentum: S before y.
            chunk: None for position by position.
        """
        q, k, v = (
            functional.silu(self._head(layer, y))
            for layer in (self.ask, self.write_key, self.write_value)
        )
        given = self._head(self.rates, y)
        given = given + self.rate_offsets.to(y.dtype).unflatten(0, (-1, 1, 3))
        forget, follow, step = given.split(1, dim=-1)
        step = (-follow).sigmoid() * step.sigmoid() / (2 * self.args["segment"])
        rates = Rates(functional.logsigmoid(-forget), functional.logsigmoid(follow), step)
        q, k = smooth_unit(q), smooth_unit(k)
        learn = recurrent if chunk is None else chunked
        found = learn(q, k, 2 * (k @ start - v), rates, memory, momentum)
        return found[0], start, found[1], found[2]

    def _head(self, layer: nn.Linear | Projection, x: Tensor) -> Tensor:
        """Return a layer's heads [B, H, L, D] of [B, L, width], in the type of x."""
        return self._split(functional.linear(x, layer.weight.to(x.dtype)))


MIXER = Titans
