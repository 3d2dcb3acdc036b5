"""PyTorch's scaled_dot_product_attention: softmax alone."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from attention.reference import Parameters
from attention.spec import AttnSpec

_PARTS = ("phi", "scale", "shift", "bias", "mask", "normalise", "modify", "sharpen")
_SOFTMAX = {field: getattr(AttnSpec("softmax"), field) for field in _PARTS}


def refuses(spec: AttnSpec, q: Tensor, v: Tensor) -> str | None:
    """Return why the function cannot serve a call, or None."""
    if spec.sink or any(getattr(spec, field) != value for field, value in _SOFTMAX.items()):
        return "scaled_dot_product_attention computes softmax only"
    return None


def attend(
    q: Tensor, k: Tensor, v: Tensor, spec: AttnSpec, parameters: Parameters | None
) -> Tensor:
    """Return the attention output [B, H, Lq, D]; arguments as in ``attention.reference.attend``."""
    length, total = q.shape[-2], k.shape[-2]
    shared = q.shape[1] // k.shape[1] if q.shape[1] else 1
    if length == total:
        return functional.scaled_dot_product_attention(
            q, k, v, is_causal=True, enable_gqa=shared > 1
        )
    # With fewer queries than keys torch aligns the causal mask to the first key; ours to the last.
    mask = None
    if length > 1:
        mask = torch.ones(length, total, dtype=torch.bool, device=q.device).tril(total - length)
        mask = mask.repeat(shared, 1)
    # Heads that share keys are rows of one head: torch would copy the keys for each.
    together = q.unflatten(1, (-1, shared)).flatten(2, 3)
    mixed = functional.scaled_dot_product_attention(together, k, v, attn_mask=mask)
    return mixed.unflatten(2, (shared, -1)).flatten(1, 2)
