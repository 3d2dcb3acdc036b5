"""What modules of either kind, quadratic and linear, refuse."""

from __future__ import annotations

import math
from numbers import Integral
from typing import Any

from torch import Tensor
from torch.autograd import forward_ad


def check_size(label: str, size: Any, least: int = 1) -> None:
    """Refuse what is not a whole number, or too small.

    Raises:
        ValueError: It is.
    """
    if isinstance(size, bool) or not isinstance(size, Integral):
        raise ValueError(f"{label} must be a whole number, got {size!r}")
    if size < least:
        raise ValueError(f"{label} must be at least {least}, got {size}")


def check_positive(label: str, value: Any) -> None:
    """Refuse what is not a positive and finite number.

    Raises:
        ValueError: It is not.
    """
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < math.inf:
        raise ValueError(f"{label} must be a positive number, got {value!r}")


def check_sequences(x: Tensor, width: int) -> None:
    """Refuse what is not a batch of sequences of ``width`` channels.

    Raises:
        ValueError: It is not.
    """
    if x.ndim != 3 or x.shape[-1] != width:
        raise ValueError(f"x must be [B, L, {width}], got {list(x.shape)}")


def check_no_tangents(kernels: str, instead: str, *tensors: Tensor | None) -> None:
    """Refuse forward-mode differentiation, whose tangents an operator of torch loses in silence.

    Args:
        kernels: Whose they are.
        instead: What serves the call.
        *tensors: What is differentiated; None where there is nothing.

    Raises:
        ValueError: A tensor has a tangent (``torch.func.jvp``, ``torch.autograd.forward_ad``).
    """
    if any(x is not None and forward_ad.unpack_dual(x).tangent is not None for x in tensors):
        raise ValueError(f"{kernels} have no forward-mode derivative; {instead}")
