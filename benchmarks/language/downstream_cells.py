"""The cells of downstream tasks: trainings, and an evaluation per task and model."""

from __future__ import annotations

from pathlib import Path

from benchmarks.language.checkpoints import TextCheckpoint
from benchmarks.language.downstream import Downstream, DownstreamStudy, columns
from benchmarks.language.models import models_of, training_cells
from benchmarks.language.scorer import TextScorer
from benchmarks.language.zero_shot import evaluation
from orbits.runs.cell import Cell, Outcome, Skipped


def cells(study: DownstreamStudy, settings: Downstream) -> list[Cell]:
    """Return trainings, and a cell per task and model."""
    evaluation.check(settings.tasks, settings.include_path, settings.scrolls)
    models = models_of(settings)
    evaluations = [
        model.evaluation(
            study,
            evaluate_task,
            {"task": task},
            {"task": task, "limit": settings.limit},
            settings.inputs(task),
        )
        for model in models
        for task in settings.tasks
    ]
    return [*training_cells(models), *evaluations]


def evaluate_task(
    task: str,
    limit: int | None,
    model: Path,
    include_path: Path | None = None,
    scrolls: Path | None = None,
) -> Outcome:
    """Evaluate a language model on a zero-shot task."""
    checkpoint = TextCheckpoint.read(model)
    scorer = TextScorer(checkpoint.load(), checkpoint.context)
    try:
        scores = evaluation.evaluate(scorer, task, limit, include_path, scrolls)
    except ConnectionError as error:
        raise Skipped(str(error)) from None
    about = {"requests": scores.requests, "truncated": scores.truncated, "version": scores.version}
    return checkpoint.outcome(columns(task, scores.metrics), details={"harness": about})
