"""Search arguments: which ones a package has, and a change to them checked before any work.

The constructors are read, not imported: importing pysr would start Julia.
"""

from __future__ import annotations

import ast
import functools
import importlib.util
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from orbits.runs.choices import did_you_mean


@dataclass(frozen=True)
class Keyword:
    """Values that a keyword of a constructor takes: types by name (none if unknown), or words."""

    types: frozenset[str]
    choices: tuple[Any, ...] = ()

    def takes(self, value: Any) -> bool:
        """Tell whether ``value`` is of a type or among the choices."""
        kind = type(value).__name__
        alike = {"int": "float", "list": "tuple"}.get(kind)  # JSON writes 1 for 1.0, has no tuples
        anything = not (self.types or self.choices)
        return anything or value in self.choices or not self.types.isdisjoint((kind, alike))

    def __str__(self) -> str:
        types = sorted(self.types - {"NoneType"})
        null = ["null"] if "NoneType" in self.types else []
        return " or ".join([*types, *map(repr, self.choices), *null])


@functools.cache
def keywords(package: str, file: str, constructor: str) -> Mapping[str, Keyword]:
    """Return the keywords of a class's constructor, read from a package's file, not imported."""
    spec = importlib.util.find_spec(package)
    if spec is None or spec.origin is None:
        raise RuntimeError(f"{package} is not installed; run: pip install {package}")
    tree = ast.parse((Path(spec.origin).parent / file).read_text(encoding="utf-8"))
    (body,) = (
        node.body
        for node in tree.body
        if isinstance(node, ast.ClassDef) and node.name == constructor
    )
    (signature,) = (
        node.args for node in body if isinstance(node, ast.FunctionDef) and node.name == "__init__"
    )
    positional = signature.args[1:]  # without self
    padding: list[ast.expr | None] = [None] * (len(positional) - len(signature.defaults))
    arguments = [*positional, *signature.kwonlyargs]
    defaults = [*padding, *signature.defaults, *signature.kw_defaults]
    return {
        argument.arg: _keyword(argument.annotation, default)
        for argument, default in zip(arguments, defaults, strict=True)
    }


def _keyword(annotation: ast.expr | None, default: ast.expr | None) -> Keyword:
    if annotation is not None:
        return _annotated(annotation)
    try:
        value = ast.literal_eval(default) if default is not None else None
    except ValueError:
        value = None
    # A package that does not say takes, as a rule, a word in place of a number, and None.
    return Keyword(frozenset(() if value is None else (type(value).__name__, "str", "NoneType")))


def _annotated(annotation: ast.expr) -> Keyword:
    match annotation:
        case ast.BinOp(left=left, op=ast.BitOr(), right=right):
            one, other = _annotated(left), _annotated(right)
            return Keyword(one.types | other.types, one.choices + other.choices)
        case ast.Subscript(value=ast.Name(id="Literal"), slice=choices):
            values = ast.literal_eval(choices)
            return Keyword(frozenset(), values if isinstance(values, tuple) else (values,))
        case ast.Subscript(value=origin):
            return _annotated(origin)
        case ast.Constant(value=None):
            return Keyword(frozenset(["NoneType"]))
    return Keyword(frozenset([ast.unparse(annotation)]))


def changed(
    engine: str,
    current: Mapping[str, Any],
    changes: Mapping[str, Any],
    known: Mapping[str, Keyword],
    reserved: Mapping[str, str],
) -> dict[str, Any]:
    """Return ``current`` with ``changes``, or a ValueError that names near arguments or the reason.

    ``reserved`` has the arguments that cannot be changed, each with the reason.
    """
    for name, value in changes.items():
        if name in reserved:
            raise ValueError(f"{engine}: {name} cannot be set: {reserved[name]}")
        if name not in known:
            choices = [choice for choice in known if choice not in reserved]
            raise ValueError(f"{engine} has no argument {name!r}{did_you_mean(name, choices)}")
        if not known[name].takes(value):
            raise ValueError(f"{engine}: {name} must be {known[name]}, got {value!r}")
        try:
            json.dumps(value, allow_nan=False)
        except (TypeError, ValueError):
            raise ValueError(f"{engine}: {name} must be plain data, got {value!r}") from None
    return {**current, **changes}
