"""The decayed sum and the delta rule by flash-linear-attention's kernels, where they can serve.

fla-core is optional: :func:`refusal` says why it does not serve a call, and everything works
without it. DeltaNet runs in Gated DeltaNet's kernel with no decay, since its own (0.6.0) refuses
float32, in which states are kept here. RWKV-7's warns that float32 fails on some GPUs, so that
mixer stays with PyTorch. On an H200 with Triton 3.6 the kernels of one decay a head refused their
backward pass, see :func:`head_refusal`; that of one decay a channel had not ended its first step
after 400 s, in which it tunes itself. No other kernel was run on a GPU by us.
"""

from __future__ import annotations

import functools
import importlib
import importlib.util
from collections.abc import Callable

import torch
from torch import Tensor
from torch.torch_version import TorchVersion

CHANNELS = 16
"""Smallest tile of the kernels; channels of keys and values are multiples of it."""
MOST_KEYS = 256
"""Channels of keys that the kernel of the delta rule takes."""
HOPPER = 9
"""Major compute capability for which older Triton compiles a backward pass wrongly."""
MENDED = "3.7.1"
"""The Triton that compiles it correctly (issue 640 of flash-linear-attention)."""


def refusal(k: Tensor, v: Tensor) -> str | None:
    """Return why fla does not serve a call, or None if it does.

    Args:
        k: [B, H, L, K].
        v: [B, H, L, V].
    """
    if not k.is_cuda:
        return f"its kernels run on CUDA; the tensors are on {k.device.type}"
    if not installed():
        return "fla-core is not installed"
    if k.dtype != torch.float32:
        return f"its states are float32, the tensors {k.dtype}"
    if k.shape[-1] % CHANNELS or v.shape[-1] % CHANNELS:
        return f"{k.shape[-1]} and {v.shape[-1]} channels are no multiples of {CHANNELS}"
    if k.shape[-2] == 1:
        return "one position is a step of the recurrence"
    return None


def head_refusal(k: Tensor, v: Tensor) -> str | None:
    """Return why fla does not serve one decay a head, or None; arguments as in :func:`refusal`.

    On Hopper the backward pass of these kernels raises under a Triton that compiles it wrongly.
    """
    if reason := refusal(k, v):
        return reason
    major, _ = torch.cuda.get_device_capability(k.device)
    if major == HOPPER and (found := _triton_version()) < MENDED:
        return f"its backward pass needs Triton {MENDED} on this GPU, found {found}"
    return None


@functools.cache
def _triton_version() -> TorchVersion:
    """Return the version of Triton, which fla-core needs."""
    return TorchVersion(importlib.import_module("triton").__version__)


def delta_refusal(k: Tensor, v: Tensor) -> str | None:
    """Return why fla does not serve a delta rule, or None; arguments as in :func:`refusal`."""
    if k.shape[-1] > MOST_KEYS:
        return f"{k.shape[-1]} channels of keys are above {MOST_KEYS}"
    return head_refusal(k, v)


@functools.cache
def installed() -> bool:
    """Return whether fla-core, and what it needs, can be found (without importing it)."""
    return all(importlib.util.find_spec(name) for name in ("fla", "einops"))


def is_per_head(log_decay: Tensor, bonus: Tensor | None) -> bool:
    """Return whether the kernel of one decay a head is that of a decayed sum."""
    return bonus is None and log_decay.shape[-1] == 1


def chunked(
    q: Tensor, k: Tensor, v: Tensor, log_decay: Tensor, state: Tensor, bonus: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """Compute :func:`attention.linear._decay.chunked`, with the same arguments and result."""
    heads = (*v.shape[:3], k.shape[-1])
    q, k, v, log_decay = (
        x.transpose(1, 2) for x in (q.expand(heads), k.expand(heads), v, log_decay)
    )
    settings = {"scale": 1.0, "initial_state": state, "output_final_state": True}
    if is_per_head(log_decay, bonus):
        kernel = _kernel("simple_gla", "chunk_simple_gla")
        out, state = kernel(q, k, v, log_decay.squeeze(-1), **settings)
    elif bonus is not None:
        full = log_decay.expand_as(k)
        out, state = _kernel("rwkv6", "chunk_rwkv6")(q, k, v, full, bonus, **settings)
    else:
        out, state = _kernel("gla", "chunk_gla")(q, k, v, log_decay, **settings)
    return out.transpose(1, 2), state


def delta_rule(
    q: Tensor, k: Tensor, v: Tensor, log_decay: Tensor, rate: Tensor, state: Tensor
) -> tuple[Tensor, Tensor]:
    """Return q_t S_t of :func:`attention.linear._delta.delta_rule` after a state, and the last."""
    by_position = (x.transpose(1, 2) for x in (q, k, v, log_decay[..., 0], rate[..., 0]))
    kernel = _kernel("gated_delta_rule", "chunk_gated_delta_rule")
    out, state = kernel(*by_position, scale=1.0, initial_state=state, output_final_state=True)
    return out.transpose(1, 2), state


def _kernel(package: str, name: str) -> Callable[..., tuple[Tensor, Tensor]]:
    return getattr(importlib.import_module(f"fla.ops.{package}"), name)
