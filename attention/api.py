"""The public face: names of variants and mixers, attention by name, and modules by name."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Mapping
from typing import Any, Literal

import torch
from torch import Tensor

from attention import backends, catalogue, linear, reference
from attention.backends import Explanation
from attention.layer import Attention
from attention.linear import Mixer
from attention.listing import unknown
from attention.reference import Parameters, Stages
from attention.scalars import check_size
from attention.spec import AttnSpec
from attention.validation import check_parameters, check_tensors

MODULE_ARGUMENTS = {
    name: parameter.default
    for name, parameter in inspect.signature(Attention).parameters.items()
    if parameter.default is not parameter.empty
}
"""Arguments and defaults of every quadratic variant's module, beside the variant's own."""


def names(kind: Literal["quadratic", "linear", "all"] = "quadratic") -> tuple[str, ...]:
    """Return the names of variants and mixers.

    Args:
        kind: ``quadratic`` for the variants of :func:`attend`, ``linear`` for the linear-time
            mixers, ``all`` for both, which is what :func:`build` takes.

    Raises:
        ValueError: There is no such kind.
    """
    kinds = {"quadratic": catalogue.names, "linear": linear.names}
    if kind == "all":
        return (*catalogue.names(), *linear.names())
    if kind not in kinds:
        raise ValueError(f"unknown kind {kind!r}; choose from quadratic, linear, all")
    return kinds[kind]()


def get(name: str, **args: Any) -> AttnSpec:
    """Return the specification of a quadratic variant, with some of its arguments changed.

    Raises:
        ValueError: There is no such variant, its entry is bad, or an argument is out of range.
        TypeError: The variant takes no such argument.
    """
    if name not in catalogue.names():  # asked first: torch.compile cannot follow how mixers load
        _check_known(name)
        raise ValueError(
            f"{name} is a linear mixer, which has no attention weights; choose from "
            f"{', '.join(names())}"
        )
    if not args or torch.compiler.is_compiling():  # which would trace through a cache, and warn
        return catalogue.get(name, **args)
    try:
        return _kept(name, **args)
    except TypeError:  # a value without a hash, which is refused by its name
        return catalogue.get(name, **args)


_kept = functools.lru_cache(maxsize=256, typed=True)(catalogue.get)
"""Specifications of recent calls: making one took most of a call's time before its backend."""


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
        k: Keys [B, H_kv, Lk, D], Lk >= Lq. Position encodings are the caller's. H is a multiple of
            H_kv: consecutive heads of q share one of k and v (grouped-query attention).
        v: Values [B, H_kv, Lk, Dv].
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
    spec = _fitting(q, k, v, name, parameters, args)
    return backends.attend_spec(q, k, v, spec, parameters, backend)


def weights(
    q: Tensor, k: Tensor, name: str = "softmax", parameters: Parameters | None = None, **args: Any
) -> Tensor:
    """Return the attention matrix [B, H, Lq, Lk], for analysis; arguments as in :func:`attend`."""
    return reference.weights(q, k, _fitting(q, k, k, name, parameters, args), parameters)


def stages(
    q: Tensor, k: Tensor, name: str = "softmax", parameters: Parameters | None = None, **args: Any
) -> Stages:
    """Return scores, normalised and final weights; arguments as in :func:`attend`."""
    return reference.stages(q, k, _fitting(q, k, k, name, parameters, args), parameters)


def explain(
    name: str, q: Tensor, backend: str = "auto", v: Tensor | None = None, **args: Any
) -> Explanation:
    """Say which backend serves ``attend(q, ..., name)``, or a mixer, and why the others do not.

    Args:
        name: A name of ``names("all")``; of a linear mixer :func:`attention.linear.explain`.
        q: Queries, [B, H, Lq, D].
        backend: ``auto``, or a backend to insist on.
        v: Values, [B, H, Lk, Dv]; None where they are shaped as the queries.
        **args: Arguments of the variant.

    Raises:
        ValueError: Unknown variant or backend, or a forced backend that refuses the call.
    """
    if name in linear.names():
        if backend != "auto":
            raise ValueError(f"{name} is a linear mixer, which has no backend to ask for")
        return linear.explain(name, q, **args)
    return backends.explain(get(name, **args), q, q if v is None else v, backend)


