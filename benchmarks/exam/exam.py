"""The exam of the flagship for models from outside: forces asked outside the training box.

A model is a class with ``observe`` and ``force`` (:mod:`worldmodel.world_model`). It is asked what
the flagship asks of its own models, on the same sequences, beside the same controls: the causal
ceiling, which is the unit of every error, law-free baselines, and what is told the truth.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from benchmarks.newton.quantities import EXAM
from benchmarks.study import TrainingStudy
from orbits import laws, shifts
from orbits.runs.cell import digest
from orbits.runs.choices import check_choice
from orbits.runs.deferred import deferred
from orbits.runs.page import Report
from orbits.runs.result import Quantity, Result
from worldmodel.controls.baselines import BASELINES
from worldmodel.outside import Source, tried
from worldmodel.probes.probe import Subject, subject
from worldmodel.world_model import can

EXAMPLE = "worldmodel.examples.flat_model:FlatModel"


@dataclass(frozen=True)
class ExamSettings:
    """Models from outside, and the questions of their exam.

    Attributes:
        model: Models of your own, path/to/file.py:Class or package.module:Class, each after
            LABEL:SEED= for its name in tables. All read sequences of one world.
        law: Force law of the world; none for that of the models.
        labels: Labelled sequences of the baselines.
        baselines: Law-free baselines, names of :data:`worldmodel.controls.baselines.BASELINES`.
        n_test: Held-out test sequences of the box and of each shift.
        shifts: Shifts outside the training box (:mod:`orbits.shifts`): names, or ``all`` that the
            world can make.
        shift_file: A YAML file of further shifts.
    """

    model: tuple[str, ...] = (EXAMPLE,)
    law: str | None = None
    labels: int = 300
    baselines: tuple[str, ...] = ("log-linear filter", "flat MLP", "2-NN on the true state")
    n_test: int = 1000
    shifts: tuple[str, ...] = ("all",)
    shift_file: str | None = None


class ExamStudy(TrainingStudy):
    """The exam of models from outside."""

    name = "exam"
    about = "What does a model of your own know of the force outside its training box?"
    Settings = ExamSettings
    metrics: ClassVar[Mapping[str, Quantity]] = {
        **EXAM,
        "rms_log_error": Quantity("lower", "", "root mean square error of ln F"),
        "r2_log": Quantity("higher", "", "R2 of ln F"),
        "dropped": Quantity("lower", "share", "predictions that are not positive: no logarithm"),
    }
    cells = deferred("benchmarks.exam.cells:cells")

    def check(self, settings: ExamSettings) -> None:
        """Refuse names that cannot be, and then models, before any work.

        Who names no model is told that an example is examined.
        """
        if settings.law is not None:
            laws.get(settings.law)
        for name in settings.baselines:
            check_choice("baseline", name, BASELINES)
        for name in settings.shifts:
            if name != "all":
                shifts.get(name, settings.shift_file)
        if settings.model == (EXAMPLE,):
            print(f"examined   {EXAMPLE}, an example; --model path/to/file.py:Class takes yours")
        for each in subjects(settings):
            model = tried(Source(each.path, each.model or ""))
            if not can(model, "force"):
                raise ValueError(f"{each.path}: {model.own_name} has no force; add the method")

    def config(self, settings: ExamSettings, preset: str) -> dict[str, Any]:
        """Return the data that determine the results; models count by bytes, not paths."""
        known = [(x.named, digest(x.path), str(x.model).partition(":")[2] or x.model)
                 for x in subjects(settings)]  # fmt: skip
        return {**super().config(settings, preset), "model": known}

    def changes(self, config: Mapping[str, Any]) -> dict[str, Any]:
        """Return the settings of a run that differ from those of its preset."""
        return {k: v for k, v in super().changes(config).items() if k != "model"}

    def report(self, results: Sequence[Result], config: Mapping[str, Any], out: Path) -> Report:
        """Return the exam's sentences and its section."""
        from benchmarks.newton import exam_report
        from benchmarks.newton.exam_rows import Exam

        report = super().report(results, config, out)
        exam = Exam.of(results)
        return dataclasses.replace(
            report,
            sentences=exam_report.sentences(exam),
            sections=exam_report.section(exam, out / "figures"),
        )


def subjects(settings: ExamSettings) -> list[Subject]:
    """Return the files and classes of the models."""
    if not settings.model:
        raise ValueError("no model is given; name one with --model path/to/file.py:Class")
    found = [subject(text) for text in settings.model]
    for text, each in zip(settings.model, found, strict=True):
        if each.model is None:
            raise ValueError(
                f"{text}: no model from outside; name a class, path/to/file.py:Class. The exam of "
                "this package's own models is part of the study newton"
            )
    return found


STUDY = ExamStudy()
