"""FLASH: gated attention units with mixed chunk attention (Hua et al. 2022, arXiv:2202.10447)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional

from attention.linear._convolution import with_previous
from attention.linear._segments import Segmented
from attention.linear.mixer import RecurrentState
from attention.parts.precision import full_precision
from attention.positions import rope

EXPAND = 2
"""Channels of gates and values per channel of the model, as published."""


class FlashGAU(Segmented):
    """(u * (A_t v + q_t^lin S)) W_o, u = SiLU(x W_u), v = SiLU(x W_v) (Sects. 2, 3).

    One head for all channels. Within a segment of C positions
    A_ti = relu(q_t . k_i / C + b_{t-i})^2 is quadratic attention, with a learned bias for each
    distance; S = sum k_i^lin^T v_i / C over the segments before is linear attention. All
    four of q and k are SiLU(x W_z), of N channels, times learned gains and shifted, and then
    rotated by their positions.

    Arguments:
        state: N.
        segment: C.
    """

    name = "flash_gau"
    source = "Hua et al. 2022 (arXiv:2202.10447), Sects. 2 and 3: FLASH, mixed chunk attention"
    about = "A gate times squared-ReLU attention in segments and linear attention to those before."
    kept = "2 H D N + (2 N + 2 H D) (L - 1)"
    arguments: ClassVar = {"state": 128, "segment": 256}
    deviations = (
        "beside the GPT's MLP, where the paper has two units in place of attention and MLP: mlp "
        "none is its block. LayerNorm is the block's, not ScaleNorm; RoPE turns all N channels, "
        "and no sinusoids are added. The causal linear part is divided by C, as in the public "
        "code."
    )
    undecayed = ("gains", "shifts")

    def __init__(self, n_head: int, head_dim: int, **args: Any) -> None:
        super().__init__(n_head, head_dim, **args)
        width, wide, state = self.width, EXPAND * self.width, self.args["state"]
        self.gate, self.value = (nn.Linear(width, wide) for _ in range(2))
        self.shared = nn.Linear(width, state)
        self.gains = nn.Parameter(0.02 * torch.randn(4, state))
        self.shifts = nn.Parameter(torch.zeros(4, state))
        self.distance = nn.Parameter(0.02 * torch.randn(self.args["segment"]))
        self.project = nn.Linear(wide, width)

    @classmethod
    def checked(cls, args: Mapping[str, Any]) -> dict[str, Any]:
        """Return all arguments, as in :meth:`Mixer.checked`."""
        values = super().checked(args)
        if values["state"] % 2:
            raise ValueError(f"state of flash_gau must be even for RoPE, got {values['state']}")
        return values

    def _mix(self, x: Tensor, cache: RecurrentState, chunk: int | None) -> Tensor:
        kind = torch.promote_types(x.dtype, torch.float32)
        shared, v = (functional.silu(layer(x)).to(kind) for layer in (self.shared, self.value))
        with full_precision(x):
            places = torch.arange(x.shape[1], device=x.device) + cache.length
            gains, shifts = self.gains.to(kind), self.shifts.to(kind)
            all_four = shared.unsqueeze(1) * gains[:, None] + shifts[:, None]
            q, k, q_linear, k_linear = rope(all_four, places).unbind(1)
            mixed = self._mixed(q, q_linear, torch.cat([k, k_linear, v], dim=-1), cache, chunk)
        return self.project(functional.silu(self.gate(x)) * mixed.to(x.dtype))

    def _mixed(
        self, q: Tensor, q_linear: Tensor, written: Tensor, cache: RecurrentState, chunk: int | None
    ) -> Tensor:
        """Return A v + q^lin S, [B, L, E], of q [B, L, N] and [k, k^lin, v] as they are written."""
        segment, state = self.args["segment"], self.args["state"]
        size = written.shape[-1] - 2 * state
        summed = cache.tensors.get("state", written.new_zeros(len(written), state, size))
        bias, found = self.distance.to(q.dtype), []
        for place, piece in self._pieces(cache.length, q.shape[1], chunk):
            seen = with_previous(written[:, piece], segment - 1, cache, "recent_segment")
            k, k_linear, v = seen[:, segment - 1 - place :].split([state, state, size], dim=-1)
            near = _sums if chunk is None else _pairs
            found.append(near(q[:, piece], k, v, bias) + q_linear[:, piece] @ summed)
            if v.shape[1] == segment:
                summed = summed + k_linear.mT @ v / segment
        cache.tensors = {**cache.tensors, "state": summed}
        return torch.cat(found, dim=1)


def _pairs(q: Tensor, k: Tensor, v: Tensor, bias: Tensor) -> Tensor:
    """Return sum over i <= t of relu(q_t . k_i / C + b_{t - i})^2 v_i at the last positions.

    Args:
        q: Queries of the last L of T positions of a segment, [B, L, N].
        k: Keys of all T positions, [B, T, N].
        v: Values of all T positions, [B, T, E].
        bias: b by distance, [C].

    Returns:
        [B, L, E].
    """
    places = torch.arange(k.shape[1], device=k.device)
    distance = places[k.shape[1] - q.shape[1] :, None] - places
    scores = functional.relu(q @ k.mT / len(bias) + bias[distance.clamp_min(0)])
    return scores.square().tril(k.shape[1] - q.shape[1]) @ v


def _sums(q: Tensor, k: Tensor, v: Tensor, bias: Tensor) -> Tensor:
    """Compute :func:`_pairs` for one position, key by key: the specification."""
    total = torch.zeros_like(v[:, :1])
    for distance, (k_i, v_i) in enumerate(
        zip(reversed(k.split(1, dim=1)), reversed(v.split(1, dim=1)), strict=True)
    ):
        score = (q * k_i).sum(-1, keepdim=True) / len(bias) + bias[distance]
        total = total + functional.relu(score).square() * v_i
    return total


MIXER = FlashGAU
