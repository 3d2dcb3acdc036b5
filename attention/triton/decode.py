"""Decoding: attention of few queries, split over the keys.

One sequence of one new token has as many rows as heads, too few programs for a GPU. Here each
program takes a share of the keys for all query heads that share them, so that keys and values are
read once; partial results go to float32 scratch and merge exactly. Keys are read as a cache holds
them: rotated, with one over their lengths beside them where a variant takes directions.
"""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor, library

from attention import reference
from attention.triton import launch, ops
from attention.triton.plan import Plan
from attention.triton.primitives import distance_bias, dot, narrow, phi, sharpen
from attention.triton.tiles import blocks, power_of_2

DEAD_BELOW = tl.constexpr(reference.DEAD_BELOW)
UNTOUCHED_ROWS = tl.constexpr(reference.UNTOUCHED_ROWS)

MOST_ROWS = {128: 64, 256: 16}
"""Rows of a program, the queries of all heads that share keys, by the largest head dim: wider ones
have no registers for more."""
KEYS = 64
"""Keys of a tile."""
PROGRAMS = 512
"""Programs that keep a GPU busy: a few for each of its 100 or so processors."""
LAUNCH = {"num_warps": 4, "num_stages": 2}
VARYING = ("length", "total_length", "share", "n_splits", "longest")
"""Whole numbers that change between steps: no binary of its own for each that 16 divides."""


@triton.jit
def _scores(
    block, scale, shift, k, inverse, key, place, bias, total_length, longest,
    UNIT: tl.constexpr, BIAS: tl.constexpr, D: tl.constexpr, DIM: tl.constexpr,
    KEYS: tl.constexpr,
):  # fmt: skip
    """Return u of a tile [ROWS, KEYS], -inf where a key is not visible, and which are."""
    keys = key + tl.arange(0, KEYS)
    channels = tl.arange(0, D)
    inside = (keys < total_length)[:, None] & (channels < DIM)[None, :]
    tile = tl.load(k + keys.to(tl.int64)[:, None] * DIM + channels[None, :], mask=inside, other=0.0)
    s = dot(block, tl.trans(tile), tl.zeros([block.shape[0], KEYS], tl.float32))
    if UNIT:
        s *= tl.load(inverse + keys, mask=keys < total_length, other=0.0)[None, :]
    u = tl.fma(s, scale[:, None], shift[:, None])
    distance = place[:, None] - keys[None, :]
    if BIAS != "none":
        u -= distance_bias(bias, tl.maximum(distance, 0), longest, BIAS)
    return u, distance >= 0


@triton.jit
def _rows(
    q, bias, length, total_length, group, longest, scale0, scale1, shift0, shift1,
    UNIT: tl.constexpr, BIAS: tl.constexpr, D: tl.constexpr, DIM: tl.constexpr,
    ROWS: tl.constexpr,
):  # fmt: skip
    """Return this program's queries, their numbers, places, heads, and pointers to their biases."""
    n_kv = tl.program_id(0).to(tl.int64)
    row = tl.arange(0, ROWS)
    inside = row < group * length
    channels = tl.arange(0, D)
    places = q + (n_kv * group * length + row)[:, None] * DIM + channels[None, :]
    block = tl.load(places, mask=inside[:, None] & (channels < DIM)[None, :], other=0.0)
    place = row % length + (total_length - length)
    place = tl.where(inside, place, 0)
    logarithm = tl.log2((place + 1).to(tl.float32))
    scale = tl.fma(logarithm, scale1, scale0)
    shift = tl.fma(logarithm, shift1, shift0)
    if UNIT:
        wide = block.to(tl.float32)
        norm = tl.sqrt(tl.sum(wide * wide, axis=1))
        scale *= tl.where(norm > 0, 1 / tl.maximum(norm, 1e-12), 0.0)
    return block, scale, shift, place, row, inside


