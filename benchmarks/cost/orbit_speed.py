"""Trajectories per core-second of the orbit generator and of its peers, end to end.

Each generator first shows how many of its tokens differ from the compiled one's, and is then timed
in turns with it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from orbits.runs.deferred import deferred
from orbits.runs.executors import Execution
from orbits.runs.result import Quantity, Result
from orbits.runs.settings import check_at_least, check_not_empty
from orbits.runs.study import Study
from orbits.runs.table import Column, Table, Value, number

MEMORY = "memset"
"""The variant whose result is the speed of memory."""
ROWS = 1000
"""Rows of a sequence of the protocol, two tokens of two bytes each."""


@dataclass(frozen=True)
class GeneratorSettings:
    """Settings of the timed generators.

    Attributes:
        generators: Names of generators, ours and peers'.
        seconds: CPU seconds per generator.
    """

    generators: tuple[str, ...] = ("compiled", "numpy", "gpu", "kepler.py", "rebound", "scipy")
    seconds: float = 8.0

    def __post_init__(self) -> None:
        check_not_empty(self, "generators")
        check_at_least(self, {"seconds": 1e-3})


class OrbitSpeed(Study):
    """Speed of orbit generators."""

    name = "orbit_speed"
    about = "How fast are orbit sequences generated, beside other solvers of orbits?"
    Settings = GeneratorSettings
    metrics: ClassVar = {
        "trajectories_per_s": Quantity("higher", "trajectories per core-second", "sequences made"),
        "points_per_s": Quantity("higher", "points per core-second", "observed points made"),
        "compiled_is": Quantity("lower", "×", "compiled one's rate in the same run by this one's"),
        "differing_tokens": Quantity("lower", "tokens", "those unlike the compiled generator's"),
        "bytes_per_s": Quantity("none", "bytes per core-second", "memory overwritten"),
    }
    execution = Execution("here", workers=1)
    timed = True
    cells = deferred("benchmarks.cost.generators:cells")

    def tables(self, results: Sequence[Result]) -> Sequence[Table]:
        """Return rates and their ratios, and a table that describes the generators."""
        timings = [x for x in results if x.ok and x.case.variant != MEMORY]
        behind = {x.case.variant: x.metrics["compiled_is"].value for x in timings}
        rows = []
        for result in timings:
            name, low_and_high = result.case.variant, result.details["batch_rates"][::2]
            rate = result.metrics["trajectories_per_s"].value
            detail = "[{:.1f}, {:.1f}]".format(*low_and_high)
            over = behind["numpy"] / behind[name] if "numpy" in behind else None
            differing = result.metrics["differing_tokens"].value
            rows.append(
                [
                    Value(name, kind="name"),
                    Value(f"{rate:.1f}", detail, order=rate),
                    number(result.metrics["points_per_s"].value / 1e6, ".4f"),
                    number(over),
                    number(behind[name], ".1f"),
                    Value(f"{differing:.0f}/{result.details['compared_tokens']}", order=differing),
                ]
            )
        columns = [
            Column("generator"),
            Column("trajectories", "per core-second, with the slowest and the fastest batch"),
            Column("10^6 points", "per core-second"),
            Column("x numpy", "rate by that of the numpy path"),
            Column("compiled is, times", "rate of the compiled one in the same run by this one's"),
            Column("other tokens", "tokens unlike the compiled generator's, of those compared"),
        ]
        about = [(x.case.variant, x.details["what"], x.details["package"]) for x in timings]
        return [
            Table("Rates", columns, rows),
            Table.of_text("Generators", ("generator", "what", "package"), about),
        ]

    def sentences(self, results: Sequence[Result]) -> Sequence[str]:
        """Return ratios of the compiled generator's speed to others', and to the memory's."""
        by_variant = {result.case.variant: result for result in results if result.ok}
        return [*_verdict(by_variant), *self._bandwidth(by_variant)]

    def _bandwidth(self, by_variant: Mapping[str, Result]) -> Sequence[str]:
        if not {"compiled", MEMORY} <= by_variant.keys():
            return ()
        memory = by_variant[MEMORY].metrics["bytes_per_s"].value
        tokens = by_variant["compiled"].metrics["trajectories_per_s"].value * 4 * ROWS
        return [
            f"Memory: {memory / 1e9:.1f} GB/s are written by memset; the compiled generator writes "
            f"{tokens / 1e9:.2f} GB/s, {memory / tokens:.0f} times less: it is bound by arithmetic."
        ]


def _verdict(by_variant: Mapping[str, Result]) -> list[str]:
    """Say by which factor the compiled generator is faster than each other one."""
    if (own := by_variant.get("compiled")) is None:
        return []
    rate = own.metrics["trajectories_per_s"].value
    times = {
        name: result.metrics["compiled_is"].value
        for name, result in by_variant.items()
        if name not in ("compiled", MEMORY) and "compiled_is" in result.metrics
    }
    said = f"The compiled generator makes {rate:,.0f} sequences a core-second on one machine"
    others = ", ".join(f"{_times(value)} as many as {name}" for name, value in times.items())
    return [f"{said}{f': {others}' if others else ''}."]


def _times(value: float) -> str:
    return f"{value:,.0f} times" if value >= 100 else f"{value:.1f} times"


STUDY = OrbitSpeed()
