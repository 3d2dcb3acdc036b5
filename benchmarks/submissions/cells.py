"""Cells of submissions: the orbit fits and baselines that stand beside them, and their exams.

The seed of a held-back exam is read from its key, a file: it is part of no argument, so that no
record of a run tells it.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmarks.newton import controls, exam
from benchmarks.newton.controls import Columns, Predictor
from benchmarks.newton.exam_rows import CAUSAL
from benchmarks.submissions import sheet, submission
from benchmarks.submissions.sheet import Exam
from orbits.runs.cell import Outcome
from worldmodel.data.orbits import OrbitData
from worldmodel.data.sequences import joined
from worldmodel.models.predictions import central_columns

ERRORS = "errors.npz"


def ceiling(key: Path, folder: Path) -> list[Outcome]:
    """Fit orbits to the rows that a model sees: the exam's unit, and the row of the fit itself."""
    asked = sheet.read_key(key)
    columns = _columns(controls.causal_ceiling(), asked)
    errors = {
        name: exam.errors(
            x["sequence_id"].numpy(),
            x["force_predicted"].double().numpy(),
            x["force"].double().numpy(),
            asked.n_test,
        )
        for name, x in columns.items()
    }
    exam.save(folder / ERRORS, errors, {})
    own = exam.measure(columns, errors, _subjects(asked))
    return [
        Outcome(exam.ceiling_metrics(errors), files={"errors": ERRORS}, variant=CAUSAL),
        Outcome(own),
    ]


def baseline(key: Path, ceiling: Path, name: str, labels: int) -> Outcome:
    """Examine a law-free baseline, fitted to the labels of the public data's seed 0."""
    asked = sheet.read_key(key)
    labelled = {**asked.data(sheet.BOX), "seed": 0, "n_train": labels, "images": True}
    return _examined(_columns(controls.baseline(name, labelled), asked), asked, ceiling)


def submitted(
    key: Path, ceiling: Path, folder_of_answers: Path, signature: str, about: Mapping[str, Any]
) -> Outcome:
    """Examine the answers of a submission, after every check once more."""
    asked = sheet.read_key(key)
    found = submission.read(folder_of_answers, asked)
    submission.check_signature(found, asked, asked.signature)
    if asked.signature != signature:
        raise ValueError("the exam is no longer that of this run; run it again")
    answers = submission.read_answers(found, asked)
    columns = {
        part: _answered(OrbitData(**asked.data(part)), answers[part], asked.steps)
        for part in asked.parts
    }
    outcome = _examined(columns, asked, ceiling)
    counted = {"answers": int(sum(x.size for x in answers.values())), "parts": len(answers)}
    return Outcome(outcome.metrics, details={"card": dict(about), "checked": counted})


def _examined(columns: Mapping[str, Columns], asked: Exam, ceiling: Path) -> Outcome:
    return Outcome(exam.measure(columns, exam.load(ceiling / ERRORS), _subjects(asked)))


def _columns(predict: Predictor, asked: Exam) -> dict[str, Columns]:
    return {part: predict(OrbitData(**asked.data(part))) for part in asked.parts}


def _answered(data: OrbitData, answers: np.ndarray, steps: list[int]) -> Columns:
    """Return answers [n_test, steps] as the columns of a prediction file, beside the truth."""
    given = torch.from_numpy(answers)
    parts = []
    for batch in data.test_dataloader():
        magnitude = torch.full(batch["tokens"].shape[:2], torch.nan, dtype=torch.float64)
        magnitude[:, [1 + 2 * step for step in steps]] = given[batch["sequence_id"]]
        parts.append(central_columns(batch, magnitude))
    return joined(parts)


def _subjects(asked: Exam) -> dict[str, str | None]:
    moved = {name: part.shift for name, part in asked.parts.items()}
    return {name: shift.exponent if shift else None for name, shift in moved.items()}
