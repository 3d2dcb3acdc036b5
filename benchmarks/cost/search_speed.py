"""Time of symbolic searches, and their scaling over processes.

The same searches, of Newton's law with 5% noise, run as cells with each number of processes, one
after the other in empty folders. The time on the wall includes starting the workers, as a user's
does.
"""

from __future__ import annotations

import dataclasses
import os
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from benchmarks.search import law_rates
from orbits.runs import schedule
from orbits.runs.cell import Cell, Outcome
from orbits.runs.executors import Execution
from orbits.runs.result import Case, Quantity, Result
from orbits.runs.settings import check_at_least, check_not_empty
from orbits.runs.study import Study
from orbits.runs.table import Column, Table, Value, number
from symreg import engines

LAW, NOISE = "newton", 0.05


@dataclass(frozen=True)
class SearchSettings:
    """Settings of the timed searches.

    Attributes:
        engine: Engines.
        processes: Numbers of processes; the first is what the others are compared with.
        searches: Searches with each number of processes.
    """

    engine: tuple[str, ...] = ("operon",)
    processes: tuple[int, ...] = (1, 2)
    searches: int = 12

    def __post_init__(self) -> None:
        check_not_empty(self, "engine", "processes")
        check_at_least(self, {"processes": 1, "searches": 1})


class SearchSpeed(Study):
    """Speed of searches."""

    name = "search_speed"
    about = "How long does a symbolic search take, and how do searches scale over processes?"
    Settings = SearchSettings
    metrics: ClassVar = {
        "wall_s": Quantity("lower", "s", "all searches, on the wall, starting workers included"),
        "wall_s_per_search": Quantity("lower", "s", "likewise, by their number"),
        "cpu_s_per_search": Quantity("lower", "s", "CPU time of a search and its scoring"),
        "speed_up": Quantity("higher", "×", "time on the wall of the first number by this one's"),
    }
    execution = Execution("here", workers=1)
    timed = True

    def resolve(self, settings: SearchSettings) -> SearchSettings:
        """Return settings with the engine that ``auto`` stands for."""
        names = (engines.resolve(name)[0].name for name in settings.engine)
        return dataclasses.replace(settings, engine=tuple(dict.fromkeys(names)))

    def cells(self, settings: SearchSettings) -> Iterator[Cell]:
        """Yield a cell per engine, which measures all numbers of processes."""
        for name in settings.engine:
            arguments = {"searches": settings.searches, "processes": list(settings.processes)}
            case = Case(self.name, "timing", name, law=LAW, setting={"searches": settings.searches})
            yield Cell(measure, case, {"engine": name, **arguments})

    def tables(self, results: Sequence[Result]) -> Sequence[Table]:
        """Return times, speed-ups and parallel efficiencies."""
        measured = [result for result in results if result.ok]
        rows, first = [], {x.case.variant: x.case.setting["processes"] for x in measured[::-1]}
        for result in measured:
            name, processes = result.case.variant, result.case.setting["processes"]
            speed_up = result.metrics["speed_up"].value
            rows.append(
                [
                    Value(name, kind="name"),
                    number(processes, "g"),
                    number(result.case.setting["searches"], "g"),
                    number(result.value("cpu_s_per_search"), ".1f"),
                    number(result.value("wall_s_per_search"), ".1f"),
                    number(speed_up, ".2f"),
                    number(speed_up * first[name] / processes, ".0%"),
                    number(result.details["load"], ".1f"),
                ]
            )
        columns = [
            *map(Column, ("engine", "processes", "searches")),
            Column("CPU s", "CPU seconds of a search and its scoring"),
            Column("wall s", "seconds on the wall by the number of searches"),
            Column("speed-up", "time on the wall of the first row by this one's"),
            Column("efficiency", "speed-up by the number of processes, of the first row's"),
            Column("load", "load average of the machine at the end"),
        ]
        return [Table("Searches", columns, rows)]

    def sentences(self, results: Sequence[Result]) -> Sequence[str]:
        """Say how long a search takes and how much faster more processes are."""
        said = []
        for name in dict.fromkeys(x.case.variant for x in results if x.ok):
            mine = [x for x in results if x.ok and x.case.variant == name]
            most = max(mine, key=lambda x: x.case.setting["processes"])
            said.append(
                f"A search by {name} takes {mine[0].value('cpu_s_per_search'):.1f} CPU seconds; "
                f"{most.case.setting['processes']} processes are "
                f"{most.metrics['speed_up'].value:.2f} times as fast as "
                f"{mine[0].case.setting['processes']}, measured once on one machine."
            )
        return said


def measure(engine: str, searches: int, processes: Sequence[int]) -> list[Outcome]:
    """Run the same searches with each number of processes."""
    times: list[tuple[float, float]] = [_run(engine, searches, count) for count in processes]
    load = os.getloadavg()[0]
    return [
        Outcome(
            metrics={
                "wall_s": wall,
                "wall_s_per_search": wall / searches,
                "cpu_s_per_search": cpu / searches,
                "speed_up": times[0][0] / wall,
            },
            details={"load": load},
            setting={"processes": count},
        )
        for count, (wall, cpu) in zip(processes, times, strict=True)
    ]


def _run(engine: str, searches: int, processes: int) -> tuple[float, float]:
    """Return wall time and CPU time of searches in parallel processes, seconds."""
    settings = law_rates.STUDY.settings(
        law=[LAW], noise=[NOISE], engine=[engine], first_seed=0, seeds=searches, wrong_seeds=0
    )
    cells = list(law_rates.STUDY.cells(settings))
    with tempfile.TemporaryDirectory() as folder:
        start = time.perf_counter()
        execution = Execution("processes", processes)
        results = schedule.run(cells, Path(folder), execution, law_rates.STUDY.prepare)
        wall = time.perf_counter() - start
    failed = [result.error for result in results if not result.ok]
    if failed:
        raise RuntimeError(f"{len(failed)} of {searches} searches failed: {failed[0]}")
    return wall, sum(result.cpu_s for result in results)


STUDY = SearchSpeed()
