"""Unit vectors of q and k for the cosine variants, with the inverse lengths for gradients.

RoPE changes no length, so that rows are turned here on their way, and no turned q or k is written.
"""

import triton
import triton.language as tl

from attention.triton.primitives import load_rows, narrow, store_rows


@triton.jit(do_not_specialize=("rows_q", "rows_k", "length"))
def unit_kernel(
    q, k, directions_q, inverse_q, directions_k, inverse_k, cosine, sine,
    rows_q, rows_k, length,
    TURN: tl.constexpr, D: tl.constexpr, ROWS: tl.constexpr,
):  # fmt: skip
    """Write x / |x| [rows, D] and 1 / |x| [rows] of q and of k, 0 where x is; q's blocks first.

    With ``TURN`` the directions are turned by the angles [length, D / 2] of their places.
    """
    block = tl.program_id(0).to(tl.int64)
    blocks_q = tl.cdiv(rows_q, ROWS)
    if block < blocks_q:
        x, directions, inverse, first, n_rows = q, directions_q, inverse_q, block * ROWS, rows_q
        _normalise(x, directions, inverse, first, n_rows, cosine, sine, length, TURN, D, ROWS)
    else:
        first = (block - blocks_q) * ROWS
        x, directions, inverse, n_rows = k, directions_k, inverse_k, rows_k
        _normalise(x, directions, inverse, first, n_rows, cosine, sine, length, TURN, D, ROWS)


@triton.jit
def _normalise(
    x, directions, inverse, first, n_rows, cosine, sine, length,
    TURN: tl.constexpr, D: tl.constexpr, ROWS: tl.constexpr,
):  # fmt: skip
    rows = first + tl.arange(0, ROWS)
    inside = rows < n_rows
    if TURN:
        half: tl.constexpr = D // 2
        channel = tl.arange(0, half)[None, :]
        here, there = rows[:, None] * D + channel, (rows % length)[:, None] * half + channel
        a = tl.load(x + here, mask=inside[:, None], other=0.0).to(tl.float32)
        b = tl.load(x + here + half, mask=inside[:, None], other=0.0).to(tl.float32)
        c = tl.load(cosine + there, mask=inside[:, None], other=0.0)
        s = tl.load(sine + there, mask=inside[:, None], other=0.0)
        factor = _inverse(tl.sum(a * a, axis=1) + tl.sum(b * b, axis=1))
        kind = directions.dtype.element_ty
        one, other = (a * c - b * s) * factor[:, None], (a * s + b * c) * factor[:, None]
        tl.store(directions + here, narrow(one, kind), mask=inside[:, None])
        tl.store(directions + here + half, narrow(other, kind), mask=inside[:, None])
    else:
        block = load_rows(x, first, n_rows, ROWS, D).to(tl.float32)
        factor = _inverse(tl.sum(block * block, axis=1))
        store_rows(directions, first, n_rows, block * factor[:, None], ROWS, D)
    tl.store(inverse + rows, factor, mask=inside)


@triton.jit
def _inverse(square):
    length = tl.sqrt(square)
    return tl.where(length > 0, 1 / tl.maximum(length, 1e-12), 0.0)
