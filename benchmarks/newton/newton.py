"""The flagship: orbits -> world model -> force head -> law -> leaderboard.

The law is Newton's unless another one is asked for; a result's case names it, so that rows of two
worlds never share a table. With ``elsewhere``, models trained in worlds of other laws stand in the
table too: a model that knows Newton's law must not find it where it does not rule.

Every attention variant is pre-trained on orbits, then fine-tuned on a budget of labelled
sequences; a compute-matched model of the same variant learns the forces from scratch; controls
stand beside them. The held-out force predictions of each go through symbolic regression.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from benchmarks.newton.quantities import QUANTITIES
from benchmarks.newton.settings import NewtonSettings
from benchmarks.study import TrainingStudy
from orbits import laws
from orbits.runs.cell import Cell
from orbits.runs.choices import check_choice
from orbits.runs.deferred import deferred, load

check_settings = deferred("benchmarks.newton.checks:check")


def named_baselines(names: Sequence[str]) -> tuple[str, ...]:
    """Return names of baselines, where ``all`` stands for every one.

    Raises:
        ValueError: A name beside ``all`` is unknown.
    """
    if "all" not in names:  # these are checked where they are needed
        return tuple(names)
    known = tuple(load("worldmodel.controls.baselines:BASELINES"))
    for name in names:
        check_choice("baseline", name, (*known, "all"))
    return known


class NewtonStudy(TrainingStudy):
    """The flagship."""

    name = "newton"
    about = "Do models that predict orbits learn their law?"
    Settings = NewtonSettings
    once = (
        "attention",
        "baseline_seeds",
        "baselines",
        "elsewhere",
        "engine",
        "exponents",
        "labels",
        "seeds",
        "shifts",
    )
    metrics = QUANTITIES
    undeciding: ClassVar = ("tflops",)
    files: ClassVar = ("shift_file",)

    restore = staticmethod(deferred("benchmarks.newton.restore:restore"))
    report = deferred("benchmarks.newton.report:report")

    def resolve(self, settings: NewtonSettings) -> NewtonSettings:
        """Return settings with the engine that ``auto`` stands for and every value once."""
        settings = super().resolve(settings)
        named: dict[str, Any] = {"baselines": named_baselines(settings.baselines)}
        if "auto" in settings.engine:
            from symreg import engines

            engine, reason = engines.resolve("auto")
            print(f"engine: {engine.name} ({reason})")
            names = (engine.name if name == "auto" else name for name in settings.engine)
            named["engine"] = tuple(dict.fromkeys(names))
        return dataclasses.replace(settings, **named)

    def check_changes(self, settings: NewtonSettings, changes: Mapping[str, Any]) -> None:
        """Refuse impossible settings before torch is imported."""
        check_settings(settings)
        super().check_changes(settings, changes)

    def cells(self, settings: NewtonSettings) -> Sequence[Cell]:
        """Return every cell of a run, each after those it needs."""
        from benchmarks.newton.grid import Grid

        return Grid(settings).cells()

    def plan(self, cells: Sequence[Cell], settings: NewtonSettings) -> str:
        """Return the cost of training all cells."""
        from benchmarks.newton.flops import table

        return table(cells, settings.tflops)

    def out(self, settings: NewtonSettings, preset: str) -> Path:
        """Return ``runs/newton-PRESET-WORLD``."""
        world = (
            [settings.protocol]
            if settings.law == "newton"
            else [settings.protocol, laws.file_name(settings.law)]
        )
        leak = [f"leak-{settings.label_leak}"] if settings.label_leak else []
        return Path("runs") / "-".join([self.name, preset, *world, *leak])


STUDY = NewtonStudy()
