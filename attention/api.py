"""The public face: one call for every variant and every backend."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from attention import flex, reference
from attention.catalogue import get
from attention.reference import Parameters, Stages
from attention.spec import AttnSpec
from attention.triton import backend as triton

CHUNK = 1024
"""Rows at a time where no gradient is needed: memory O(L CHUNK)."""
CPU_CHUNK = 32
"""Rows at a time on a CPU: its caches hold their weights, and later keys cost nothing."""


@dataclass(frozen=True)
class Backend:
    """One way to compute attention.

    Attributes:
        refuses: Returns why a call (of spec, q and v) cannot be served, or None when it can.
        avoids: Returns why ``auto`` passes it over although it could serve the call, or None.
        attend: Maps (q, k, v, spec, parameters) to the output.
    """

    refuses: Callable[[AttnSpec, Tensor, Tensor], str | None]
    avoids: Callable[[AttnSpec, Tensor], str | None]
    attend: Callable[[Tensor, Tensor, Tensor, AttnSpec, Parameters | None], Tensor]


def _sdpa_refuses(spec: AttnSpec, q: Tensor, v: Tensor) -> str | None:
    plain = AttnSpec(spec.name)
    differs = [
        field
        for field in ("phi", "scale", "shift", "bias", "mask", "normalise", "modify", "sharpen")
        if getattr(spec, field) != getattr(plain, field)
    ]
    if differs or spec.sink:
        return "scaled_dot_product_attention computes softmax only"
    return None


def _sdpa(q: Tensor, k: Tensor, v: Tensor, spec: AttnSpec, parameters: Parameters | None) -> Tensor:
    if q.shape[-2] == k.shape[-2]:
        return functional.scaled_dot_product_attention(q, k, v, is_causal=True)
    # With fewer queries than keys torch aligns the causal mask to the first key; ours to the last.
    length, total = q.shape[-2], k.shape[-2]
    mask = torch.ones(length, total, dtype=torch.bool, device=q.device).tril(total - length)
    return functional.scaled_dot_product_attention(q, k, v, attn_mask=mask)


def _never(spec: AttnSpec, q: Tensor, v: Tensor | None = None) -> None:
    return None


def _reference(
    q: Tensor, k: Tensor, v: Tensor, spec: AttnSpec, parameters: Parameters | None
) -> Tensor:
    if q.device.type == "cpu":
        chunk: int | None = CPU_CHUNK
    else:
        chunk = None if torch.is_grad_enabled() else CHUNK
    return reference.attend(q, k, v, spec, parameters, chunk)


# In the order in which "auto" tries them.
BACKENDS: dict[str, Backend] = {
    "sdpa": Backend(_sdpa_refuses, _never, _sdpa),
    "triton": Backend(triton.refuses, triton.avoids, triton.attend),
    "flex": Backend(flex.refuses, flex.avoids, flex.attend),
    "reference": Backend(_never, _never, _reference),
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
    q: Tensor,
    k: Tensor,
    v: Tensor,
    name: str = "softmax",
    *,
    backend: str = "auto",
    parameters: Parameters | None = None,
    **args: Any,
) -> Tensor:
    """Causal attention of any variant.

    Args:
        q: Queries [B, H, Lq, D]. They are the last Lq of the Lk positions, so that decoding with
            a cache sees the right row numbers.
        k: Keys [B, H, Lk, D], Lk >= Lq. Position encodings are the caller's.
        v: Values [B, H, Lk, Dv].
        name: A name of :func:`attention.names`.
        backend: ``auto``, or a backend to insist on.
        parameters: The learned numbers of a variant that has some, see
            :data:`attention.reference.Parameters`.
        **args: Arguments of the variant, for example ``p=15``.

    Returns:
        [B, H, Lq, Dv] in the dtype of ``q``.

    Raises:
        ValueError: Unknown variant or backend, mismatched shapes, a missing parameter or length,
            or a backend that does not serve this call.
        TypeError: Integer tensors, or an argument the variant does not take.
    """
    spec = get(name, **args)
    _check(q, k, v, spec, parameters)
    return attend_spec(q, k, v, spec, parameters, backend)


def attend_spec(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    spec: AttnSpec,
    parameters: Parameters | None = None,
    backend: str = "auto",
) -> Tensor:
    """Causal attention of a variant given as its specification, on tensors known to fit."""
    chosen = _choose(spec, q, v, backend).chosen
    if q.shape[2] == 0:
        return q[..., :1] * k[:, :, :0, :1] * v[:, :, :0]  # empty, with gradients of zero
    return BACKENDS[chosen].attend(q, k, v, spec, parameters)


def weights(
    q: Tensor, k: Tensor, name: str = "softmax", parameters: Parameters | None = None, **args: Any
) -> Tensor:
    """Return the attention matrix [B, H, Lq, Lk], for analysis; arguments as in :func:`attend`."""
    spec = get(name, **args)
    _check(q, k, k, spec, parameters)
    return reference.weights(q, k, spec, parameters)


def stages(
    q: Tensor, k: Tensor, name: str = "softmax", parameters: Parameters | None = None, **args: Any
) -> Stages:
    """Return scores, normalised and final weights; arguments as in :func:`attend`."""
    spec = get(name, **args)
    _check(q, k, k, spec, parameters)
    return reference.stages(q, k, spec, parameters)


def explain(
    name: str, q: Tensor, backend: str = "auto", v: Tensor | None = None, **args: Any
) -> Explanation:
    """Say which backend serves ``attend(q, ..., name)`` and why the others do not.

    Args:
        name: A name of :func:`attention.names`.
        q: Queries, [B, H, Lq, D].
        backend: ``auto``, or a backend to insist on.
        v: Values, [B, H, Lk, Dv]; None where they are shaped as the queries.
        **args: Arguments of the variant.

    Raises:
        ValueError: Unknown variant or backend, or a forced backend that refuses the call.
    """
    return _choose(get(name, **args), q, q if v is None else v, backend)


def check_complete(spec: AttnSpec) -> None:
    """Refuse a variant whose formula contains a length that was not given.

    Raises:
        ValueError: ``length`` is missing.
    """
    if spec.needs_length and spec.length is None:
        raise ValueError(f"{spec.name} needs the sequence length: length=1024, for example")


def check_backend(backend: str) -> None:
    """Refuse a backend that does not exist.

    Raises:
        ValueError: There is no such backend.
    """
    if backend not in ("auto", *BACKENDS):
        raise ValueError(f"unknown backend {backend!r}; choose from auto, {', '.join(BACKENDS)}")


def _choose(spec: AttnSpec, q: Tensor, v: Tensor, backend: str) -> Explanation:
    check_backend(backend)
    reasons = {name: candidate.refuses(spec, q, v) for name, candidate in BACKENDS.items()}
    if backend != "auto" and reasons[backend]:
        raise ValueError(f"backend {backend!r} does not serve {spec.name}: {reasons[backend]}")
    for name, candidate in BACKENDS.items():
        reasons[name] = reasons[name] or candidate.avoids(spec, q)
    chosen = next(name for name, why in reasons.items() if not why)
    if backend != "auto":
        chosen = backend
    return Explanation(
        chosen, {n: why or "not needed" for n, why in reasons.items() if n != chosen}
    )


def _check(q: Tensor, k: Tensor, v: Tensor, spec: AttnSpec, parameters: Parameters | None) -> None:
    for label, tensor in (("q", q), ("k", k), ("v", v)):
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
    if q.shape[:2] != k.shape[:2] or q.shape[3] != k.shape[3]:
        raise ValueError(f"q and k differ in [B, H, D]: {tuple(q.shape)} and {tuple(k.shape)}")
    if q.shape[2] > k.shape[2]:
        raise ValueError(f"more queries than keys: {q.shape[2]} and {k.shape[2]}")
    check_complete(spec)
    if spec.bias == "learned" and spec.beyond == "refuse" and k.shape[2] > spec.max_distance:
        raise ValueError(
            f"{k.shape[2]} keys are more than the max_distance {spec.max_distance} of {spec.name}; "
            "set beyond to zero or last, or raise max_distance"
        )
    sizes = {"head": q.shape[1], "distance": spec.max_distance}
    wanted = {name: tuple(sizes[d] for d in dims) for name, dims in spec.learned.items()}
    if spec.gated:
        wanted["gates"] = (*q.shape[:3], 2)
    given = {name: tuple(value.shape) for name, value in (parameters or {}).items()}
    if given != wanted:
        raise ValueError(f"{spec.name} takes parameters {wanted or 'none'}, got {given or 'none'}")
    for name, value in (parameters or {}).items():
        if value.device != q.device:
            raise ValueError(f"parameter {name} is on {value.device}, q on {q.device}; move it")
        if not value.is_floating_point():
            raise TypeError(f"parameter {name} must be a floating tensor, got {value.dtype}")
