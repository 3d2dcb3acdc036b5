"""The family F = k (m1 m2)^a / r^n: a law for every a and n, such as ``power_a0.5_n2``.

Other dependences on the masses and other powers of the distance so need no file. At a = 0.5 paths
show m1 / m2 and neither mass. ``power_a1_n2`` is Newton's law, moved as any other law is and not by
Kepler's equation, so that its numbers are Newton's up to rounding.
"""

from __future__ import annotations

import functools
import re
from decimal import Decimal
from fractions import Fraction

from orbits.laws import Family, Law
from orbits.laws.newton import GRAVITATIONAL_CONSTANT

PATTERN = "power_aA_nN"
MOST_DECIMALS = 6
LARGEST = 4
"""Largest a, and largest -n."""
UNBOUND = 3
"""Least n at which no circular orbit is stable."""

_NAME = re.compile(r"power_a(-?\d+(?:\.\d+)?)_n(-?\d+(?:\.\d+)?)", re.ASCII)


@functools.lru_cache(maxsize=1024)
def family(name: str) -> Law | None:
    """Return the member called ``name``, or None if that is no name of a member.

    A law has one name: numbers are plain decimals without zeros that say nothing.

    Raises:
        ValueError: It begins as one and is none; the message says why, or how it is written.
    """
    if not name.startswith("power_a"):
        return None
    match = _NAME.fullmatch(name)
    if match is None:
        raise ValueError(
            f"law {name!r}: a member of the family is written {PATTERN}, with decimal numbers A "
            "and N, as in power_a0.5_n2"
        )
    texts = [plain(text) for text in match.groups()]
    written = "power_a{}_n{}".format(*texts)
    if written != name:
        raise ValueError(f"law {name!r} is written {written}")
    if any(len(text.partition(".")[2]) > MOST_DECIMALS for text in texts):
        raise ValueError(f"law {name!r}: at most {MOST_DECIMALS} decimals tell two laws apart")
    a, n = map(Fraction, texts)
    if not 0 <= a <= LARGEST:
        raise ValueError(f"law {name!r}: a must be between 0 and {LARGEST}")
    if not -LARGEST <= n < UNBOUND:
        raise ValueError(
            f"law {name!r}: n must be between {-LARGEST} and {UNBOUND}, without {UNBOUND}, from "
            "which on nothing is bound"
        )
    masses = f"k*(m1*m2)**({a})"
    energy = "log(r)" if n == 1 else f"r**({1 - n})/({1 - n})"
    return Law(
        name=name,
        expression=f"{masses}/r**({n})",
        potential=f"{masses}*{energy}",
        # The numerical value of G, so that the force is Newton's between solar masses at 1 AU.
        parameters={"k": GRAVITATIONAL_CONSTANT},
        units={"k": f"AU^({1 + n}) (solar mass)^({1 - 2 * a}) / year^2"},
        exponents={"r": float(-n), "m1": float(a), "m2": float(a)},
        reference=FAMILY.reference,
    )


def power_name(n: float) -> str:
    """Return the name of the law k m1 m2 / r^n, to four decimals: ``power_a1_n1.25``."""
    return f"power_a1_n{plain(format(n, '.4f'))}"


def plain(number: str) -> str:
    """Return a decimal number as it is written without zeros that say nothing."""
    plain = format(Decimal(number).normalize(), "f")
    return "0" if plain == "-0" else plain


FAMILY = Family(
    name=PATTERN,
    expression="k*(m1*m2)**A/r**N",
    reference="Newton (1687), Principia, Book I, Proposition XLV, for the powers of r",
    member=family,
)
