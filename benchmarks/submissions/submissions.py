"""Submissions: predictions of models from outside, checked, and examined here.

Of a submission nothing is believed but its predictions: the score is computed from them and from
the truth, which the exam's sheet does not have. What the card says is shown as the submitter's
word, and what no file can show is said on the page.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any, ClassVar

from benchmarks.newton.quantities import QUANTITIES
from benchmarks.study import TrainingStudy
from benchmarks.submissions import submission
from benchmarks.submissions.settings import SubmissionSettings
from benchmarks.submissions.submission import Submission
from orbits.runs.deferred import deferred


def checked(settings: SubmissionSettings) -> tuple[list[Submission], str]:
    """Return the submissions, every answer of which was read, and the signature of the exam."""
    asked = settings.exam
    found = [submission.read(Path(folder), asked) for folder in settings.submissions]
    names: dict[str, Path] = {}
    for each in found:
        if (other := names.setdefault(each.card.name.casefold(), each.folder)) != each.folder:
            raise ValueError(f"{other} and {each.folder} are both called {each.card.name!r}")
    signature = asked.signature
    for each in found:
        submission.check_signature(each, asked, signature)
        submission.read_answers(each, asked)
    return found, signature


class Submissions(TrainingStudy):
    """The exam of models from outside."""

    name = "submissions"
    about = "How well do models from outside know the force outside the training box?"
    Settings = SubmissionSettings
    metrics = QUANTITIES
    words = "submissions"

    cells = deferred("benchmarks.submissions.grid:cells")
    report = deferred("benchmarks.submissions.report:report")
    undeciding: ClassVar = ("key", "submissions")

    def resolve(self, settings: SubmissionSettings) -> SubmissionSettings:
        """Return settings with every submission once, all of them checked before torch is there."""
        once = tuple(dict.fromkeys(settings.submissions))
        settings = dataclasses.replace(settings, submissions=once)
        checked(settings)
        return settings

    def check(self, settings: SubmissionSettings) -> None:
        """Refuse a run without a submission."""
        if not settings.submissions:
            raise ValueError("no submission is given; name folders with a card and answers")

    def config(self, settings: SubmissionSettings, preset: str) -> dict[str, Any]:
        """Return the data that determine the results; of the exam, its public settings."""
        config = super().config(settings, preset)
        if not settings.submissions:  # a preset's own settings, which another run's differ from
            return config
        asked = settings.exam
        exam = {**asked.definition, "held_back": asked.held_back, "signature": asked.signature}
        names = [submission.read_card(Path(each)).name for each in settings.submissions]
        return {**config, "exam": exam, "names": names}

    def out(self, settings: SubmissionSettings, preset: str) -> Path:
        """Return ``runs/submissions``."""
        return Path("runs") / self.name


STUDY = Submissions()