def arguments(name: str) -> tuple[str, ...]:
    """Return the names of the arguments that a variant or mixer takes.

    Raises:
        ValueError: There is no such name.
    """
    _check_known(name)
    if name in linear.names():
        return tuple(linear.get(name).arguments)
    return catalogue.get(name).arguments


def label(name: str, **args: Any) -> str:
    """Return the name of a variant or mixer with these arguments as tables show it.

    The ``chunk`` of a mixer and the ``backend`` of a variant change no result and are left out.

    Raises:
        ValueError: There is no such name, or an argument is out of range.
        TypeError: An argument it does not take.
    """
    _check_taken(name, args)
    if name in linear.names():
        check_size("chunk", args.pop("chunk", 1))
        return linear.get(name).label_of(args)
    own = {argument: args[argument] for argument in args if argument not in MODULE_ARGUMENTS}
    changed = (
        f"{argument}={args[argument]}"
        for argument, default in MODULE_ARGUMENTS.items()
        if argument != "backend" and args.get(argument, default) != default
    )
    return " ".join([catalogue.get(name, **own).label, *changed])


def build(
    name: str,
    *,
    n_head: int,
    head_dim: int,
    layer: int = 0,
    n_layer: int | None = None,
    **args: Any,
) -> Attention | Mixer:
    """Return the module of a variant or mixer, for example of ``lssar`` with ``p=15``.

    Args:
        name: A name of ``names("all")``.
        n_head: Number of heads.
        head_dim: Channels per head.
        layer: Block of a stack that the module is for, which matters to some mixers.
        n_layer: Blocks of the stack.
        **args: Arguments of :class:`attention.layer.Attention` or of the mixer.

    Raises:
        ValueError: There is no such name, or a bad size or argument.
        TypeError: An argument it does not take; others that take it are named.
    """
    _check_taken(name, args)
    if name in linear.names():
        place = {"layer": layer, "n_layer": n_layer}
        return linear.build(name, n_head=n_head, head_dim=head_dim, **place, **args)
    return Attention(name, n_head, head_dim, **args)


def _fitting(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    name: str,
    parameters: Parameters | None,
    args: Mapping[str, Any],
) -> AttnSpec:
    """Return the specification of a variant for tensors and parameters that fit it."""
    spec = get(name, **args)
    check_tensors(q, k, v)
    spec.check_complete()
    spec.check_keys(k.shape[2])
    check_parameters(name, parameters, spec.shapes(*q.shape[:3]), q)
    return spec


def _check_known(name: str) -> None:
    """Refuse a name that is neither a variant's nor a mixer's, and suggest near ones."""
    choices = names("all")
    if name in choices:
        return
    left_out = {**linear.broken(), **catalogue.BROKEN}
    raise ValueError(left_out.get(str(name)) or unknown(name, choices, left_out.values()))


def _takes(name: str) -> tuple[str, ...]:
    """Return all that :func:`build` takes for a name, beside sizes and layers."""
    of_module = ("chunk",) if name in linear.names() else MODULE_ARGUMENTS
    return (*arguments(name), *of_module)


def _check_taken(name: str, args: Mapping[str, Any]) -> None:
    """Refuse an argument that the name does not take, and say which names do."""
    _check_known(name)
    for argument in args:
        if argument in _takes(name):
            continue
        others = [other for other in names("all") if argument in arguments(other)]
        if argument in MODULE_ARGUMENTS:
            others.insert(0, "every quadratic variant")
        elif argument == "chunk":
            others = ["every linear mixer"]
        if not others:
            raise TypeError(f"{name} has no {argument}; it takes {', '.join(_takes(name))}")
        *first, last = others
        who = f"{', '.join(first)} and {last} take" if first else f"{last} takes"
        raise TypeError(f"{name} has no {argument}; {who} one")
