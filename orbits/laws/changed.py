"""A law of a file at another value of one parameter: ``softened_length_0.3``, ``mond_a0_40``."""

from __future__ import annotations

import dataclasses
import functools
import re

from orbits import laws
from orbits.laws import Family, Law
from orbits.laws.family import plain

_NAME = re.compile(r"(.+)_([A-Za-z]\w*)_(\d+(?:\.\d+)?)", re.ASCII)


@functools.lru_cache(maxsize=1024)
def changed(name: str) -> Law | None:
    """Return the member called ``name``, or None if that is no name of a member.

    Raises:
        ValueError: The law has no such parameter, or the number is 0 or written otherwise.
    """
    match = _NAME.fullmatch(name)
    if match is None or match[1] not in laws.names():
        return None
    law, parameter, number = laws.get(match[1]), match[2], match[3]
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
    return dataclasses.replace(law, name=name, parameters=parameters)


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
