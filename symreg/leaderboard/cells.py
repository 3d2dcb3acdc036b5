"""The cells of a leaderboard, computed in worker processes."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from orbits.runs.cell import Outcome
from orbits.runs.digests import file_digest
from symreg import controls, measure
from symreg import predictions as prediction_files
from symreg.predictions import Predictions


def forces(
    predictions: Path, law: str, control: str | None, definition: Mapping[str, Any]
) -> Outcome:
    """Measure the predictions of a file, or a control's answers on its points.

    ``definition`` tells what the names stand for, for the cell's address alone.
    """
    return measure.forces(_answers(predictions, file_digest(predictions), law, control), law)


def search(
    predictions: Path,
    law: str,
    control: str | None,
    engine: str,
    engine_args: Mapping[str, Any],
    seed: int,
    points: int,
    rule: str,
    definition: Mapping[str, Any],
) -> Outcome:
    """Search the predictions of a file, or a control's answers on its points, for a formula.

    ``definition`` tells what the names stand for, for the cell's address alone.
    """
    return measure.search(
        _answers(predictions, file_digest(predictions), law, control),
        law=law,
        engine=engine,
        seed=seed,
        arguments=engine_args,
        n=points,
        rule=rule,
    )


@functools.lru_cache(maxsize=4)  # a worker's next cell is mostly of the same row
def _answers(path: Path, sha256: str, law: str, control: str | None) -> Predictions:
    data = prediction_files.read(path, law)
    return data if control is None else controls.answer(control, data)
