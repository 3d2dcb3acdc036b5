"""RoPE in one kernel: the plain form of ``attention.positions`` takes seven, and copies.

It reads heads where a projection has left them and writes them one after the other, as the
attention kernels want them.
"""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from attention import positions
from attention.triton import launch, ops
from attention.triton.primitives import narrow
from attention.triton.tiles import blocks

ELEMENTS = 4096
"""Elements of a program's block."""
LAUNCH = {"num_warps": 4, "num_stages": 1}
DTYPES = (torch.float16, torch.bfloat16, torch.float32)


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


def serves(x: Tensor) -> bool:
    """Whether the kernel is for a tensor on a GPU."""
    return x.is_cuda and fits(x)


def fits(x: Tensor) -> bool:
    """Whether the kernel takes a tensor: heads [B, H, L, D], D a power of two from 4."""
    if x.dim() != 4 or x.dtype not in DTYPES:
        return False
    dim = x.shape[-1]
    return dim >= 4 and dim & (dim - 1) == 0 and x.stride(-1) == 1 and x.numel() > 0


def rotated(x: Tensor, cosine: Tensor, sine: Tensor) -> Tensor:
    """Return x [B, H, L, D] turned, differentiable in x as often as wanted.

    Args:
        x: Heads that :func:`fits` accepts.
        cosine: Cosines of the angles, [L, D / 2], float32.
        sine: Sines of the angles, likewise.
    """
    return _Rotation.apply(x, cosine, sine, False)


class _Rotation(torch.autograd.Function):
    """The rotation, whose gradient is the rotation back and whose tangent is itself."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, cosine: Tensor, sine: Tensor, inverse: bool) -> Tensor:
        ctx.save_for_backward(cosine, sine)
        ctx.save_for_forward(cosine, sine)
        ctx.inverse = inverse
        return _turned(x, cosine, sine, inverse)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple:
        cosine, sine = ctx.saved_tensors
        if ops.traced(grad):  # a gradient may be looked at where the call was not
            sine = sine if ctx.inverse else -sine
            back = positions.rotated(grad.to(cosine.dtype), cosine, sine).to(grad.dtype)
        else:
            back = _Rotation.apply(grad, cosine, sine, not ctx.inverse)
        return back, None, None, None

    @staticmethod
    def jvp(ctx: Any, tangent: Tensor, *_: None) -> Tensor:
        return _Rotation.apply(tangent, *ctx.saved_tensors, ctx.inverse)


def _turned(x: Tensor, cosine: Tensor, sine: Tensor, inverse: bool) -> Tensor:
    if x.stride(-1) != 1:  # a gradient may be expanded
        x = x.contiguous()
    batch, heads, length, dim = x.shape
    out = x.new_empty(x.shape)
    rows, size = batch * heads * length, max(1, ELEMENTS // dim)
    choices = {"INVERSE": inverse, "HALF": dim // 2, "ROWS": size}
    with torch.cuda.device(x.device.index if x.is_cuda else -1):
        launch.launcher(rope_kernel, x.device.index, **choices, **LAUNCH)(
            (blocks(rows, size), 1, 1),
            x, cosine, sine, out, rows, length, heads, *x.stride()[:3],
        )  # fmt: skip
    return out
