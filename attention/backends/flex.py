"""Variants as score_mods of torch FlexAttention: one call, or two where there is a second stage.

An l1-normalised phi is a softmax of log phi. The second stage needs the first one's row sums,
which the first call returns as a logsumexp: re-weighting is then a softmax of p log(i a - o), and
an elastic offset a softmax of log(a - tau) times its own sum. On a GPU the calls are compiled; on
a CPU they run eagerly, forward only, which is for tests.
"""

from __future__ import annotations

import functools
import math
import warnings
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional
from torch.nn.attention.flex_attention import (
    AuxRequest,
    BlockMask,
    create_block_mask,
    flex_attention,
)

from attention.positions import alibi_slopes
from attention.reference import DEAD_BELOW, UNTOUCHED_ROWS, Parameters, one_per_head, unit
from attention.spec import AttnSpec

LOG_PHI: dict[str, Callable[[Tensor], Tensor]] = {
    "exp": lambda s: s,
    "sigmoid": functional.logsigmoid,
    "softplus": lambda s: torch.log(functional.softplus(s)),
}

LONG = 2048
"""Keys beyond which ``auto`` prefers compiled calls, although slow to compile and not yet measured,
to weights of every pair in memory."""
FEWEST_VALUES = 16
"""Channels of values: FlexAttention's kernels multiply no fewer."""
NO_BACKWARD = "FlexAttention has no backward on a CPU"


def refuses(spec: AttnSpec, q: Tensor, v: Tensor | None = None) -> str | None:
    """Return why FlexAttention cannot serve a call, or None."""
    if spec.phi not in LOG_PHI:
        return f"phi {spec.phi} is not positive everywhere, so it has no logarithm"
    if spec.normalise != "l1" or spec.modify != "none":
        return "only l1-normalised weights can be written as a score_mod"
    if spec.bias == "learned" and spec.beyond == "refuse":
        return "a score_mod cannot refuse a distance; set beyond to zero or last"
    if spec.sink:
        return "a logit that takes part in the denominator alone is no score_mod"
    if q.dtype not in (torch.float16, torch.bfloat16, torch.float32, torch.float64):
        return f"dtype {q.dtype} is not supported"
    if q.device.type == "cpu" and torch.is_grad_enabled() and q.requires_grad:
        return NO_BACKWARD
    return None


def avoids(spec: AttnSpec, q: Tensor, v: Tensor) -> str | None:
    """Return why ``auto`` passes this backend over although it could serve the call."""
    if q.device.type == "cpu":
        return "on a CPU it runs unfused; ask for it by name"
    if is_long(v):
        return None
    return f"it has not been measured on this device, for up to {LONG} keys; ask for it by name"


def is_long(v: Tensor) -> bool:
    """Whether weights of every pair of tokens are too many for a GPU's memory."""
    return v.is_cuda and v.shape[2] > LONG


def attend(
    q: Tensor, k: Tensor, v: Tensor, spec: AttnSpec, parameters: Parameters | None
) -> Tensor:
    """Return the attention output [B, H, Lq, D]; arguments as in ``attention.reference.attend``."""
    learned = parameters or {}
    asked = torch.is_grad_enabled() and any(x.requires_grad for x in (q, k, v, *learned.values()))
    if asked and not q.is_cuda:
        raise ValueError(f"backend 'flex' does not serve {spec.name}: {NO_BACKWARD}")
    k, v = one_per_head(k, q.shape[1]), one_per_head(v, q.shape[1])
    first = k.shape[-2] - q.shape[-2]  # of the absolute positions, counted from 0
    call = _compiled() if q.is_cuda else _eager
    # What is made under a fake or a functional mode is not kept.
    tracing = torch.compiler.is_compiling()
    traced = not tracing and torch._C._len_torch_dispatch_stack() > 0
    made = _block_mask.__wrapped__ if traced else _block_mask
    mask = made(spec.mask, spec.window, spec.sinks, q.shape[-2], k.shape[-2], str(q.device))
    scale = 1 / math.sqrt(q.shape[-1])
    if spec.scale == "log_length":
        assert spec.length is not None
        scale *= math.log(spec.length)
    elif spec.scale != "inverse_sqrt_dim":
        q, k = unit(q), unit(k)
        scale = spec.g if spec.scale == "cosine" else math.log(q.shape[-1])
    stage1 = _stage1(spec, learned, first, q)
    if spec.sharpen == "none":
        return call(q, k, v, score_mod=stage1, block_mask=mask, scale=scale)
    extras = AuxRequest(lse=True, max_scores=q.is_cuda and spec.sharpen == "reweight")
    few = v.detach()[..., :FEWEST_VALUES]  # the first call's output is not used
    _, aux = call(q, k, few, score_mod=stage1, block_mask=mask, scale=scale, return_aux=extras)
    if spec.sharpen == "reweight":
        top = aux.max_scores if q.is_cuda else _top(q, k, stage1, spec, first, scale)
        stage2 = _reweighted(stage1, aux.lse, top, first, spec)
        return call(q, k, v, score_mod=stage2, block_mask=mask, scale=scale)
    stage2 = _elastic(stage1, aux.lse, first, spec, learned)
    out, aux = call(
        q, k, v, score_mod=stage2, block_mask=mask, scale=scale, return_aux=AuxRequest(lse=True)
    )
    return out * aux.lse.exp()[..., None].to(out.dtype)


