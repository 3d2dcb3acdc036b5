"""Unit vectors of q and k for the cosine variants, with the inverse lengths for gradients."""

import triton
import triton.language as tl

from attention.triton.primitives import load_rows, store_rows


@triton.jit
def unit_kernel(
    x, directions, inverse,
    n_rows,
    D: tl.constexpr, ROWS: tl.constexpr,
):  # fmt: skip
    """Write x / |x| of rows [n_rows, D] and 1 / |x| [n_rows], both 0 where x is."""
    first = tl.program_id(0).to(tl.int64) * ROWS
    rows = first + tl.arange(0, ROWS)
    block = load_rows(x, first, n_rows, ROWS, D).to(tl.float32)
    length = tl.sqrt(tl.sum(block * block, axis=1))
    factor = tl.where(length > 0, 1 / tl.maximum(length, 1e-12), 0.0)
    store_rows(directions, first, n_rows, block * factor[:, None], ROWS, D)
    tl.store(inverse + rows, factor, mask=rows < n_rows)
