"""Checks of tensors and learned parameters, each with a one-line error."""

from __future__ import annotations

from collections.abc import Mapping

from torch import Tensor
from torch.autograd import forward_ad


def check_sequences(x: Tensor, width: int) -> None:
    """Refuse a tensor that is not [B, L, width], with a ValueError."""
    if x.ndim != 3 or x.shape[-1] != width:
        raise ValueError(f"x must be [B, L, {width}], got {list(x.shape)}")


def check_tensors(q: Tensor, k: Tensor, v: Tensor) -> None:
    """Refuse queries [B, H, Lq, D], keys and values [B, H_kv, Lk, D] that do not fit together."""
    for label, tensor in (("q", q), ("k", k), ("v", v)):
        if not isinstance(tensor, Tensor):
            raise TypeError(f"{label} must be a tensor of torch, got {type(tensor).__name__}")
        if tensor.ndim != 4:
            raise ValueError(f"{label} must be [B, H, L, D], got shape {tuple(tensor.shape)}")
        if not tensor.is_floating_point():
            raise TypeError(f"{label} must be a floating tensor, got {tensor.dtype}")
    if not q.device == k.device == v.device:
        raise ValueError(f"q, k and v are on {q.device}, {k.device} and {v.device}; move them")
    if not q.dtype == k.dtype == v.dtype:
        raise TypeError(f"q, k and v differ in dtype: {q.dtype}, {k.dtype} and {v.dtype}")
    if k.shape[:3] != v.shape[:3]:
        raise ValueError(f"k and v differ in [B, H, L]: {tuple(k.shape)} and {tuple(v.shape)}")
    if q.shape[0] != k.shape[0] or q.shape[3] != k.shape[3]:
        raise ValueError(f"q and k differ in B or D: {tuple(q.shape)} and {tuple(k.shape)}")
    if q.shape[1] != k.shape[1] and (k.shape[1] == 0 or q.shape[1] % k.shape[1]):
        raise ValueError(f"{q.shape[1]} heads of q are no multiple of {k.shape[1]} of k and v")
    if q.shape[2] > k.shape[2]:
        raise ValueError(f"more queries than keys: {q.shape[2]} and {k.shape[2]}")


def check_parameters(
    variant: str,
    parameters: Mapping[str, Tensor] | None,
    shapes: Mapping[str, tuple[int, ...]],
    q: Tensor,
) -> None:
    """Refuse learned parameters that are not those of a variant.

    Args:
        variant: Name of the variant.
        parameters: The parameters of the call.
        shapes: Shapes of the variant's parameters for these queries.
        q: Queries, whose device the parameters share.
    """
    parameters = parameters or {}
    given_shapes = {name: tuple(value.shape) for name, value in parameters.items()}
    if given_shapes != shapes:
        expected = dict(shapes) or "none"
        raise ValueError(f"{variant} takes parameters {expected}, got {given_shapes or 'none'}")
    for name, value in parameters.items():
        if value.device != q.device:
            raise ValueError(f"parameter {name} is on {value.device}, q on {q.device}; move it")
        if not value.is_floating_point():
            raise TypeError(f"parameter {name} must be a floating tensor, got {value.dtype}")


def check_no_tangents(kernels: str, instead: str, *tensors: Tensor | None) -> None:
    """Refuse forward-mode differentiation, whose tangents an operator of torch loses in silence.

    Args:
        kernels: Name of the kernels, for the message.
        instead: Advice on what serves the call, for the message.
        *tensors: Tensors that are differentiated, or None.
    """
    if any(x is not None and forward_ad.unpack_dual(x).tangent is not None for x in tensors):
        raise ValueError(f"{kernels} have no forward-mode derivative; {instead}")
