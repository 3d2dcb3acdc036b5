"""TTT-Linear: a linear model that learns while it reads (Sun et al. 2024, arXiv:2407.04620)."""

from __future__ import annotations

from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from attention.linear._projection import Projection
from attention.linear._segments import Segmented
from attention.linear.mixer import RecurrentState
from attention.parts.precision import full_precision
from attention.positions import rope

NAMES = ("weight", "offset", "weight_sum", "offset_sum")
"""Tensors of the state: weights before the mini-batch, and sums of its gradients."""
EPS = 1e-6
"""Epsilon of the LayerNorms."""


class TTTLinear(Segmented):
    """o_t = f(q_t; W_t), W_t after steps of gradient descent on |f(k_i; W) - v_i|^2 / 2 (Sect. 2).

    The model is f(x; W, b) = x + LN(x W + b), with a LayerNorm of each head (Sect. 2.7). Gradients
    of a mini-batch of positions are taken at the weights before it (Sect. 2.4), so that
    W_t = W - eta_t sum_i eta(x_i) grad_i over its positions i <= t: products of matrices (the dual
    form, Sect. 2.5). eta(x) = sigmoid(x w) / d is the learned rate, eta_t = 1 / t for place t of
    the mini-batch, plus a learned number, and W and b of the first position are learned.

    As in the Transformer backbone of the authors' code q and k are rotated by their place in the
    mini-batch, and a LayerNorm over the width comes before the last projection.

    Arguments:
        segment: Positions of a mini-batch.
    """

    name = "ttt_linear"
    source = "Sun et al. 2024 (arXiv:2407.04620), Sects. 2.1 to 2.7: TTT-Linear"
    about = "The state is a linear model that takes a step of gradient descent at each position."
    kept = "2 H (D^2 + D)"
    arguments: ClassVar = {"segment": 16}
    deviations = (
        "the Transformer backbone's layer; the Mamba backbone's has a convolution of shared "
        "queries and keys and a gate besides. RoPE in split halves."
    )
    undecayed = ("weight", "offset", "head_norm.gain", "head_norm.shift")

    def __init__(self, n_head: int, head_dim: int, **args: Any) -> None:
        super().__init__(n_head, head_dim, **args)
        if head_dim % 2:
            raise ValueError(f"ttt_linear rotates pairs of channels: head_dim {head_dim} is odd")
        width = self.width
        self.query, self.key, self.value, self.project = (
            nn.Linear(width, width, bias=False) for _ in range(4)
        )
        self.rate = Projection(width, n_head)
        nn.init.normal_(self.rate.weight, std=0.02)
        self.rate_offset = nn.Parameter(torch.zeros(n_head))
        self.place_rate = nn.Parameter(torch.zeros(self.args["segment"]))
        self.weight = nn.Parameter(0.02 * torch.randn(n_head, head_dim, head_dim))
        self.offset = nn.Parameter(torch.zeros(n_head, 1, head_dim))
        self.head_norm = HeadNorm(n_head, head_dim)
        self.norm = nn.LayerNorm(width, eps=EPS)

    def _mix(self, x: Tensor, cache: RecurrentState, chunk: int | None) -> Tensor:
        q, k, v, rate = (
            self._split(layer(x)) for layer in (self.query, self.key, self.value, self.rate)
        )
        with full_precision(x):
            places = (torch.arange(x.shape[1], device=x.device) + cache.length) % len(
                self.place_rate
            )
            q, k = rope(q, places), rope(k, places)
            offset = self.rate_offset.to(rate.dtype)[:, None, None]
            rate = (rate + offset).sigmoid() / self.head_dim
            by_place = 1 / (places + 1).to(rate.dtype) + self.place_rate.to(rate.dtype)[places]
            inputs = (q, k, v, rate, by_place.clamp_min(0.0)[:, None])
            mixed = q + self.head_norm(self._learned(*inputs, cache, chunk))
        return self.project(self.norm(self._merge(mixed, x)))

    def _learned(
        self,
        q: Tensor,
        k: Tensor,
        v: Tensor,
        rate: Tensor,
        by_place: Tensor,
        cache: RecurrentState,
        chunk: int | None,
    ) -> Tensor:
        """Return q_t W_t + b_t, [B, H, L, D].

        Args:
            q: [B, H, L, D].
            k: Keys, shaped as q.
            v: Values, shaped as q.
            rate: eta(x), [B, H, L, 1].
            by_place: eta_t, [L, 1].
            cache: Keeps W and b of the mini-batch's start and the sums of gradients since.
            chunk: Most positions at once; None for position by position.
        """
        first = [p.to(q.dtype).expand(len(q), -1, -1, -1) for p in (self.weight, self.offset)]
        first += [torch.zeros_like(p) for p in first]
        weight, offset, *sums = (
            cache.tensors.get(name, value) for name, value in zip(NAMES, first, strict=True)
        )
        found = []
        for place, piece in self._pieces(cache.length, q.shape[-2], chunk):
            q_p, k_p, v_p, rate_p = (z[..., piece, :] for z in (q, k, v, rate))
            eta = by_place[piece]
            step = rate_p * self.head_norm.gradient(k_p @ weight + offset, v_p - k_p)
            if chunk is None:
                sums = [sums[0] + k_p.mT @ step, sums[1] + step]
                found.append(q_p @ (weight - eta * sums[0]) + (offset - eta * sums[1]))
            else:
                # Both sums as weights of pairs: a step moves the offset as if its key were 1.
                earlier = q_p @ sums[0] + sums[1]
                within = (q_p @ k_p.mT + 1).tril() @ step
                found.append(q_p @ weight + offset - eta * (earlier + within))
                sums = [sums[0] + k_p.mT @ step, sums[1] + step.sum(-2, keepdim=True)]
            if place + q_p.shape[-2] == self.args["segment"]:
                weight, offset = weight - eta[-1] * sums[0], offset - eta[-1] * sums[1]
                sums = [torch.zeros_like(z) for z in sums]
        kept = (weight, offset, *sums)
        cache.tensors = {name: z.clone() for name, z in zip(NAMES, kept, strict=True)}
        return torch.cat(found, dim=-2)


class HeadNorm(nn.Module):
    """LayerNorm of each head with weights of its own.

    Args:
        n_head: H.
        head_dim: D.
    """

    def __init__(self, n_head: int, head_dim: int) -> None:
        super().__init__()
        self.gain = nn.Parameter(torch.ones(n_head, 1, head_dim))
        self.shift = nn.Parameter(torch.zeros(n_head, 1, head_dim))

    def forward(self, z: Tensor) -> Tensor:
        """Return LN(z) of [B, H, L, D]."""
        return self.gain.to(z.dtype) * _standardised(z)[0] + self.shift.to(z.dtype)

    def gradient(self, z: Tensor, target: Tensor) -> Tensor:
        """Return the derivative of |LN(z) - target|^2 / 2 by z, [B, H, L, D] each."""
        unit, size = _standardised(z)
        gain = self.gain.to(z.dtype)
        by_unit = gain * (gain * unit + self.shift.to(z.dtype) - target)
        along = (by_unit * unit).mean(-1, keepdim=True) * unit
        return (by_unit - by_unit.mean(-1, keepdim=True) - along) / size


def _standardised(z: Tensor) -> tuple[Tensor, Tensor]:
    """Return vectors of mean 0 and variance 1, and the deviation that they had."""
    centred = z - z.mean(-1, keepdim=True)
    size = (centred.square().mean(-1, keepdim=True) + EPS).sqrt()
    return centred / size, size


MIXER = TTTLinear
