"""Every name that makes a module: quadratic variants of the catalogue and linear-time mixers."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

from attention import catalogue, linear
from attention.checks import check_size
from attention.layer import Attention
from attention.linear import Mixer

OF_ATTENTION = {
    name: parameter.default
    for name, parameter in inspect.signature(Attention).parameters.items()
    if parameter.default is not parameter.empty
}
"""What the module of every quadratic variant takes beside the variant's own arguments."""


def all_names() -> tuple[str, ...]:
    """Return the names that :func:`build` takes: ``names()``, then ``linear.names()``."""
    return (*catalogue.names(), *linear.names())


def arguments(name: str) -> tuple[str, ...]:
    """Return the names of the arguments that a variant or mixer takes.

    Raises:
        ValueError: There is no such name.
    """
    if name in linear.names():
        return tuple(linear.get(name).arguments)
    return catalogue.get(name).arguments


def label(name: str, **args: Any) -> str:
    """Return how tables call a variant or mixer with these arguments.

    The ``chunk`` of a mixer and the ``backend`` of a variant change no result and are left out.

    Raises:
        ValueError: There is no such name, or an argument is out of range.
        TypeError: An argument it does not take.
    """
    _check_taken(name, args)
    if name in linear.names():
        check_size("chunk", args.pop("chunk", 1))
        return linear.get(name).label_of(args)
    own = {argument: args[argument] for argument in args if argument not in OF_ATTENTION}
    changed = (
        f"{argument}={args[argument]}"
        for argument, default in OF_ATTENTION.items()
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
    """Return the module of a variant, for example ``build("lssar", n_head=4, head_dim=32, p=15)``.

    ``layer`` is the block that the module is for, of the ``n_layer`` of a stack, which matters to
    some mixers. Arguments and errors are those of :class:`attention.layer.Attention` for a name of
    ``names()``, and of :class:`attention.linear.Mixer` for a name of ``linear.names()``.

    Raises:
        ValueError: There is no such name.
        TypeError: An argument it does not take; others that take it are named.
    """
    _check_taken(name, args)
    if name in linear.names():
        place = {"layer": layer, "n_layer": n_layer}
        return linear.build(name, n_head=n_head, head_dim=head_dim, **place, **args)
    return Attention(name, n_head, head_dim, **args)


def _takes(name: str) -> tuple[str, ...]:
    """Return all that :func:`build` takes for a name, beside sizes and layers."""
    of_module = ("chunk",) if name in linear.names() else OF_ATTENTION
    return (*arguments(name), *of_module)


def _check_taken(name: str, args: Mapping[str, Any]) -> None:
    """Refuse an argument that the name does not take, and say which names do."""
    for argument in args:
        if argument in _takes(name):
            continue
        others = [other for other in all_names() if argument in arguments(other)]
        if argument in OF_ATTENTION:
            others.insert(0, "every quadratic variant")
        elif argument == "chunk":
            others = ["every linear mixer"]
        if not others:
            raise TypeError(f"{name} has no {argument}; it takes {', '.join(_takes(name))}")
        *first, last = others
        who = f"{', '.join(first)} and {last} take" if first else f"{last} takes"
        raise TypeError(f"{name} has no {argument}; {who} one")
