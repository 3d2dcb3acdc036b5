"""The cells of a run of submissions: the orbit fit, the baselines, and every submission."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from benchmarks.newton.control_names import CAUSAL_CEILING
from benchmarks.newton.exam_rows import SUBMITTED
from benchmarks.submissions import cells as compute
from benchmarks.submissions.settings import SubmissionSettings
from benchmarks.submissions.submissions import checked
from orbits.runs.cell import Cell
from orbits.runs.result import Case
from orbits.runs.study import Study
from symreg.leaderboard.row import EXAM


def cells(study: Study, settings: SubmissionSettings) -> list[Cell]:
    """Return every cell of a run, after every submission was checked."""
    found, signature = checked(settings)
    asked = settings.exam

    def case(variant: str, arm: str, labels: int | None) -> Case:
        setting: dict[str, Any] = {"labels": labels}
        return Case(
            study.name, EXAM, variant, arm, None, asked.law, asked.protocol, setting=setting
        )

    inputs = {"key": settings.key_file}
    ceiling = Cell(compute.ceiling, case(CAUSAL_CEILING, "control", None), inputs=inputs)
    needs = {"ceiling": ceiling}
    return [
        ceiling,
        *(
            Cell(
                compute.baseline,
                case(name, "control", settings.labels),
                {"name": name, "labels": settings.labels},
                needs,
                inputs,
            )
            for name in settings.baselines
        ),
        *(
            Cell(
                compute.submitted,
                case(each.card.name, SUBMITTED, each.card.labels),
                {
                    "signature": signature,
                    "about": {**asdict(each.card), "authors": list(each.card.authors)},
                },
                needs,
                {**inputs, "folder_of_answers": each.folder},
            )
            for each in found
        ),
    ]
