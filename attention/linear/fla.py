"""Recurrences of mixers by flash-linear-attention's kernels, where they can serve.

fla-core is optional: :func:`refusal` says why it does not serve a call, and everything works
without it. DeltaNet runs in Gated DeltaNet's kernel with no decay, since its own (0.6.0) refuses
float32, in which states are kept here. Hawk's recurrence is that of HGRN's kernel: its chunked form
has no gradient of the states, so the recurrent one is taken. The kernel of RWKV-4 is the mixer's.

RWKV-7's kernel warns that float32 fails on some GPUs, so that it serves where its values are of
half precision, as they are under autocast; the state stays in float32.

Of other kernels the mixers that share a name stay with PyTorch. TTT's has one rate for all steps
that a position sees, where the published layer has a learned rate for each step, and it begins with
a whole mini-batch. HGRN's is real, hgrn1 complex. Titans has no kernel there, only plain forms.

On an H200 with Triton 3.6 the kernels of one decay a head refused their backward pass, see
:func:`head_refusal`; GLA's of one decay a channel had not ended its first step after 400 s, in
which it tunes itself, see :data:`TUNED_FOR_MINUTES`. HGRN's and RWKV-4's computed there what the
mixers do. No other kernel was run on a GPU by us.
"""

from __future__ import annotations

import functools
import importlib
import importlib.util
import warnings
from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional
from torch.torch_version import TorchVersion

CHANNELS = 16
"""Smallest tile of the kernels; channels of keys are multiples of it, values are padded to one."""
MOST_KEYS = 256
"""Channels of keys that the kernel of the delta rule takes."""
HALF = (torch.float16, torch.bfloat16)
HOPPER = 9
"""Major compute capability for which older Triton compiles a backward pass wrongly."""
TUNED_FOR_MINUTES = ("chunk_gla",)
"""Kernels whose first step said nothing for minutes."""
MENDED = "3.7.1"
"""The Triton that compiles it correctly (issue 640 of flash-linear-attention)."""


def channel_refusal(k: Tensor, v: Tensor) -> str | None:
    """Return why fla does not serve a recurrence of single channels, or None if it does.

    Args:
        k: [..., L, K].
        v: [..., L, V].
    """
    if not k.is_cuda:
        return f"its kernels run on CUDA; the tensors are on {k.device.type}"
    if not installed():
        return "fla-core is not installed"
    if k.dtype != torch.float32:
        return f"its states are float32, the tensors {k.dtype}"
    if k.shape[-2] == 1:
        return "one position is a step of the recurrence"
    return None


def refusal(k: Tensor, v: Tensor) -> str | None:
    """Return why fla does not serve a state that is a matrix, or None if it does.

    Args:
        k: [B, H, L, K].
        v: [B, H, L, V].
    """
    if reason := channel_refusal(k, v):
        return reason
    if k.shape[-1] % CHANNELS:
        return f"{k.shape[-1]} channels of keys are no multiple of {CHANNELS}"
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


def vector_refusal(k: Tensor, v: Tensor) -> str | None:
    """Return why fla does not serve a delta rule whose parts are all vectors, or None.

    Arguments are as in :func:`refusal`; the type of v is that which the caller computes in.
    """
    if reason := refusal(k, v):
        return reason
    if k.shape[-1] > MOST_KEYS:
        return f"{k.shape[-1]} channels of keys are above {MOST_KEYS}"
    if v.dtype not in HALF:
        return f"its kernel takes half precision alone, found {v.dtype}"
    return None


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
    values = v.shape[-1]
    v, state = padded(v), padded(state)
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
    return out.transpose(1, 2)[..., :values], state[..., :values]


def delta_rule(
    q: Tensor, k: Tensor, v: Tensor, log_decay: Tensor, rate: Tensor, state: Tensor
) -> tuple[Tensor, Tensor]:
    """Return q_t S_t of :func:`attention.linear._delta.delta_rule` after a state, and the last."""
    values = v.shape[-1]
    v, state = padded(v), padded(state)
    by_position = (x.transpose(1, 2) for x in (q, k, v, log_decay[..., 0], rate[..., 0]))
    kernel = _kernel("gated_delta_rule", "chunk_gated_delta_rule")
    out, state = kernel(*by_position, scale=1.0, initial_state=state, output_final_state=True)
    return out.transpose(1, 2)[..., :values], state[..., :values]


def vector_rule(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    log_decay: Tensor,
    read: Tensor,
    write: Tensor,
    state: Tensor,
) -> tuple[Tensor, Tensor]:
    """Compute :func:`attention.linear._delta.recurrent`, in the type of v but for the state."""
    values = v.shape[-1]
    parts = (x.to(v.dtype) for x in (q, log_decay, k, padded(v), read, write))
    by_position = (x.transpose(1, 2).contiguous() for x in parts)
    kernel = _kernel("rwkv7", "chunk_rwkv7")
    state = padded(state.to(torch.promote_types(state.dtype, torch.float32)))
    settings = {"scale": 1.0, "initial_state": state, "output_final_state": True}
    out, state = kernel(*by_position, **settings)
    return out.transpose(1, 2)[..., :values].to(q.dtype), state[..., :values]


def padded(v: Tensor) -> Tensor:
    """Return values, or a state, with channels of zeros to a multiple of :data:`CHANNELS`."""
    missing = -v.shape[-1] % CHANNELS
    return functional.pad(v, (0, missing)) if missing else v


def scan(log_a: Tensor, b: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
    """Return h_t = exp(log_a_t) h_{t-1} + b_t of all positions, and the last.

    Args:
        log_a: Logarithms of real factors, not positive, [B, L, C].
        b: Summands, [B, L, C].
        state: h before the first position, [B, C].

    Returns:
        [B, L, C] and [B, C].
    """
    return _kernel("hgrn", "fused_recurrent_hgrn")(b, log_a, state, output_final_state=True)


def bonus_average(
    k: Tensor, v: Tensor, log_rate: Tensor, bonus: Tensor, average: Tensor, normaliser: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Return RWKV-4's wkv of all positions, and the average and normaliser after the last.

    Args:
        k: Logarithms of weights, [B, L, C].
        v: Values, [B, L, C].
        log_rate: Logarithm of w, [C].
        bonus: u, [C].
        average: y of :mod:`attention.linear._average` before the first position, [B, 1, C].
        normaliser: z before it, [B, 1, C].

    Returns:
        [B, L, C] and twice [B, 1, C].
    """
    # The kernel keeps two sums and a logarithm by which both are scaled down.
    state = torch.stack([average, torch.ones_like(average), normaliser], dim=1)
    out, last = _kernel("rwkv4", "fused_recurrent_rwkv4")(log_rate, bonus, k, v, state)
    total, weight, exponent = last.unbind(1)
    return out, total / weight, exponent + weight.log()


@functools.cache
def _kernel(package: str, name: str) -> Callable[..., tuple[Tensor, Tensor]]:
    """Return a kernel of fla; of one that tunes itself for minutes, say so the first time."""
    if name in TUNED_FOR_MINUTES:
        warnings.warn(
            f"flash-linear-attention tunes {name} at its first step, for minutes (more than "
            "400 s on an H200); without fla-core plain PyTorch serves instead",
            stacklevel=3,
        )
    return getattr(importlib.import_module(f"fla.ops.{package}"), name)
