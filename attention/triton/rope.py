"""RoPE in one kernel: the plain form of ``attention.positions`` takes seven, and copies.

It reads heads where a projection has left them and writes them one after the other, as the
attention kernels want them.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from attention import positions
from attention.triton import ops
from attention.triton.turns import turned

DTYPES = (torch.float16, torch.bfloat16, torch.float32)


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
        return turned(x, (cosine, sine), inverse)

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
