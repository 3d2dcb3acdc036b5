"""The eager implementation of every variant, driven by AttnSpec: the mathematical specification.

Numerics: the re-weighting (Eq. 5) divides by the row's largest entry before the power, which
cancels in the l1 norm and cannot overflow. A row in which nothing survives (equal scores) is
dead: its output and its gradient are zero. The mask is applied after every function that does
not keep zero at zero. Half precision is computed in float32: it can hold neither a row number
above 2048 (float16) or 256 (bfloat16) nor the distance to the mean weight.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

from attention.parts.precision import full_precision
from attention.parts.simplex import entmax15, sparsemax
from attention.positions import alibi_slopes, distance_bias
from attention.spec import AttnSpec

DEAD_BELOW = 1e-5
"""Relative excess over the mean weight 1/i up to which a key does not count; a row in which none
counts is dead (in ``recentre_l1``: relative difference)."""

UNTOUCHED_ROWS = 3
"""First rows, which keep every key (Algorithm 1) and are not re-centred (Table A4)."""

Parameters = Mapping[str, Tensor]
"""Learned numbers of a variant: ``tau`` [H], ``sink`` [H], ``bias`` [H, max_distance], and the
``gates`` [B, H, Lq, 2] of zeros_sm, which come from the layer's input. In decoding also
``inverse_lengths`` [B, H_kv, Lk] of the keys: a backend may read them, or work them out."""

PHI = {
    "identity": lambda s: s,
    "exp": torch.exp,
    "relu": functional.relu,
    "relu2": lambda s: functional.relu(s).square(),
    "relu6": functional.relu6,
    "gelu": functional.gelu,
    "sigmoid": torch.sigmoid,
    "softplus": functional.softplus,
    "mish": functional.mish,
}


@dataclass(frozen=True)
class Stages:
    """The matrices of each stage, [B, H, Lq, Lk], zero (scores: as computed) outside the mask."""

    scores: Tensor
    normalised: Tensor
    weights: Tensor


def stages(
    q: Tensor,
    k: Tensor,
    spec: AttnSpec,
    parameters: Parameters | None = None,
    causal: bool = True,
    selected: Tensor | None = None,
) -> Stages:
    """Return every stage's matrix; queries are the last Lq of the Lk positions.

    Args:
        q: Queries [B, H, Lq, D].
        k: Keys [B, H_kv, Lk, D], Lk >= Lq; H / H_kv consecutive heads of q share one of k.
        spec: The variant.
        parameters: Its learned numbers, if it has any.
        causal: False for the rows of an encoder, each of which sees all keys and is computed as
            the last one of a causal matrix is; only a distance bias tells one row from another.
        selected: Which of the keys that it sees a row attends to, bool [B, Lq, Lk], of a variant
            without a window; None for all. A row is computed as if the selected keys were all there
            are: their number is its row number. Distances stay those of the positions.
    """
    # Autocast would compute the scores in half precision.
    with full_precision(q):
        return _stages(q, k, spec, parameters or {}, causal, selected)


def _stages(
    q: Tensor,
    k: Tensor,
    spec: AttnSpec,
    parameters: Parameters,
    causal: bool,
    selected: Tensor | None,
) -> Stages:
    dtype = torch.promote_types(q.dtype, torch.float32)
    q, k = q.to(dtype), k.to(dtype)
    learned = {name: value.to(dtype) for name, value in parameters.items()}
    first = k.shape[-2] - q.shape[-2] + 1
    rows = torch.arange(first, k.shape[-2] + 1, device=q.device)[:, None]
    keys = torch.arange(1, k.shape[-2] + 1, device=q.device)
    distance = rows - keys
    if not causal:
        distance, rows = distance.abs(), torch.full_like(rows, k.shape[-2])
    mask = _mask(rows, keys, spec)
    rows = spec.seen(rows)
    if selected is not None:
        mask = selected[:, None]
        rows = mask.sum(dim=-1, keepdim=True)
    count = rows.to(dtype)
    scores = _biased_scores(q, k, rows, distance, spec, learned)
    if not scores.numel():  # a row without keys has no largest weight
        return Stages(scores, scores, scores)
    normalised = _normalised(scores, mask, spec, count, learned)
    changed = _modified(normalised, scores, mask, rows, spec, learned)
    return Stages(scores, normalised, _sharpened(changed, mask, rows, count, spec, learned))


def scores(
    q: Tensor, k: Tensor, spec: AttnSpec, learned: Parameters, start: int, stop: int
) -> Tensor:
    """Return the scores of keys ``start`` (from 0) to ``stop``, shifted and biased; no mask.

    Arguments as in :func:`stages`; the result is [B, H, Lq, stop - start], at most to the last key.
    """
    dtype = torch.promote_types(q.dtype, torch.float32)
    total = k.shape[-2]
    rows = torch.arange(total - q.shape[-2] + 1, total + 1, device=q.device)[:, None]
    keys = torch.arange(start + 1, min(stop, total) + 1, device=q.device)
    part = dict(learned)
    if "inverse_lengths" in part:
        part["inverse_lengths"] = part["inverse_lengths"][..., start:stop]
    of_part = k[..., start:stop, :].to(dtype)
    return _biased_scores(q.to(dtype), of_part, spec.seen(rows), rows - keys, spec, part)


def weights(
    q: Tensor,
    k: Tensor,
    spec: AttnSpec,
    parameters: Parameters | None = None,
    causal: bool = True,
    selected: Tensor | None = None,
) -> Tensor:
    """Return the attention matrix [B, H, Lq, Lk] in the dtype of ``q``; see :func:`stages`."""
    return stages(q, k, spec, parameters, causal, selected).weights.to(q.dtype)


def attend(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    spec: AttnSpec,
    parameters: Parameters | None = None,
    chunk: int | None = None,
    selected: Tensor | None = None,
) -> Tensor:
    """Return the attention output [B, H, Lq, D].

    Args:
        q: Queries [B, H, Lq, D].
        k: Keys [B, H_kv, Lk, D], Lk >= Lq; H / H_kv consecutive heads of q share one of k.
        v: Values [B, H_kv, Lk, D].
        spec: The variant.
        parameters: Its learned numbers, if it has any.
        chunk: Rows at a time, for O(Lk chunk) memory; None for all.
        selected: Selected keys, see :func:`stages`.

    Raises:
        ValueError: ``chunk`` is below 1.
    """
    length, total = q.shape[-2], k.shape[-2]
    if chunk is not None and chunk < 1:
        raise ValueError(f"chunk must be a positive number of rows, got {chunk}")
    if chunk is None or chunk >= length:
        return shared_product(weights(q, k, spec, parameters, selected=selected), v)
    outputs = []
    for start in range(0, length, chunk):
        stop = min(start + chunk, length)
        n_keys = total - length + stop  # later keys are masked for all of these rows
        part = dict(parameters or {})
        if "gates" in part:
            part["gates"] = part["gates"][..., start:stop, :]
        if "inverse_lengths" in part:
            part["inverse_lengths"] = part["inverse_lengths"][..., :n_keys]
        chosen = None if selected is None else selected[:, start:stop, :n_keys]
        rows = weights(q[..., start:stop, :], k[..., :n_keys, :], spec, part, selected=chosen)
        outputs.append(shared_product(rows, v[..., :n_keys, :]))
    return torch.cat(outputs, dim=-2)


def shared_product(rows: Tensor, columns: Tensor) -> Tensor:
    """Return rows [B, H, L, N] @ columns [B, H_kv, N, M], [B, H, L, M].

    H / H_kv consecutive heads share columns, which are not copied for each of them.
    """
    if rows.shape[1] == columns.shape[1]:
        return rows @ columns
    together = rows.unflatten(1, (columns.shape[1], -1)).flatten(2, 3) @ columns
    return together.unflatten(2, (-1, rows.shape[2])).flatten(1, 2)


def one_per_head(x: Tensor, n_head: int) -> Tensor:
    """Return keys or values [B, H_kv, L, D] copied for each of ``n_head`` query heads."""
    return x if x.shape[1] == n_head else x.repeat_interleave(n_head // x.shape[1], dim=1)


def _mask(rows: Tensor, keys: Tensor, spec: AttnSpec) -> Tensor:
    causal = keys <= rows
    if spec.mask == "causal":
        return causal
    near = keys > rows - spec.window
    if spec.mask == "streaming":
        near = near | (keys <= spec.sinks)
    return causal & near


def _biased_scores(
    q: Tensor, k: Tensor, rows: Tensor, distance: Tensor, spec: AttnSpec, learned: Parameters
) -> Tensor:
    count = rows.to(q.dtype)
    known = learned.get("inverse_lengths")
    scores = _scores(q, k, spec, count, known) + _shift(spec, count)
    return scores - _bias(distance, spec, learned, q) if spec.bias != "none" else scores


def _scores(
    q: Tensor, k: Tensor, spec: AttnSpec, count: Tensor, inverse_lengths: Tensor | None
) -> Tensor:
    root = math.sqrt(q.shape[-1])
    if spec.scale == "inverse_sqrt_dim":
        return shared_product(q / root, k.transpose(-1, -2))
    if spec.scale == "log_length":
        assert spec.length is not None
        return shared_product(math.log(spec.length) * q / root, k.transpose(-1, -2))
    scale = spec.g if spec.scale == "cosine" else math.log(q.shape[-1]) * torch.log(count)
    scaled = scale * unit(q)
    if inverse_lengths is None:
        return shared_product(scaled, unit(k).transpose(-1, -2))
    products = shared_product(scaled, k.transpose(-1, -2))
    return products * one_per_head(inverse_lengths, q.shape[1])[..., None, :]


def _shift(spec: AttnSpec, count: Tensor) -> Tensor | float:
    if spec.shift == "minus_log_length":
        assert spec.length is not None
        return -math.log(spec.length)
    return -torch.log(count) if spec.shift == "minus_log_row" else 0.0


def _bias(distance: Tensor, spec: AttnSpec, learned: Parameters, q: Tensor) -> Tensor:
    """Return the bias that is subtracted from the scores, [H, Lq, Lk]."""
    distance = distance.clamp_min(0)
    if spec.bias == "alibi":
        slopes = alibi_slopes(q.shape[1], q.dtype).to(q.device)
        return slopes[:, None, None] * distance.to(q.dtype)
    return distance_bias(learned["bias"], distance, spec.beyond)


def _normalised(
    scores: Tensor, mask: Tensor, spec: AttnSpec, count: Tensor, learned: Parameters
) -> Tensor:
    if spec.normalise in ("sparsemax", "entmax15"):
        project = sparsemax if spec.normalise == "sparsemax" else entmax15
        return project(scores.masked_fill(~mask, -math.inf)).masked_fill(~mask, 0.0)
    if spec.phi == "exp" and spec.normalise == "l1":
        scores = scores.masked_fill(~mask, -math.inf)
        if not spec.sink:
            return torch.softmax(scores, dim=-1)
        sink = learned["sink"][:, None, None].expand(*scores.shape[:-1], 1)
        return torch.softmax(torch.cat([scores, sink], dim=-1), dim=-1)[..., :-1]
    # Masked scores may overflow phi; zero is safe, and what it gives is masked again.
    values = PHI[spec.phi](scores.masked_fill(~mask, 0.0)).masked_fill(~mask, 0.0)
    if spec.normalise == "l1":
        return _l1(values)
    if spec.normalise == "length":
        assert spec.length is not None
        return values / spec.length
    if spec.normalise == "sqrt_half_row":
        return values / (spec.gamma * torch.sqrt(count / 2))
    return values


def _modified(
    weight: Tensor,
    scores: Tensor,
    mask: Tensor,
    rows: Tensor,
    spec: AttnSpec,
    learned: Parameters,
) -> Tensor:
    if spec.modify == "none":
        return weight
    if spec.modify == "negate":
        return -weight
    mean = 1 / mask.sum(dim=-1, keepdim=True).to(weight.dtype)
    if spec.modify == "zero_sum":
        # ZeroS A.1.6: softmax = 1/i + first order + the rest; the zeroth order is dropped.
        average = scores.masked_fill(~mask, 0.0).sum(dim=-1, keepdim=True) * mean
        linear = (mean * (scores - average)).masked_fill(~mask, 0.0)
        rest = (weight - mean - linear).masked_fill(~mask, 0.0)
        gates = learned["gates"]
        return gates[..., :1] * linear + gates[..., 1:] * rest
    centred = (weight - mean).masked_fill(~mask, 0.0)
    if spec.modify == "recentre_l1":
        # Equal scores leave nothing but rounding, which must not be scaled up.
        dead = centred.abs().amax(dim=-1, keepdim=True) <= DEAD_BELOW * mean
        centred = _l1(centred.masked_fill(dead, 0.0))
    return torch.where(rows <= UNTOUCHED_ROWS, weight, centred)


def _sharpened(
    weight: Tensor,
    mask: Tensor,
    rows: Tensor,
    count: Tensor,
    spec: AttnSpec,
    learned: Parameters,
) -> Tensor:
    if spec.sharpen == "none":
        return weight
    if spec.sharpen == "reweight":
        return _reweighted(weight, rows, count, spec.p)
    # A negative offset lifts masked keys above zero: the mask comes after the ReLU.
    return functional.relu(weight - elastic_offset(count, spec, learned)).masked_fill(~mask, 0.0)


def elastic_offset(count: Tensor, spec: AttnSpec, learned: Parameters) -> Tensor | float:
    """Return the offset that an elastic variant subtracts from weights, [H, Lq, 1] or a number."""
    tau = learned["tau"][:, None, None] if spec.learn_tau else spec.tau
    if spec.sharpen == "elastic_row":
        return tau / count
    if spec.sharpen == "elastic_length":
        assert spec.length is not None
        return tau / spec.length
    return tau


def _reweighted(weight: Tensor, rows: Tensor, count: Tensor, p: float) -> Tensor:
    offset = (rows > UNTOUCHED_ROWS).to(weight.dtype)
    excess = functional.relu(weight * count - offset)  # masked weights are 0 and stay so
    # The result does not change with the scale of a row, so neither does its gradient.
    largest = excess.detach().amax(dim=-1, keepdim=True)
    dead = largest <= DEAD_BELOW
    # Divided by infinity a row is zero, and so is its gradient.
    ratio = excess / largest.masked_fill(dead, math.inf)
    if p < 1:  # the gradient at 0 is infinite
        survives = ratio > 0
        powered = torch.where(survives, torch.where(survives, ratio, 1.0) ** p, 0.0)
    else:
        powered = ratio**p
    return powered / powered.sum(dim=-1, keepdim=True).masked_fill(dead, 1.0)


def _l1(values: Tensor) -> Tensor:
    """Divide rows by their l1 norm; a row of zeros stays zero, with zero gradient."""
    norm = values.abs().sum(dim=-1, keepdim=True)
    return values / norm.masked_fill(norm == 0, math.inf)


def unit(x: Tensor) -> Tensor:
    """Divide vectors by their l2 norm; a vector of zeros stays zero, with zero gradient."""
    norm = x.norm(dim=-1, keepdim=True)
    return x / torch.where(norm > 0, norm.clamp_min(1e-12), math.inf)


def inverse_lengths(x: Tensor) -> Tensor:
    """Return the factors [...] by which :func:`unit` multiplies vectors [..., D]."""
    norm = x.to(torch.promote_types(x.dtype, torch.float32)).norm(dim=-1)
    return 1 / torch.where(norm > 0, norm.clamp_min(1e-12), math.inf)