def _eager(*arguments: Any, **options: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # "called without torch.compile"
        return flex_attention(*arguments, **options)


@functools.cache
def _compiled() -> Any:
    return torch.compile(flex_attention)


@functools.lru_cache(maxsize=32)
def _block_mask(
    mask: str, window: int, sinks: int, length: int, total: int, device: str
) -> BlockMask:
    """Return which blocks are visible; making it costs more than attention of a short sequence."""
    visible = functools.partial(
        _visible, mask=mask, window=window, sinks=sinks, first=total - length
    )
    with torch.inference_mode(False):  # it is kept, and a training may be the next to use it
        return create_block_mask(visible, None, None, length, total, device=device)


def _visible(
    b: Tensor,
    h: Tensor,
    row: Tensor,
    key: Tensor,
    *,
    mask: str,
    window: int,
    sinks: int,
    first: int,
) -> Tensor:
    place = row + first
    causal = key <= place
    if mask == "causal":
        return causal
    near = key > place - window
    if mask == "streaming":
        near = near | (key < sinks)
    return causal & near


def _stage1(spec: AttnSpec, learned: Parameters, first: int, q: Tensor) -> Callable[..., Tensor]:
    """Return the score_mod whose softmax is the first stage."""
    slopes = alibi_slopes(q.shape[1]).to(q.device) if spec.bias == "alibi" else None
    table = learned.get("bias")

    def score(s: Tensor, b: Tensor, h: Tensor, row: Tensor, key: Tensor) -> Tensor:
        place = row + first
        count = spec.seen(place + 1).to(s.dtype)
        if spec.scale == "log_dim_log_row":
            s = s * torch.log(count)
        if spec.shift == "minus_log_row":
            s = s - torch.log(count)
        elif spec.shift == "minus_log_length":
            assert spec.length is not None
            s = s - math.log(spec.length)
        distance = torch.clamp(place - key, min=0)
        if slopes is not None:
            s = s - slopes[h] * distance
        elif table is not None:
            longest = table.shape[-1]
            bias = table[h, torch.clamp(distance, max=longest - 1)]
            if spec.beyond == "zero":
                bias = torch.where(distance < longest, bias, 0.0)
            s = s - bias
        return LOG_PHI[spec.phi](s)

    return score


def _top(
    q: Tensor, k: Tensor, stage1: Callable[..., Tensor], spec: AttnSpec, first: int, scale: float
) -> Tensor:
    """Return the largest score of each row, [B, H, Lq], which FlexAttention gives on a GPU only."""
    batch, heads, rows, keys = (
        torch.arange(n, device=q.device).view([-1 if i == axis else 1 for i in range(4)])
        for axis, n in enumerate((*q.shape[:3], k.shape[-2]))
    )
    scores = stage1(scale * q @ k.transpose(-1, -2), batch, heads, rows, keys)
    visible = _visible(
        batch, heads, rows, keys, mask=spec.mask, window=spec.window, sinks=spec.sinks, first=first
    )
    return scores.masked_fill(~visible, -math.inf).amax(dim=-1)


def _reweighted(
    stage1: Callable[..., Tensor], lse: Tensor, top: Tensor, first: int, spec: AttnSpec
) -> Callable[..., Tensor]:
    def score(s: Tensor, b: Tensor, h: Tensor, row: Tensor, key: Tensor) -> Tensor:
        count = spec.seen(row + first + 1).to(lse.dtype)
        offset = torch.where(count > UNTOUCHED_ROWS, 1.0, 0.0)
        here = count * torch.exp(stage1(s, b, h, row, key) - lse[b, h, row]) - offset
        largest = count * torch.exp(top[b, h, row] - lse[b, h, row]) - offset
        survives = (here > 0) & (largest > DEAD_BELOW)
        ratio = torch.where(survives, here / torch.where(survives, largest, 1.0), 1.0)
        return torch.where(survives, spec.p * torch.log(ratio), -math.inf)

    return score


def _elastic(
    stage1: Callable[..., Tensor],
    lse: Tensor,
    first: int,
    spec: AttnSpec,
    learned: Parameters,
) -> Callable[..., Tensor]:
    tau = learned.get("tau")

    def score(s: Tensor, b: Tensor, h: Tensor, row: Tensor, key: Tensor) -> Tensor:
        offset = tau[h] if tau is not None else spec.tau
        if spec.sharpen == "elastic_row":
            offset = offset / spec.seen(row + first + 1)
        elif spec.sharpen == "elastic_length":
            assert spec.length is not None
            offset = offset / spec.length
        left = torch.exp(stage1(s, b, h, row, key) - lse[b, h, row]) - offset
        return torch.where(left > 0, torch.log(torch.where(left > 0, left, 1.0)), -math.inf)

    return score
