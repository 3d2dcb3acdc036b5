"""Settings of a run of submissions, which are its flags; imports nothing heavy."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from benchmarks.submissions.sheet import PUBLIC, Exam, read_key
from orbits.runs.choices import check_choice
from orbits.runs.settings import check_at_least
from worldmodel.controls.baselines import BASELINES


@dataclass(frozen=True)
class SubmissionSettings:
    """Submissions and the rows beside them.

    Attributes:
        submissions: Folders of submissions: a card and an answer file for each part of the exam.
        key: The exam that they answer: ``public``, or the key of a held-back one, a file.
        baselines: Law-free baselines beside them.
        labels: Labelled sequences that baselines are fitted to.
    """

    submissions: tuple[str, ...] = ()
    key: str = "public"
    baselines: tuple[str, ...] = (
        "log-linear filter",
        "2-NN on the true state",
        "spline on the true state",
    )
    labels: int = 1000

    def __post_init__(self) -> None:
        check_at_least(self, {"labels": 1})
        for name in self.baselines:
            check_choice("baseline", name, BASELINES)

    @property
    def key_file(self) -> Path:
        """The file of the key."""
        return PUBLIC if self.key == "public" else Path(self.key)

    @property
    def exam(self) -> Exam:
        """The exam of the key."""
        return read_key(self.key_file)
