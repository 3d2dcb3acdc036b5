"""Settings: dataclasses that are built from plain data, and checks of their fields."""

from __future__ import annotations

import dataclasses
import math
import typing
from collections.abc import Mapping
from typing import Any

import jsonargparse

SEEDS = ("seeds", "label_sets", "baseline_seeds")
"""Fields that are seeds of trainings."""
HEAD_OFFSET = 1000
"""Offset of the seed of a head from that of the model that it is trained on."""
LARGEST_SEED = 2**32 - 1 - HEAD_OFFSET
"""Largest seed: PyTorch, NumPy and Lightning take seeds below 2^32."""


def build_settings(kind: type, values: Mapping[str, Any]) -> Any:
    """Return a dataclass from plain data: groups from mappings, tuples from lists.

    Raises:
        ValueError: A field is unknown or has the wrong type, or the class refuses a value.
    """
    parser = jsonargparse.ArgumentParser(exit_on_error=False)
    resolve_types(kind)
    parser.add_class_arguments(kind, "settings")
    unknown = set(values) - {field.name for field in dataclasses.fields(kind)}
    if unknown:
        choices = ", ".join(field.name for field in dataclasses.fields(kind))
        raise ValueError(f"unknown setting {sorted(unknown)[0]!r}; choose from {choices}")
    try:
        plain = parser.parse_object({"settings": _as_lists(values)})
    except jsonargparse.ArgumentError as error:
        raise ValueError(" ".join(str(error).split())) from None
    return parser.instantiate(plain).settings


def resolve_types(kind: Any) -> None:
    """Put types in place of the strings that stand for those of a dataclass's fields.

    jsonargparse would do so too, but imports everything that the module imports for type checking
    alone, and ``--help`` would wait for torch.
    """
    hints = typing.get_type_hints(kind)
    for field in dataclasses.fields(kind):
        hint = hints[field.name]
        vars(kind)["__init__"].__annotations__[field.name] = hint
        if isinstance(hint, type) and dataclasses.is_dataclass(hint):
            resolve_types(hint)


def check_at_least(settings: Any, least: Mapping[str, float]) -> None:
    """Refuse fields below their bounds, and infinite ones; None passes.

    Args:
        settings: A dataclass.
        least: The least value of a field, or of each of its items.

    Raises:
        ValueError: A value is too small, or a seed too large; the message names the field.
    """
    for name, bound in least.items():
        value = getattr(settings, name)
        for item in value if isinstance(value, tuple) else (value,):
            if item is None:
                continue
            if name in SEEDS and item > LARGEST_SEED:
                raise ValueError(f"{name} must be at most {LARGEST_SEED}, got {item}")
            if not item >= bound:
                raise ValueError(f"{name} must be at least {bound:g}, got {item:g}")
            if item == math.inf:
                raise ValueError(f"{name} must be finite, got inf")


def check_not_empty(settings: Any, *names: str) -> None:
    """Refuse empty lists.

    Raises:
        ValueError: A list is empty; the message names the field.
    """
    for name in names:
        if not getattr(settings, name):
            raise ValueError(f"{name} must not be empty")


def check_equally_many(settings: Any, *names: str) -> None:
    """Refuse lists of different lengths.

    Raises:
        ValueError: Two lengths differ; the message names all fields.
    """
    counts = [len(getattr(settings, name)) for name in names]
    if len(set(counts)) > 1:
        raise ValueError(f"{', '.join(names)} must be equally many, got {counts}")


def _as_lists(value: Any) -> Any:
    """Return plain data with lists for tuples and mappings for dataclasses."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        value = dataclasses.asdict(value)
    if isinstance(value, Mapping):
        return {name: _as_lists(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_as_lists(each) for each in value]
    return value
