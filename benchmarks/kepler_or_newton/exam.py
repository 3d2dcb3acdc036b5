"""Force heads on the world models, and the flagship's exam of them outside the training box."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.kepler_or_newton.points import ALL, Point
from benchmarks.newton import exam_report, newton
from benchmarks.newton.exam_rows import Exam
from benchmarks.newton.recipe import as_flagship
from benchmarks.training_options import Job
from orbits.runs.cell import Cell
from orbits.runs.page import Section
from orbits.runs.result import Result
from symreg.leaderboard.row import EXAM

if TYPE_CHECKING:  # it imports torch, and a report needs the section alone
    from benchmarks.newton.grid import Grid

NOTE = (
    "Heads are fine-tuned by the flagship's recipe, on labelled sequences without noise. Where a "
    "model reads exact places it sees more than the orbit fit, which is given bins."
)


def cells(study: str, trained: Mapping[tuple[Point, int], Cell], grid: Grid) -> Iterator[Cell]:
    """Yield a head on each world model and budget of labels, their exams, and those of controls."""
    like = {
        (cell.case.variant, cell.case.seed, cell.case.get("labels")): cell
        for cell in grid.models()
        if cell.case.arm == "pretrained"
    }
    controls = [x for x in grid.controls() if x.case.variant in grid.settings.baselines]
    heads: list[tuple[Point, Cell]] = []
    for (point, seed), own in trained.items():
        for labels in grid.settings.labels:
            head = like[point.attention, seed, labels]
            heads.append((point, _head(head, point, own)))
    ceiling, *examined = grid.exams([*controls, *(cell for _, cell in heads)])
    yield from (cell for _, cell in heads)
    yield as_flagship(ceiling)
    yield from map(as_flagship, examined[: len(controls)])
    for (point, head), cell in zip(heads, examined[len(controls) :], strict=True):
        case = dataclasses.replace(
            cell.case, study=study, setting={**cell.case.setting, **point.setting}
        )
        yield dataclasses.replace(
            cell, case=case, needs={"ceiling": as_flagship(ceiling), "head": head}
        )


def section(results: Sequence[Result], figures: Path) -> list[Section]:
    """Return the exam's section of models by their points; nothing without an exam."""
    exam = Exam.of(map(_named, (x for x in results if x.case.kind == EXAM)))
    made = exam_report.section(exam, figures)
    found = [*exam_report.sentences(exam), NOTE]
    return [dataclasses.replace(x, sentences=[*found, *x.sentences]) for x in made]


def _head(head: Cell, point: Point, own: Cell) -> Cell:
    """Return a head of the flagship on the world model of a point."""
    job: Job = head.arguments["job"]
    model = {**job["model"], "input": point.input}
    if point.window != ALL:
        model["window"] = point.window
    changed: Job = {**job, "model": model}
    return dataclasses.replace(
        head,
        version=newton.STUDY.version,
        arguments={**head.arguments, "job": changed},
        needs={"pretrained": own},
    )


def _named(result: Result) -> Result:
    """Return the result of a head, or of a control, by the name of its point."""
    if result.case.get("predicts") is None:
        return result
    named = dataclasses.replace(result.case, variant=Point.of(result.case).name)
    return dataclasses.replace(result, case=named)
