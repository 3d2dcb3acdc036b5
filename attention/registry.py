"""Every name that makes a module: quadratic variants of the catalogue and linear-time mixers."""

from __future__ import annotations

from typing import Any

from attention import catalogue, linear
from attention.layer import Attention
from attention.linear import Mixer


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

    The ``chunk`` of a mixer, which changes no result, is left out.

    Raises:
        ValueError: There is no such name, or an argument is out of range.
        TypeError: An argument it does not take.
    """
    if name in linear.names():
        return linear.get(name).label_of({k: v for k, v in args.items() if k != "chunk"})
    return catalogue.get(name, **args).label


def build(
    name: str, *, n_head: int, head_dim: int, layer: int = 0, **args: Any
) -> Attention | Mixer:
    """Return the module of a variant, for example ``build("lssar", n_head=4, head_dim=32, p=15)``.

    ``layer`` is the block of a stack that the module is for, which matters to some mixers.
    Arguments and errors are those of :class:`attention.layer.Attention` for a name of ``names()``,
    and of :class:`attention.linear.Mixer` for a name of ``linear.names()``.

    Raises:
        ValueError: There is no such name.
    """
    if name in linear.names():
        return linear.build(name, n_head=n_head, head_dim=head_dim, layer=layer, **args)
    return Attention(name, n_head, head_dim, **args)
