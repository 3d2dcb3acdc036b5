"""Backends: the ways to compute attention, and the choice of one for a call."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from html import escape

import torch
from torch import Tensor

from attention import reference
from attention.backends import blocked, flex, sdpa
from attention.parts.rotations import Rotation
from attention.reference import Parameters
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
        avoids: Returns why ``auto`` passes it over although it could serve the call (of spec, q
            and v), or None.
        attend: Maps (q, k, v, spec, parameters) to the output, and where it turns also angles.
        turns: Returns whether it turns q and k by RoPE itself (of spec, q and k).
    """

    refuses: Callable[[AttnSpec, Tensor, Tensor], str | None]
    avoids: Callable[[AttnSpec, Tensor, Tensor], str | None]
    attend: Callable[..., Tensor]
    turns: Callable[[AttnSpec, Tensor, Tensor], bool] = lambda spec, q, k: False


@dataclass(frozen=True, repr=False)
class Explanation:
    """The backend that serves a call, and why each other one does not.

    It prints as one line per backend.
    """

    chosen: str
    refused: dict[str, str]

    @property
    def _lines(self) -> dict[str, str]:
        return {self.chosen: "serves this call", **self.refused}

    def __repr__(self) -> str:
        return "\n".join(f"{name}: {why}" for name, why in self._lines.items())

    def _repr_html_(self) -> str:
        rows = (
            f"<tr><th>{escape(x)}</th><td>{escape(y)}</td></tr>" for x, y in self._lines.items()
        )
        return f"<table>{''.join(rows)}</table>"


def _never(spec: AttnSpec, q: Tensor, v: Tensor | None = None) -> None:
    return None


def eager(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    spec: AttnSpec,
    parameters: Parameters | None,
    selected: Tensor | None = None,
) -> Tensor:
    """Attention by the reference, some rows at a time where that saves memory or time."""
    if q.device.type == "cpu":
        chunk: int | None = CPU_CHUNK
    else:
        chunk = None if torch.is_grad_enabled() else CHUNK
    return reference.attend(q, k, v, spec, parameters, chunk, selected)


def _warn_of_the_reference(refused: dict[str, str]) -> None:
    """Say once for each set of reasons that a long sequence on a GPU has no fused kernel."""
    if not torch.compiler.is_compiling():
        _warn_once("; ".join(f"{name}: {why}" for name, why in refused.items()))


@functools.cache
def _warn_once(reasons: str) -> None:
    warnings.warn(
        f"more than {flex.LONG} keys on a GPU and no fused kernel: the reference takes memory for "
        f"every pair of tokens ({reasons})",
        stacklevel=4,
    )


def _triton(avoids: Callable[[AttnSpec, Tensor, Tensor], str | None], gradients: str) -> Backend:
    """Return the kernels with gradients that ``auto`` does not take."""
    attend = functools.partial(triton.attend, gradients=gradients)
    return Backend(triton.refuses, avoids, attend, triton.turns)


# In the order in which "auto" tries them.
BACKENDS: dict[str, Backend] = {
    "sdpa": Backend(sdpa.refuses, _never, sdpa.attend),
    "triton": Backend(triton.refuses, triton.avoids, triton.attend, triton.turns),
    "triton_atomic": _triton(triton.avoids_atomic, "atomic"),
    "triton_exact": _triton(triton.avoids_exact, "exact"),
    "flex": Backend(flex.refuses, flex.avoids, flex.attend),
    "blocked": Backend(blocked.refuses, blocked.avoids, blocked.attend),
    "reference": Backend(_never, _never, eager),
}


def check_backend(backend: str) -> None:
    """Refuse a backend that does not exist, with a ValueError."""
    if backend not in ("auto", *BACKENDS):
        raise ValueError(f"unknown backend {backend!r}; choose from auto, {', '.join(BACKENDS)}")


def choose(spec: AttnSpec, q: Tensor, v: Tensor, backend: str = "auto") -> str:
    """Return the name of the backend that serves a call.

    Raises:
        ValueError: ``backend`` does not exist, or refuses the call.
    """
    check_backend(backend)
    if backend == "auto":
        return next(name for name in BACKENDS if _reason(name, spec, q, v) is None)
    if why := BACKENDS[backend].refuses(spec, q, v):
        raise ValueError(f"backend {backend!r} does not serve {spec.name}: {why}")
    return backend


def explain(spec: AttnSpec, q: Tensor, v: Tensor, backend: str = "auto") -> Explanation:
    """Return the backend that serves a call, and why the others do not."""
    chosen = choose(spec, q, v, backend)
    others = {name: _reason(name, spec, q, v) for name in BACKENDS if name != chosen}
    return Explanation(chosen, {name: why or "not needed" for name, why in others.items()})


def _reason(name: str, spec: AttnSpec, q: Tensor, v: Tensor) -> str | None:
    """Return why a backend cannot serve a call, or is passed over for it; else None."""
    return BACKENDS[name].refuses(spec, q, v) or BACKENDS[name].avoids(spec, q, v)


def attend_spec(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    spec: AttnSpec,
    parameters: Parameters | None = None,
    backend: str = "auto",
    rotation: Rotation | None = None,
) -> Tensor:
    """Causal attention of a variant given as its specification, on tensors known to fit.

    With a ``rotation`` q and k are yet to be turned, which a backend may do on its way.
    """
    name = choose(spec, q, v, backend)
    if (backend, name) == ("auto", "reference") and flex.is_long(v):
        _warn_of_the_reference(explain(spec, q, v).refused)
    if q.shape[2] == 0:
        k, v = (reference.one_per_head(x[:, :, :0], q.shape[1]) for x in (k, v))
        return q[..., :1] * k[..., :1] * v  # empty, with gradients of zero
    angles = {}
    if rotation is not None and BACKENDS[name].turns(spec, q, k):
        angles = {"angles": rotation.angles(q)}
    elif rotation is not None:
        q, k = rotation(q), rotation(k)
    # Under autocast backends compute in other types.
    return BACKENDS[name].attend(q, k, v, spec, parameters, **angles).to(q.dtype)
