"""Unit vectors of q and k for the cosine variants, with the inverse lengths for gradients."""

import triton
import triton.language as tl

from attention.triton.primitives import load_rows, store_rows


@triton.jit(do_not_specialize=("rows_q", "rows_k"))
def unit_kernel(
    q, k, directions_q, inverse_q, directions_k, inverse_k,
    rows_q, rows_k,
    D: tl.constexpr, ROWS: tl.constexpr,
):  # fmt: skip
    """Write x / |x| [rows, D] and 1 / |x| [rows] of q and of k, 0 where x is; q's blocks first."""
    block = tl.program_id(0).to(tl.int64)
    blocks_q = tl.cdiv(rows_q, ROWS)
    if block < blocks_q:
        _normalise(q, directions_q, inverse_q, block * ROWS, rows_q, D, ROWS)
    else:
        _normalise(k, directions_k, inverse_k, (block - blocks_q) * ROWS, rows_k, D, ROWS)


@triton.jit
def _normalise(x, directions, inverse, first, n_rows, D: tl.constexpr, ROWS: tl.constexpr):
    rows = first + tl.arange(0, ROWS)
    block = load_rows(x, first, n_rows, ROWS, D).to(tl.float32)
    length = tl.sqrt(tl.sum(block * block, axis=1))
    factor = tl.where(length > 0, 1 / tl.maximum(length, 1e-12), 0.0)
    store_rows(directions, first, n_rows, block * factor[:, None], ROWS, D)
    tl.store(inverse + rows, factor, mask=rows < n_rows)
