"""Families of laws that are no powers of the distance, by one parameter each; nothing heavy."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from orbits.laws.changed import changed_name
from orbits.mixture import is_held_out, spread


@dataclass(frozen=True)
class OneParameter:
    """Laws that differ in one parameter, of which equal ratios count as equal steps.

    Attributes:
        law: The law of the registry.
        parameter: Its parameter that is changed.
        tested: Values in test worlds, ascending; training lies between the first and the last.
        held_out: Ends of the interval in which no law of the training lies.
    """

    law: str
    parameter: str
    tested: tuple[float, ...]
    held_out: tuple[float, float]

    def name(self, power: float) -> str:
        """Return the name of the law at ten to a power."""
        return changed_name(self.law, self.parameter, 10**power)

    def trained(self, n: int) -> tuple[str, ...]:
        """Return the names of n laws of the training."""
        low, high, *held_out = map(math.log10, (self.tested[0], self.tested[-1], *self.held_out))
        return tuple(map(self.name, spread(low, high, held_out, n)))

    def worlds(self) -> Iterator[dict[str, object]]:
        """Yield the test worlds as plain data."""
        for value in self.tested:
            yield {
                "law": changed_name(self.law, self.parameter, value),
                "parameter": value,
                "held_out": is_held_out(value, self.held_out),
            }


FAMILIES = {
    "softened": OneParameter("softened", "length", (0.1, 0.4, 0.7, 1.1, 1.6), (0.55, 0.9)),
    "yukawa": OneParameter("yukawa", "length", (1.5, 2.0, 3.0, 5.0, 20.0), (2.5, 4.0)),
    "mond": OneParameter("mond", "a0", (1.0, 10.0, 40.0, 150.0, 400.0), (20.0, 80.0)),
}
"""Beyond what binds the orbits of ``identifiable``, or changes a law's slope there, is nothing."""
