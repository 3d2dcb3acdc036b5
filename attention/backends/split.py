"""Attention split over keys, for few queries and many keys: the plain form of the decode kernels.

Each split of the keys gives partial results of every row, and partial results merge exactly. With
a second stage there are two rounds, because its threshold needs the sums of all keys:

1. the largest score and the sum of phi of a split (for exp: of exp(s - largest));
2. the sum of weights and of weighted values of a split, whose weights are rebuilt from the merged
   numbers of round 1.

Without a second stage the first round's sums are those of the second, and one round is enough. It
is the specification of ``attention.triton.decode``, serves what the kernels serve, and is compared
with the reference; no call is sent here.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from attention import reference
from attention.reference import DEAD_BELOW, PHI, UNTOUCHED_ROWS, Parameters
from attention.spec import AttnSpec


@dataclass(frozen=True)
class Partial:
    """Sums of some keys for every row: of a row's weights exp(-top) times what they are.

    Attributes:
        top: The largest score, [B, H, Lq, 1].
        total: The sum of the weights, [B, H, Lq, 1].
        sums: The sum of weighted values, [B, H, Lq, Dv]; None where they are not asked for.
    """

    top: Tensor
    total: Tensor
    sums: Tensor | None = None

    def merged(self, other: Partial, shifted: bool) -> Partial:
        """Return the sums of both; ``shifted`` says that their weights hold exp(-top)."""
        top = torch.maximum(self.top, other.top)
        ours, theirs = (self.top - top).exp(), (other.top - top).exp()
        if not shifted:
            ours, theirs = torch.ones_like(ours), torch.ones_like(theirs)
        sums = None
        if self.sums is not None and other.sums is not None:
            sums = ours * self.sums + theirs * other.sums
        return Partial(top, ours * self.total + theirs * other.total, sums)


def attend(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    spec: AttnSpec,
    parameters: Parameters | None = None,
    split: int = 128,
) -> Tensor:
    """Return the attention output [B, H, Lq, Dv], for a variant that the kernels serve.

    Args:
        q: Queries [B, H, Lq, D], the last Lq of the Lk positions.
        k: Keys [B, H_kv, Lk, D].
        v: Values [B, H_kv, Lk, Dv].
        spec: The variant.
        parameters: Its learned numbers, if it has any.
        split: Keys of a split.
    """
    dtype = torch.promote_types(q.dtype, torch.float32)
    learned = {name: value.to(dtype) for name, value in (parameters or {}).items()}
    first = k.shape[2] - q.shape[2]
    rows = torch.arange(first + 1, k.shape[2] + 1, device=q.device)[:, None]
    count = rows.to(dtype)
    splits = [
        (
            reference.scores(q, k, spec, learned, start, start + split),
            torch.arange(start + 1, min(start + split, k.shape[2]) + 1, device=q.device) <= rows,
            v[:, :, start : start + split].to(dtype),
        )
        for start in range(0, k.shape[2], split)
    ]
    softmax = spec.phi == "exp" and spec.normalise == "l1"
    found: Partial | None = None
    if spec.sharpen == "none":
        for scores, mask, values in splits:
            part = _first(scores, mask, spec, softmax, values)
            found = part if found is None else found.merged(part, softmax)
        assert found is not None
        assert found.sums is not None
        return (found.sums * _gain(found.total, count, spec)).to(q.dtype)
    for scores, mask, _ in splits:
        part = _first(scores, mask, spec, softmax)
        found = part if found is None else found.merged(part, softmax)
    assert found is not None
    second: Partial | None = None
    for scores, mask, values in splits:
        part = _second(scores, mask, rows, values, found, spec, learned, softmax)
        second = part if second is None else second.merged(part, False)
    assert second is not None
    assert second.sums is not None
    if spec.reweights:
        return (second.sums / second.total.masked_fill(second.total == 0, math.inf)).to(q.dtype)
    return second.sums.to(q.dtype)


def _first(
    scores: Tensor, mask: Tensor, spec: AttnSpec, softmax: bool, values: Tensor | None = None
) -> Partial:
    """Return the sums of one split in the first stage."""
    masked = scores.masked_fill(~mask, -math.inf)
    top = masked.amax(dim=-1, keepdim=True)
    if softmax:
        # A split without a visible key has no largest score: its weights are 0.
        weight = (masked - top.masked_fill(top == -math.inf, 0.0)).exp()
    else:
        weight = PHI[spec.phi](masked.masked_fill(~mask, 0.0)).masked_fill(~mask, 0.0)
    sums = None if values is None else reference.shared_product(weight, values)
    return Partial(top, weight.sum(dim=-1, keepdim=True), sums)


def _gain(total: Tensor, count: Tensor, spec: AttnSpec) -> Tensor | float:
    """Return the factor of a row's weights after the first stage."""
    if spec.normalise == "l1":
        return 1 / total.masked_fill(total == 0, math.inf)
    if spec.normalise == "length":
        assert spec.length is not None
        return 1 / spec.length
    return 1 / (spec.gamma * (count / 2).sqrt()) if spec.normalise == "sqrt_half_row" else 1.0


def _second(
    scores: Tensor,
    mask: Tensor,
    rows: Tensor,
    values: Tensor,
    found: Partial,
    spec: AttnSpec,
    learned: Parameters,
    softmax: bool,
) -> Partial:
    """Return the sums of one split in the second stage, from the numbers of all keys."""
    count = rows.to(scores.dtype)
    norm = _gain(found.total, count, spec)
    if softmax:
        weight, largest = (scores - found.top).exp() * norm, norm
    else:
        weight, largest = PHI[spec.phi](scores) * norm, PHI[spec.phi](found.top) * norm
    if spec.reweights:
        subtracted = (rows > UNTOUCHED_ROWS).to(scores.dtype)
        # phi is monotone: the largest weight is that of the largest score.
        excess = largest * count - subtracted
        dead = excess <= DEAD_BELOW
        ratio = (weight * count - subtracted).clamp_min(0.0) / excess.masked_fill(dead, math.inf)
        weight = torch.where(ratio > 0, ratio**spec.p, 0.0)
    else:
        weight = (weight - reference.elastic_offset(count, spec, learned)).clamp_min(0.0)
    weight = weight.masked_fill(~mask, 0.0)
    return Partial(
        found.top, weight.sum(dim=-1, keepdim=True), reference.shared_product(weight, values)
    )
