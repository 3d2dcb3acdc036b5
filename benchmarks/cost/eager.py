"""Attention as the papers ran it: plain torch operations in the dtype of the inputs.

The eager side of the speed and precision comparisons. ``attention.reference`` is not it: that one
computes half precision in float32, which is slower and more exact than what is compared with.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional

from attention.reference import unit
from attention.spec import AttnSpec

PHI: dict[str, Callable[[Tensor], Tensor]] = {
    "softplus": functional.softplus,
    "sigmoid": torch.sigmoid,
}
NAMES = (
    "softmax", "lssa", "lssar", "softmax_reweighted", "sigmoid_rowlen_l1", "sigmoid_reweighted",
    "elastic",
)  # fmt: skip
"""Variants that :func:`attend` serves."""


def attend(q: Tensor, k: Tensor, v: Tensor, spec: AttnSpec, tau: Tensor | None = None) -> Tensor:
    """Return the output of one of ``NAMES``, [B, H, L, D]; tau is [H], for elastic."""
    length = q.shape[-2]
    count = torch.arange(1, length + 1, dtype=q.dtype, device=q.device)[:, None]
    mask = torch.ones(length, length, dtype=torch.bool, device=q.device).tril()
    if spec.scale == "log_dim_log_row":
        s = math.log(q.shape[-1]) * torch.log(count) * (unit(q) @ unit(k).transpose(-1, -2))
    else:
        s = q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])
    if spec.shift == "minus_log_row":
        s = s - torch.log(count)
    if spec.phi == "exp":
        a = torch.softmax(s.masked_fill(~mask, -math.inf), dim=-1)
    else:
        f = PHI[spec.phi](s).masked_fill(~mask, 0)
        a = f / f.sum(-1, keepdim=True)
    if spec.sharpen == "elastic_row":
        assert tau is not None
        a = functional.relu(a - tau.to(q.dtype)[:, None, None] / count).masked_fill(~mask, 0)
    elif spec.sharpen == "reweight":
        x = functional.relu(a * count - (count > 3).to(q.dtype)).masked_fill(~mask, 0)
        w = (x / x.amax(-1, keepdim=True)) ** spec.p
        a = w / w.sum(-1, keepdim=True)
    return a @ v