@triton.jit(do_not_specialize=VARYING)
def decode_stats_kernel(
    q, k, inverse, bias, parts,
    heads, group, length, total_length, share, n_splits, head_stride, batch_stride, longest,
    scale0, scale1, shift0, shift1,
    UNIT: tl.constexpr, PHI: tl.constexpr, BIAS: tl.constexpr,
    D: tl.constexpr, DIM: tl.constexpr, ROWS: tl.constexpr, KEYS: tl.constexpr,
):  # fmt: skip
    """Write the largest u and the sum of g of each split, ``parts`` [B H_kv, splits, 2, ROWS]."""
    block, scale, shift, place, row, _ = _rows(
        q, bias, length, total_length, group, longest, scale0, scale1, shift0, shift1,
        UNIT, BIAS, D, DIM, ROWS,
    )  # fmt: skip
    n_kv = tl.program_id(0).to(tl.int64)
    split = tl.program_id(1)
    kv_heads = heads // group
    k += n_kv // kv_heads * batch_stride + n_kv % kv_heads * head_stride
    inverse += n_kv * total_length
    if BIAS != "none":
        bias += ((n_kv % kv_heads * group + tl.minimum(row // length, group - 1)) * longest)[
            :, None
        ]
    top = tl.full([ROWS], float("-inf"), tl.float32)
    total = tl.zeros([ROWS], tl.float32)
    for key in tl.range(split * share, tl.minimum((split + 1) * share, total_length), KEYS):
        u, visible = _scores(
            block, scale, shift, k, inverse, key, place, bias, total_length, longest,
            UNIT, BIAS, D, DIM, KEYS,
        )  # fmt: skip
        u = tl.where(visible, u, float("-inf"))
        new_top = tl.maximum(top, tl.max(u, axis=1))
        if PHI == "exp":
            # A row that sees no key of the split yet: -inf less -inf would be no number.
            base = tl.where(new_top == float("-inf"), 0.0, new_top)
            total = total * tl.exp2(top - base) + tl.sum(tl.exp2(u - base[:, None]), axis=1)
        else:
            total += tl.sum(phi(u, PHI, True), axis=1)
        top = new_top
    parts += (n_kv * n_splits + split) * 2 * ROWS + row
    tl.store(parts, top)
    tl.store(parts + ROWS, total)


@triton.jit
def _merged(parts, n_kv, n_splits, row, PHI: tl.constexpr, ROWS: tl.constexpr):
    """Return the largest u and the sum of g of all splits."""
    top = tl.full([ROWS], float("-inf"), tl.float32)
    total = tl.zeros([ROWS], tl.float32)
    for split in tl.range(0, n_splits):
        there = parts + (n_kv * n_splits + split) * 2 * ROWS + row
        part_top, part_total = tl.load(there), tl.load(there + ROWS)
        new_top = tl.maximum(top, part_top)
        if PHI == "exp":
            base = tl.where(new_top == float("-inf"), 0.0, new_top)
            total = total * tl.exp2(top - base) + part_total * tl.exp2(part_top - base)
        else:
            total += part_total
        top = new_top
    return top, total


@triton.jit(do_not_specialize=VARYING)
def decode_kernel(
    q, k, v, inverse, tau, bias, stats, parts, sums,
    heads, group, length, total_length, share, n_splits, head_stride, batch_stride, longest,
    scale0, scale1, shift0, shift1, tau0, tau1, p,
    UNIT: tl.constexpr, PHI: tl.constexpr, SHARPEN: tl.constexpr, BIAS: tl.constexpr,
    P: tl.constexpr, D: tl.constexpr, DIM: tl.constexpr, ROWS: tl.constexpr, KEYS: tl.constexpr,
):  # fmt: skip
    """Write each split's sums of weights, ``parts`` as above, and of weighted values, ``sums``.

    With a second stage ``stats`` holds what :func:`decode_stats_kernel` wrote, which every program
    merges for its rows. ``sums`` is [B H_kv, splits, ROWS, DIM] in float32.
    """
    block, scale, shift, place, row, inside = _rows(
        q, bias, length, total_length, group, longest, scale0, scale1, shift0, shift1,
        UNIT, BIAS, D, DIM, ROWS,
    )  # fmt: skip
    n_kv = tl.program_id(0).to(tl.int64)
    split = tl.program_id(1)
    kv_heads = heads // group
    head = n_kv % kv_heads * group + tl.minimum(row // length, group - 1)
    start = n_kv // kv_heads * batch_stride + n_kv % kv_heads * head_stride
    k += start
    v += start
    inverse += n_kv * total_length
    if BIAS != "none":
        bias += (head * longest)[:, None]
    top = tl.full([ROWS], float("-inf"), tl.float32)
    total = tl.zeros([ROWS], tl.float32)
    acc = tl.zeros([ROWS, D], tl.float32)
    stretch, offset = total, total  # not used without a second stage
    if SHARPEN != "none":
        largest_u, whole = _merged(stats, n_kv, n_splits, row, PHI, ROWS)
        count = (place + 1).to(tl.float32)
        if PHI == "exp":
            # Maximum, sum and row number go into the shift, so that g = i a.
            largest = count / whole
            shift += tl.log2(largest) - largest_u
            norm = 1 / count
        else:
            largest = phi(largest_u, PHI, True)
            norm = tl.where(whole > 0, 1 / whole, 0.0)
        if SHARPEN == "reweight":
            subtracted = tl.where(count > UNTOUCHED_ROWS, 1.0, 0.0)
            excess = count * norm * largest - subtracted
            alive = excess > DEAD_BELOW
            stretch = tl.where(alive, count * norm / excess, 0.0)
            offset = tl.where(alive, subtracted / excess, 0.0)
        else:
            threshold = tl.load(tau + head) * tau0 * tl.exp2(-tau1 * tl.log2(count))
            offset = tl.where(norm > 0, threshold / norm, 0.0)
            stretch = norm
    channels = tl.arange(0, D)
    for key in tl.range(split * share, tl.minimum((split + 1) * share, total_length), KEYS):
        u, visible = _scores(
            block, scale, shift, k, inverse, key, place, bias, total_length, longest,
            UNIT, BIAS, D, DIM, KEYS,
        )  # fmt: skip
        if SHARPEN == "none" and PHI == "exp":
            u = tl.where(visible, u, float("-inf"))
            new_top = tl.maximum(top, tl.max(u, axis=1))
            base = tl.where(new_top == float("-inf"), 0.0, new_top)
            weight = tl.exp2(u - base[:, None])
            rescale = tl.exp2(top - base)
            total, acc, top = total * rescale, acc * rescale[:, None], new_top
        else:
            weight = phi(u, PHI, True)
            if SHARPEN != "none":
                weight, _ = sharpen(weight, stretch[:, None], offset[:, None], p, SHARPEN, P)
            # After the ReLU: a negative elastic offset lifts the keys of the future above zero.
            weight = tl.where(visible, weight, 0.0)
        total += tl.sum(weight, axis=1)
        keys = key + tl.arange(0, KEYS)
        there = v + keys.to(tl.int64)[:, None] * DIM + channels[None, :]
        values = tl.load(
            there, mask=(keys < total_length)[:, None] & (channels < DIM)[None, :], other=0.0
        )
        acc = dot(narrow(weight, v.dtype.element_ty), values, acc)
    if SHARPEN == "elastic":
        acc *= stretch[:, None]
    parts += (n_kv * n_splits + split) * 2 * ROWS + row
    tl.store(parts, top)
    tl.store(parts + ROWS, total)
    places = ((n_kv * n_splits + split) * ROWS + row)[:, None] * DIM + channels[None, :]
    tl.store(sums + places, acc, mask=(inside[:, None]) & (channels < DIM)[None, :])


@triton.jit(do_not_specialize=VARYING)
def merge_kernel(
    parts, sums, out,
    group, length, total_length, n_splits,
    norm0, norm1,
    PHI: tl.constexpr, L1: tl.constexpr, SHARPEN: tl.constexpr,
    D: tl.constexpr, DIM: tl.constexpr, ROWS: tl.constexpr,
):  # fmt: skip
    """Write the output [B H_kv, group length, DIM] from all splits; a program per key head."""
    n_kv = tl.program_id(0).to(tl.int64)
    row = tl.arange(0, ROWS)
    channels = tl.arange(0, D)
    within = (row < group * length)[:, None] & (channels < DIM)[None, :]
    top = tl.full([ROWS], float("-inf"), tl.float32)
    total = tl.zeros([ROWS], tl.float32)
    acc = tl.zeros([ROWS, D], tl.float32)
    for split in tl.range(0, n_splits):
        there = parts + (n_kv * n_splits + split) * 2 * ROWS + row
        part_top, part_total = tl.load(there), tl.load(there + ROWS)
        places = ((n_kv * n_splits + split) * ROWS + row)[:, None] * DIM + channels[None, :]
        part = tl.load(sums + places, mask=within, other=0.0)
        if SHARPEN == "none" and PHI == "exp":
            new_top = tl.maximum(top, part_top)
            base = tl.where(new_top == float("-inf"), 0.0, new_top)
            ours, theirs = tl.exp2(top - base), tl.exp2(part_top - base)
            total = total * ours + part_total * theirs
            acc = acc * ours[:, None] + part * theirs[:, None]
            top = new_top
        else:
            total += part_total
            acc += part
    if SHARPEN == "elastic":
        gain = tl.full([ROWS], 1.0, tl.float32)
    elif SHARPEN == "reweight" or L1:
        gain = tl.where(total > 0, 1 / total, 0.0)
    else:
        count = (row % length + (total_length - length) + 1).to(tl.float32)
        gain = norm0 * tl.exp2(-norm1 * tl.log2(count))
        if PHI == "exp":
            gain *= tl.exp2(top)
    places = out + (n_kv * group * length + row)[:, None] * DIM + channels[None, :]
    tl.store(places, narrow(acc * gain[:, None], out.dtype.element_ty), mask=within)


def serves(q: Tensor, k: Tensor, needs_gradient: bool) -> bool:
    """Whether a call is for these kernels: few queries of longer keys, and no gradient."""
    rows = q.shape[2] * (q.shape[1] // max(k.shape[1], 1))
    few = 0 < rows <= next(most for dim, most in MOST_ROWS.items() if q.shape[-1] <= dim)
    return few and q.shape[2] < k.shape[2] and not needs_gradient


def attend(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    plan: Plan,
    tau: Tensor | None,
    bias: Tensor | None,
    inverse_lengths: Tensor | None = None,
) -> Tensor:
    """Return the attention output [B, H, Lq, D], without a gradient.

    Args:
        q: [B, H, Lq, D], the last Lq of the Lk positions.
        k: [B, H_kv, Lk, D]; a cache's, whose rows are not copied.
        v: [B, H_kv, Lk, D].
        plan: Plan of the variant.
        tau: [H], float32, for an elastic plan.
        bias: Slopes [H] or a table [H, distance] of a plan with a bias, float32, in its units.
        inverse_lengths: One over the lengths of the keys [B, H_kv, Lk] where a cache holds them.
    """
    if plan.unit and inverse_lengths is None:
        inverse_lengths = reference.inverse_lengths(k)
    given = [x for x in (q, k, v, tau, bias, inverse_lengths) if x is not None]
    chosen = decode if ops.traced(*given) else _decode
    return chosen(q, k, v, tau, bias, inverse_lengths, *plan.choices)


@library.custom_op("orrery::attention_decode", mutates_args=())
def decode(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    tau: Tensor | None,
    bias: Tensor | None,
    inverse_lengths: Tensor | None,
    unit: bool,
    phi: str,
    l1: bool,
    sharpen: str,
    kind: str,
    numbers: list[float],
) -> Tensor:
    """Return :func:`attend` of a plan's choices."""
    return _decode(q, k, v, tau, bias, inverse_lengths, unit, phi, l1, sharpen, kind, numbers)


def _decode(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    tau: Tensor | None,
    bias: Tensor | None,
    inverse_lengths: Tensor | None,
    *choices: Any,
) -> Tensor:
    unit, phi, l1, sharpen, kind, numbers = choices
    (batch, heads, length, dim), (_, kv_heads, total, _) = q.shape, k.shape
    out = torch.empty_like(q, memory_format=torch.contiguous_format)
    q = q.contiguous()
    k, v = _rows_as_they_lie(k, v)
    group, pairs = heads // kv_heads, batch * kv_heads
    rows = max(16, power_of_2(group * length))
    wanted = blocks(PROGRAMS, pairs)
    share = KEYS * blocks(blocks(total, KEYS), min(wanted, blocks(total, KEYS)))
    splits = blocks(total, share)
    if inverse_lengths is not None:
        inverse_lengths = inverse_lengths.to(torch.float32).contiguous()
    else:
        inverse_lengths = q  # not read
    parts = q.new_empty([pairs, splits, 2, rows], dtype=torch.float32)
    sums = q.new_empty([pairs, splits, rows, dim], dtype=torch.float32)
    scale0, scale1, shift0, shift1, norm0, norm1, tau0, tau1, _, p = numbers
    longest = bias[0].numel() if bias is not None else 0
    sizes = heads, group, length, total, share, splits, k.stride(1), k.stride(0), longest
    affine = scale0, scale1, shift0, shift1
    tiles = {"D": max(16, power_of_2(dim)), "DIM": dim, "ROWS": rows}
    per_score = {"UNIT": unit, "PHI": phi, "BIAS": kind, "KEYS": KEYS, **tiles}
    whole = int(p) if p == int(p) and p < 1024 else 0

    def run(kernel: Any, grid: tuple[int, int, int], *arguments: Any, **choices: Any) -> None:
        launch.launcher(kernel, q.device.index, **choices, **LAUNCH)(grid, *arguments)

    with torch.cuda.device(q.device.index if q.is_cuda else -1):
        stats = parts
        if sharpen != "none":
            stats = torch.empty_like(parts)
            run(
                decode_stats_kernel, (pairs, splits, 1),
                q, k, inverse_lengths, bias, stats, *sizes, *affine, **per_score,
            )  # fmt: skip
        run(
            decode_kernel, (pairs, splits, 1),
            q, k, v, inverse_lengths, tau, bias, stats, parts, sums,
            *sizes, *affine, tau0, tau1, p, SHARPEN=sharpen, P=whole, **per_score,
        )  # fmt: skip
        run(
            merge_kernel, (pairs, 1, 1),
            parts, sums, out, group, length, total, splits, norm0, norm1,
            PHI=phi, L1=l1, SHARPEN=sharpen, **tiles,
        )  # fmt: skip
    return out


@decode.register_fake
def _(q, k, v, tau, bias, inverse_lengths, *choices):
    return torch.empty_like(q, memory_format=torch.contiguous_format)


def _rows_as_they_lie(k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
    """Return keys and values whose rows follow one another in a head, both of the same strides."""
    rows = (k.shape[3], 1)
    if k.stride() != v.stride() or k.stride()[2:] != rows:
        return k.contiguous(), v.contiguous()
    return k, v
