"""The trainings of one model on one kind of data: each learning rate with each seed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import product
from typing import Any

from benchmarks.training_options import Job


def jobs(
    settings: Any,
    learner: str,
    model: Mapping[str, Any],
    data: Mapping[str, Any],
    keep_best: bool = False,
) -> Iterator[Job]:
    """Yield a training for each rate and seed.

    Args:
        settings: Settings with ``lrs``, ``seeds``, ``batch_size``, ``steps``, ``val_steps`` and
            ``training``.
        learner: What learns, a key of :data:`benchmarks.learners.LEARNERS`.
        model: Its arguments.
        data: Those of its data, but for the batch and the seed of its order.
        keep_best: Keep the weights of the best validation.
    """
    changes = settings.training.changes()
    for lr, seed in product(settings.lrs, settings.seeds):
        job: Job = {
            "learner": learner,
            "model": dict(model),
            "data": {**data, "batch_size": settings.batch_size, "train_seed": seed},
            "seed": seed,
            "lr": lr,
            "steps": settings.steps,
            "val_steps": min(settings.val_steps, settings.steps),
        }
        if keep_best:
            job["keep_best"] = True
        if changes:
            job["training"] = changes
        yield job
