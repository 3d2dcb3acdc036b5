"""The exam of the flagship for any model that is there: forces asked outside the training box.

A model is a class with ``observe`` and ``force`` (:mod:`worldmodel.world_model`), an exported force
model or the checkpoint of one. It is asked what the flagship asks of the models that it trains, on
the same sequences, beside the same controls: the causal ceiling, which is the unit of every error,
law-free baselines, and what is told the truth.
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
from orbits.runs.choices import check_choice
from orbits.runs.deferred import deferred
from orbits.runs.digests import digest
from orbits.runs.page import Report
from orbits.runs.result import Quantity, Result
from worldmodel.controls.baselines import BASELINES
from worldmodel.models.checkpoint import check_file
from worldmodel.outside import Source, tried
from worldmodel.probes import early
from worldmodel.probes.probe import Subject, subject
from worldmodel.probes.takes import Takes
from worldmodel.world_model import can

FORCES = Takes(asks=("force",), of=("ForceModel",))
EXAMPLE = "worldmodel.examples.flat_model:FlatModel"


@dataclass(frozen=True)
class ExamSettings:
    """Models, and the questions of their exam.

    Attributes:
        model: Models: path/to/file.py:Class or package.module:Class of your own, folders of
            exported force models or checkpoints of some, each after LABEL:SEED= for its name in
            tables. All read sequences of one world.
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
    """The exam of models that are there."""

    name = "exam"
    about = "What does a model of your own know of the force outside its training box?"
    Settings = ExamSettings
    files: ClassVar = ("shift_file",)
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
            if each.model is not None:
                model = tried(Source(each.path, each.model))
                if not can(model, "force"):
                    raise ValueError(f"{each.path}: {model.own_name} has no force; add the method")
            elif each.path.is_dir():
                early.check_exported(each.path, {"exam": FORCES}, settings.law)
            else:
                check_file(each.path)

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
        raise ValueError(
            "no model is given; name one with --model path/to/file.py:Class, or the folder of an "
            "exported force model"
        )
    return [subject(text) for text in settings.model]


STUDY = ExamStudy()
