"""The fused kernels as a backend: the calls they serve, and how they are called."""

from __future__ import annotations

import functools

import torch
from torch import Tensor
from torch.nn import functional

from attention.reference import Parameters, one_per_head
from attention.spec import AttnSpec
from attention.triton import plan, tiles

try:
    from attention.triton import decode, ops, passes
    from attention.triton.primitives import INTERPRETED
except ImportError:  # triton exists for Linux only
    ops = None  # type: ignore[assignment]


def refuses(spec: AttnSpec, q: Tensor, v: Tensor | None = None) -> str | None:
    """Return why the kernels cannot serve a call, or None; without v, values are shaped as q."""
    if ops is None:
        return "the package triton is not installed"
    if not q.is_cuda and not INTERPRETED:
        return f"the kernels need a CUDA device, the tensors are on {q.device}"
    if v is not None and v.shape[-1] != q.shape[-1]:
        return f"values of {v.shape[-1]} channels under keys of {q.shape[-1]} are not fused"
    # A number times a row's place must be held; the last row's is the number of keys.
    n_keys = (q if v is None else v).shape[2]
    return plan.refuses(spec, q, n_keys) or (_lacks(q.device.index) if q.is_cuda else None)


@torch.compiler.assume_constant_result
def _lacks(device: int) -> str | None:
    """Return a GPU's fault, or None: no matter for a graph, which would look inside a cache."""
    return _missing(device)


@functools.cache
def _missing(device: int) -> str | None:
    if torch.version.hip:
        return "the kernels are written for NVIDIA's GPUs"
    if passes.architecture(device) is None:
        return (
            f"{passes.shared_memory(device)} KiB of shared memory a block are less than the "
            f"{min(tiles.SHARED.values())} KiB that the smallest tiles may take"
        )
    return None


def avoids(spec: AttnSpec, q: Tensor, v: Tensor) -> str | None:
    """Return why ``auto`` passes the kernels over although they could serve the call."""
    return None if q.is_cuda else "the interpreter is for tests; ask for it by name"


def avoids_atomic(spec: AttnSpec, q: Tensor, v: Tensor) -> str | None:
    """Return why ``auto`` passes over the kernels whose gradients come in one pass."""
    return "its gradient of q differs between runs in the last digits; ask for it by name"


def avoids_exact(spec: AttnSpec, q: Tensor, v: Tensor) -> str | None:
    """Return why ``auto`` passes over the kernels that compute row means of gradients again."""
    return "its gradients take one more pass; ask for it by name"


def turns(spec: AttnSpec, q: Tensor, k: Tensor) -> bool:
    """Whether RoPE can be left to the kernels: those that make unit vectors turn them as well."""
    fits = q.shape[2] == k.shape[2] and q.shape[-1] in tiles.HEAD_DIMS[8 * q.element_size()]
    return fits and spec.directional


def attend(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    spec: AttnSpec,
    parameters: Parameters | None,
    angles: tuple[Tensor, Tensor] | None = None,
    gradients: str = "split",
) -> Tensor:
    """Return the attention output [B, H, Lq, D]; arguments as in ``attention.reference.attend``.

    ``angles`` (of calls that :func:`turns` accepts) and ``gradients`` are as in
    :func:`attention.triton.ops.attend`.
    """
    learned = parameters or {}
    tau = None
    if spec.sharpen.startswith("elastic"):
        fixed = q.new_full([q.shape[1]], spec.tau, dtype=torch.float32)
        tau = learned["tau"].to(torch.float32) if spec.learn_tau else fixed
    bias = plan.bias_table(spec, q, learned)
    width = q.shape[-1]
    made = plan.make(spec, width)
    given = [x for x in (q, k, v, tau, bias) if x is not None]
    needs_gradient = torch.is_grad_enabled() and any(x.requires_grad for x in given)
    if decode.serves(q, k, needs_gradient):
        return decode.attend(q, k, v, made, tau, bias, learned.get("inverse_lengths"))
    k, v = one_per_head(k, q.shape[1]), one_per_head(v, q.shape[1])
    # Channels of zeros change no score; the scale is that of the caller's width.
    more = next(dim for dim in tiles.HEAD_DIMS[8 * q.element_size()] if dim >= width) - width
    if more:
        q, k, v = (functional.pad(x, (0, more)) for x in (q, k, v))
    out = ops.attend(q, k, v, made, tau, bias, gradients, angles)
    return out[..., :width] if more else out
