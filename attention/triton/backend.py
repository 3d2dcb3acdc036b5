"""The fused kernels as a backend: the calls they serve, and how they are called."""

from __future__ import annotations

import functools

import torch
from torch import Tensor

from attention.reference import Parameters, one_per_head
from attention.spec import AttnSpec
from attention.triton import plan

SHARED = 160 * 1024
"""Shared memory in bytes that no shipped tile exceeds (``aot`` holds them to it)."""
CAPABILITIES = ((8, 0), (9, 0), (10, 0))
"""Compute capabilities with that much shared memory: A100, H100 and H200, B200."""

try:
    from attention.triton import decode, ops
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


@functools.cache
def _lacks(device: int) -> str | None:
    """Return what a GPU lacks, or None."""
    if torch.version.hip:
        return "the kernels are written for NVIDIA's GPUs"
    capability = torch.cuda.get_device_capability(device)
    if capability not in CAPABILITIES:
        return (
            f"compute capability {capability[0]}.{capability[1]} has less than the "
            f"{SHARED // 1024} KiB of shared memory that a tile may take"
        )
    return None


def avoids(spec: AttnSpec, q: Tensor) -> str | None:
    """Return why ``auto`` passes the kernels over although they could serve the call."""
    return None if q.is_cuda else "the interpreter is for tests; ask for it by name"


def attend(
    q: Tensor, k: Tensor, v: Tensor, spec: AttnSpec, parameters: Parameters | None
) -> Tensor:
    """Return the attention output [B, H, Lq, D]; arguments as in ``attention.reference.attend``."""
    learned = parameters or {}
    tau = None
    if spec.sharpen.startswith("elastic"):
        fixed = q.new_full([q.shape[1]], spec.tau, dtype=torch.float32)
        tau = learned["tau"].to(torch.float32) if spec.learn_tau else fixed
    bias = plan.bias_table(spec, q, learned)
    made = plan.make(spec, q.shape[-1])
    given = [x for x in (q, k, v, tau, bias) if x is not None]
    needs_gradient = torch.is_grad_enabled() and any(x.requires_grad for x in given)
    if decode.serves(q, k, needs_gradient):
        return decode.attend(q, k, v, made, tau, bias, learned.get("inverse_lengths"))
    k, v = one_per_head(k, q.shape[1]), one_per_head(v, q.shape[1])
    return ops.attend(q, k, v, made, tau, bias)
