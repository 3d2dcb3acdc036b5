"""Learning rates: the trainings of a model at each, and the results at the best of them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import product
from statistics import fmean
from typing import Any

from benchmarks.training_options import Job
from orbits.runs.result import Result

SWEPT = ("lr", "weight_decay")
"""Parts of a setting that only choose the training, and not the measurement."""
VALIDATED = {"val_accuracy": 1, "val_mse": -1}
"""Metrics by which rates are chosen, with the sign of the better direction."""
Key = tuple[Any, ...]


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
        learner: Learner, a key of :data:`benchmarks.learners.LEARNERS`.
        model: Arguments of the model.
        data: Arguments of the data, but for the batch and the seed of its order.
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


def best(results: Iterable[Result]) -> list[Result]:
    """Return the results of each row at its best rate and decay, references included.

    A row is a variant at one setting. The best have the best mean validation among those with the
    most seeds: a rate at which a seed failed does not win by the seeds that are left.
    """
    rows: dict[Key, dict[Key, list[Result]]] = {}
    for result in results:
        if result.ok:
            case = result.case
            setting = tuple((k, str(v)) for k, v in case.setting.items() if k not in SWEPT)
            trained = case.law, case.protocol, case.variant, *setting
            row = rows.setdefault((case.arm, trained), {})
            row.setdefault(tuple(case.get(name) for name in SWEPT), []).append(result)
    return [result for row in rows for result in rows[row][_best(row, rows)]]


def _best(row: Key, rows: Mapping[Key, Mapping[Key, Sequence[Result]]]) -> Key:
    """Return the rate and decay of a row; of an arm without a validation, those of its training."""
    trials = rows[row]
    if not any(map(_validated, trials.values())):
        for other, theirs in rows.items():
            if other[1] == row[1] and any(map(_validated, theirs.values())):
                best = _best(other, rows)
                return best if best in trials else next(iter(trials))
    return max(trials, key=lambda rate: (len(trials[rate]), fmean(_validated(trials[rate]) or [0])))


def _validated(trials: Sequence[Result]) -> list[float]:
    """Return what trainings of a rate have on validation examples; the worst if it is no number."""
    return [
        sign * value if math.isfinite(value) else -math.inf
        for name, sign in VALIDATED.items()
        for trial in trials
        if (value := trial.value(name)) is not None
    ]
