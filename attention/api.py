"""The public face: one call for every variant and every backend."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from attention import reference
from attention.spec import AttnSpec, get


@dataclass(frozen=True)
class Backend:
    """One way to compute attention.

    Attributes:
        refuses: Returns why a call cannot be served, or None when it can.
        attend: Maps (q, k, v, spec) to the output.
    """

    refuses: Callable[[AttnSpec, Tensor], str | None]
    attend: Callable[[Tensor, Tensor, Tensor, AttnSpec], Tensor]


def _sdpa_refuses(spec: AttnSpec, q: Tensor) -> str | None:
    if spec.phi != "exp" or spec.scale != "inverse_sqrt_dim" or spec.p is not None:
        return "scaled_dot_product_attention computes softmax only"
    return None


def _sdpa(q: Tensor, k: Tensor, v: Tensor, spec: AttnSpec) -> Tensor:
    if q.shape[-2] == k.shape[-2]:
        return functional.scaled_dot_product_attention(q, k, v, is_causal=True)
    # With fewer queries than keys torch aligns the causal mask to the first key; ours to the last.
    length, total = q.shape[-2], k.shape[-2]
    mask = torch.ones(length, total, dtype=torch.bool, device=q.device).tril(total - length)
    return functional.scaled_dot_product_attention(q, k, v, attn_mask=mask)


# In the order in which "auto" tries them.
BACKENDS: dict[str, Backend] = {
    "sdpa": Backend(_sdpa_refuses, _sdpa),
    "reference": Backend(lambda spec, q: None, reference.attend),
}


@dataclass(frozen=True)
class Explanation:
    """Which backend serves a call, and why each other one does not."""

    chosen: str
    refused: dict[str, str]

    def __str__(self) -> str:
        """Return one line per backend."""
        lines = [f"{self.chosen}: serves this call"]
        return "\n".join(lines + [f"{name}: {why}" for name, why in self.refused.items()])


def attend(
    q: Tensor, k: Tensor, v: Tensor, name: str = "softmax", *, backend: str = "auto", **args: Any
) -> Tensor:
    """Causal attention of any variant.

    Args:
        q: Queries [B, H, Lq, D]. They are the last Lq of the Lk positions, so that decoding with
            a cache sees the right row numbers.
        k: Keys [B, H, Lk, D], Lk >= Lq. Position encodings are the caller's.
        v: Values [B, H, Lk, D].
        name: A name of :func:`attention.names`.
        backend: ``auto``, or a backend to insist on.
        **args: Arguments of the variant, for example ``p=15``.

    Returns:
        [B, H, Lq, D] in the dtype of ``q``.

    Raises:
        ValueError: Unknown variant or backend, mismatched shapes, or a backend that does not
            serve this call.
        TypeError: Integer tensors, or an argument the variant does not take.
    """
    spec = get(name, **args)
    _check(q, k, v)
    return attend_spec(q, k, v, spec, backend)


def attend_spec(q: Tensor, k: Tensor, v: Tensor, spec: AttnSpec, backend: str = "auto") -> Tensor:
    """Causal attention of a variant given as its specification, on tensors known to fit."""
    return BACKENDS[_choose(spec, q, backend).chosen].attend(q, k, v, spec)


def weights(q: Tensor, k: Tensor, name: str = "softmax", **args: Any) -> Tensor:
    """Return the attention matrix [B, H, Lq, Lk], for analysis; arguments as in :func:`attend`."""
    spec = get(name, **args)
    _check(q, k, k)
    return reference.weights(q, k, spec)


def explain(name: str, q: Tensor, backend: str = "auto", **args: Any) -> Explanation:
    """Say which backend serves ``attend(q, ..., name)`` and why the others do not.

    Raises:
        ValueError: Unknown variant or backend, or a forced backend that refuses the call.
    """
    return _choose(get(name, **args), q, backend)


def _choose(spec: AttnSpec, q: Tensor, backend: str) -> Explanation:
    if backend not in ("auto", *BACKENDS):
        raise ValueError(f"unknown backend {backend!r}; choose from auto, {', '.join(BACKENDS)}")
    reasons = {name: candidate.refuses(spec, q) for name, candidate in BACKENDS.items()}
    if backend != "auto" and reasons[backend]:
        raise ValueError(f"backend {backend!r} does not serve {spec.name}: {reasons[backend]}")
    chosen = next(name for name, why in reasons.items() if not why)
    if backend != "auto":
        chosen = backend
    return Explanation(
        chosen, {n: why or "not needed" for n, why in reasons.items() if n != chosen}
    )


def _check(q: Tensor, k: Tensor, v: Tensor) -> None:
    for label, tensor in (("q", q), ("k", k), ("v", v)):
        if tensor.ndim != 4:
            raise ValueError(f"{label} must be [B, H, L, D], got shape {tuple(tensor.shape)}")
        if not tensor.is_floating_point():
            raise TypeError(f"{label} must be a floating tensor, got {tensor.dtype}")
    if k.shape[:3] != v.shape[:3]:
        raise ValueError(f"k and v differ in [B, H, L]: {tuple(k.shape)} and {tuple(v.shape)}")
    if q.shape[:2] != k.shape[:2] or q.shape[3] != k.shape[3]:
        raise ValueError(f"q and k differ in [B, H, D]: {tuple(q.shape)} and {tuple(k.shape)}")
    if q.shape[2] > k.shape[2]:
        raise ValueError(f"more queries than keys: {q.shape[2]} and {k.shape[2]}")
