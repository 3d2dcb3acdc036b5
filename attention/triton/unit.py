"""Unit vectors of q and k for the cosine variants, with the inverse lengths for gradients.

Heads are read where a projection has left them. RoPE changes no length, so that rows are turned
here on their way, and no turned q or k is written.
"""

import triton
import triton.language as tl

from attention.triton.primitives import narrow, store_rows

WHOLE = ("heads", "length_q", "length_k", "rows_q", "rows_k")
STRIDES = ("batch_q", "head_q", "row_q", "batch_k", "head_k", "row_k")


@triton.jit(do_not_specialize=WHOLE + STRIDES)
def unit_kernel(
    q, k, directions_q, inverse_q, directions_k, inverse_k, cosine, sine,
    heads, length_q, length_k, rows_q, rows_k, batch_q, head_q, row_q, batch_k, head_k, row_k,
    TURN: tl.constexpr, D: tl.constexpr, ROWS: tl.constexpr,
):  # fmt: skip
    """Write x / |x| [rows, D] and 1 / |x| [rows] of q and of k, 0 where x is; q's blocks first.

    A vector of D is at batch b, head h and place l of strides ``batch_q``, ``head_q`` and
    ``row_q``, of q, and of k likewise. With ``TURN`` the directions are turned by the angles
    [length, D / 2] of their places.
    """
    block = tl.program_id(0).to(tl.int64)
    blocks_q = tl.cdiv(rows_q, ROWS)
    if block < blocks_q:
        rows = block * ROWS + tl.arange(0, ROWS)
        start = _start(rows, heads, length_q, batch_q, head_q, row_q)
        _normalise(
            q + start, directions_q, inverse_q, block * ROWS, rows_q, rows % length_q,
            cosine, sine, TURN, D, ROWS,
        )  # fmt: skip
    else:
        block -= blocks_q
        rows = block * ROWS + tl.arange(0, ROWS)
        start = _start(rows, heads, length_k, batch_k, head_k, row_k)
        _normalise(
            k + start, directions_k, inverse_k, block * ROWS, rows_k, rows % length_k,
            cosine, sine, TURN, D, ROWS,
        )  # fmt: skip


@triton.jit
def _start(rows, heads, length, batch_stride, head_stride, row_stride):
    """Return where the vectors of rows begin."""
    head = rows // length
    return head // heads * batch_stride + head % heads * head_stride + rows % length * row_stride


@triton.jit
def _normalise(
    x, directions, inverse, first, n_rows, place, cosine, sine,
    TURN: tl.constexpr, D: tl.constexpr, ROWS: tl.constexpr,
):  # fmt: skip
    rows = first + tl.arange(0, ROWS)
    inside = rows < n_rows
    if TURN:
        half: tl.constexpr = D // 2
        channel = tl.arange(0, half)[None, :]
        angle = place[:, None] * half + channel
        a = tl.load(x[:, None] + channel, mask=inside[:, None], other=0.0).to(tl.float32)
        b = tl.load(x[:, None] + channel + half, mask=inside[:, None], other=0.0).to(tl.float32)
        c = tl.load(cosine + angle, mask=inside[:, None], other=0.0)
        s = tl.load(sine + angle, mask=inside[:, None], other=0.0)
        factor = _inverse(tl.sum(a * a, axis=1) + tl.sum(b * b, axis=1))
        kind = directions.dtype.element_ty
        there = directions + rows[:, None] * D + channel
        one, other = (a * c - b * s) * factor[:, None], (a * s + b * c) * factor[:, None]
        tl.store(there, narrow(one, kind), mask=inside[:, None])
        tl.store(there + half, narrow(other, kind), mask=inside[:, None])
    else:
        here = x[:, None] + tl.arange(0, D)[None, :]
        vector = tl.load(here, mask=inside[:, None], other=0.0).to(tl.float32)
        factor = _inverse(tl.sum(vector * vector, axis=1))
        store_rows(directions, first, n_rows, vector * factor[:, None], ROWS, D)
    tl.store(inverse + rows, factor, mask=inside)


@triton.jit
def _inverse(square):
    length = tl.sqrt(square)
    return tl.where(length > 0, 1 / tl.maximum(length, 1e-12), 0.0)
