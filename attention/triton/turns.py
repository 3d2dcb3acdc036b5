"""The kernel that turns heads by RoPE's angles, and its launch."""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from attention.triton import launch
from attention.triton.primitives import narrow
from attention.triton.tiles import blocks

Angles = tuple[Tensor, Tensor]
"""Cosines and sines of the angles of pairs (j, j + D / 2), each [L, D / 2], float32."""
ELEMENTS = 4096
"""Elements of a program's block."""
LAUNCH = {"num_warps": 4, "num_stages": 1}


@triton.jit(do_not_specialize=("rows", "length", "heads"))
def rope_kernel(
    x, cosine, sine, out,
    rows, length, heads, batch_stride, head_stride, row_stride,
    INVERSE: tl.constexpr, HALF: tl.constexpr, ROWS: tl.constexpr,
):  # fmt: skip
    """Turn the pairs (j, j + HALF) of rows [B H L, 2 HALF] by their angles, or back."""
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    inside = (row < rows)[:, None]
    place, head = row % length, row // length
    start = head // heads * batch_stride + head % heads * head_stride + place * row_stride
    channel = tl.arange(0, HALF)[None, :]
    angle = place[:, None] * HALF + channel
    c, s = tl.load(cosine + angle, mask=inside), tl.load(sine + angle, mask=inside)
    if INVERSE:
        s = -s
    here = x + start[:, None] + channel
    first = tl.load(here, mask=inside).to(tl.float32)
    second = tl.load(here + HALF, mask=inside).to(tl.float32)
    there = out + row[:, None] * (2 * HALF) + channel
    kind = out.dtype.element_ty
    tl.store(there, narrow(first * c - second * s, kind), mask=inside)
    tl.store(there + HALF, narrow(first * s + second * c, kind), mask=inside)


def turned(x: Tensor, angles: Angles, inverse: bool, out: Tensor | None = None) -> Tensor:
    """Return heads [B, H, L, D] turned by their angles, or back.

    Args:
        x: The heads.
        angles: The angles of their places.
        inverse: Whether they are turned back.
        out: Where the result goes, heads one after the other; may be x.
    """
    if x.stride(-1) != 1:  # a gradient may be expanded
        x = x.contiguous()
    batch, heads, length, dim = x.shape
    out = x.new_empty(x.shape) if out is None else out
    rows, size = batch * heads * length, max(1, ELEMENTS // dim)
    choices = {"INVERSE": inverse, "HALF": dim // 2, "ROWS": size}
    with torch.cuda.device(x.device.index if x.is_cuda else -1):
        launch.launcher(rope_kernel, x.device.index, **choices, **LAUNCH)(
            (blocks(rows, size), 1, 1),
            x, *angles, out, rows, length, heads, *x.stride()[:3],
        )  # fmt: skip
    return out
