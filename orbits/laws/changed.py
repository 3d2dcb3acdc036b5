"""A law of a file at another value of one parameter: ``softened_length_0.3``, ``mond_a0_40``."""

from __future__ import annotations

import dataclasses
import functools
import re

from orbits import laws
from orbits.laws import Family, Law
from orbits.laws.family import plain
from orbits.laws.formula import exponents_of

_NAME = re.compile(r"(.+)_(\d+(?:\.\d+)?)", re.ASCII)


@functools.lru_cache(maxsize=1024)
def changed(name: str) -> Law | None:
    """Return the member called ``name``, or None if that is no name of a member.

    Raises:
        ValueError: The law has no such parameter, or the number is 0 or written otherwise.
    """
    if (parts := _parts(name)) is None:
        return None
    law, parameter, number = parts
    if parameter not in law.parameters:
        raise ValueError(
            f"law {name!r}: {law.name} has no parameter {parameter!r}; choose from "
            f"{', '.join(law.parameters)}"
        )
    if not float(number) > 0:
        raise ValueError(f"law {name!r}: {parameter} must be positive")
    if name != (written := changed_name(law.name, parameter, number)):
        raise ValueError(f"law {name!r} is written {written}")
    parameters = {**law.parameters, parameter: float(number)}
    exponents = None if law.exponents is None else exponents_of(law.expression, parameters)
    found = dataclasses.replace(
        law, name=name, parameters=parameters, exponents=exponents, base=law.name
    )
    if found.potential is None or found.disagreement is None:
        return found
    return dataclasses.replace(found, potential=None)  # it is of the law as it was


def _parts(name: str) -> tuple[Law, str, str] | None:
    """Return the law, the parameter and the number in a name; both names may have underscores."""
    if (match := _NAME.fullmatch(name)) is None:
        return None
    words = match[1].split("_")
    splits = (("_".join(words[:k]), "_".join(words[k:])) for k in range(len(words) - 1, 0, -1))
    known = set(laws.names())
    found = [
        (laws.get(law), parameter)
        for law, parameter in splits
        if law in known and parameter.isidentifier()
    ]
    if not found:
        return None
    law, parameter = next((x for x in found if x[1] in x[0].parameters), found[0])
    return law, parameter, match[2]


def changed_name(law: str, parameter: str, value: float | str) -> str:
    """Return the name of a law at a value of a parameter, of a number to four decimals."""
    number = value if isinstance(value, str) else format(value, ".4f")
    return f"{law}_{parameter}_{plain(number)}"


FAMILY = Family(
    name="LAW_PARAMETER_NUMBER",
    expression="a law with one parameter changed, such as softened_length_0.3",
    reference="as the law",
    member=changed,
)
