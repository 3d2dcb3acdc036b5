"""The index of the site: the exam ranked in one table, then every study with its verdicts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from benchmarks.newton.exam_rows import SUBMITTED, Exam, ExamRow
from benchmarks.newton.headline import headline
from benchmarks.submissions.report import cards, checks, ranked, suspicions
from orbits.motion import NEWTON
from orbits.runs.naming import counted
from orbits.runs.result import Result, grouped
from orbits.runs.study import Study
from orbits.runs.words import Words
from symreg.leaderboard import rows as searched

EXAMINED, SUBMISSIONS = "newton", "submissions"
"""Studies whose results are rows of the exam."""
FIRST = (EXAMINED, SUBMISSIONS, "probe", "implied", "worlds", "kepler_or_newton", "few_labels")
"""Studies in the order of the index; the others follow by name."""
PICTURED = (EXAMINED, "implied")
"""Studies whose first figure the index shows."""
UNSAID = "No verdict in a sentence; the tables are on the page."


@dataclass(frozen=True)
class Run:
    """A results folder and the parts of its report.

    Attributes:
        name: Name on the site.
        page: The file of its page.
        study: Its study.
        config: The settings of the run.
        verdict: The first sentence of its report; empty without one.
        pictures: The first figure of a run of :data:`PICTURED` studies, as data URLs.
        results: All results.
    """

    name: str
    page: str
    study: Study
    config: Mapping[str, Any]
    verdict: str
    pictures: Sequence[str]
    results: Sequence[Result]

    @property
    def failed(self) -> int:
        """Number of results that failed."""
        return sum(result.status == "failed" for result in self.results)

    @property
    def date(self) -> str:
        """Date of its last result."""
        return max((str(x.manifest.get("utc", ""))[:10] for x in self.results), default="")

    @property
    def said(self) -> str:
        """The verdict, or that there is none."""
        return self.verdict or UNSAID


def context(runs: Sequence[Run]) -> dict[str, Any]:
    """Return the data that fill the template of the index."""
    main = _main(runs)
    here = [run for run in runs if main and run is not main and same_exam(run.config, main.config)]
    outside = [x for run in here for x in run.results if x.case.arm == SUBMITTED]
    rows = ranked(Exam.of([*(main.results if main else ()), *outside]).rows)
    law = main.config.get("law", NEWTON) if main else NEWTON
    table = headline(rows, searched(main.results, law)) if main and rows else None
    held = checks([], held_back=False)
    return {
        "main": main,
        "examined": EXAMINED,
        "table": table,
        "words": Words([table] if table else [], {}, ()),
        "warnings": suspicions(rows),
        "studies": _studies(runs),
        "submitted": cards(outside) if outside else None,
        "checks": held.tables[1:],
        "note": held.sentences[0],
        "counts": _counts(runs, rows),
    }


def same_exam(submitted: Mapping[str, Any], run: Mapping[str, Any]) -> bool:
    """Tell whether submissions answered the questions that the rows of a flagship's run did."""
    exam = submitted.get("exam")
    if submitted.get("study") != SUBMISSIONS or not isinstance(exam, Mapping):
        return False
    asked = {key: run.get(key) for key in ("protocol", "law", "n_test")} | {"seed": 0}
    plain = run.get("shifts") == ["all"] and not run.get("shift_file") and not run.get("label_leak")
    own = (run.get("protocol_args") or {}).get(str(run.get("protocol")))
    same = all(exam.get(key) == value for key, value in asked.items())
    return bool(plain and not own and not exam.get("held_back") and same)


def _main(runs: Sequence[Run]) -> Run | None:
    """Return the run of the flagship with most models in the exam; None without an exam."""
    models = {
        run.name: sum(not row.is_control for row in Exam.of(run.results).rows)
        for run in runs
        if run.study.name == EXAMINED
    }
    best = max(models, key=models.__getitem__, default=None)
    return next((run for run in runs if run.name == best and models[run.name]), None)


def _studies(runs: Sequence[Run]) -> list[tuple[Study, list[Run]]]:
    """Return each study with its runs."""
    order = {name: place for place, name in enumerate(FIRST)}
    found = grouped(runs, lambda run: run.study.name)
    names = sorted(found, key=lambda name: (order.get(name, len(order)), name))
    return [(found[name][0].study, found[name]) for name in names]


def _counts(runs: Sequence[Run], rows: Sequence[ExamRow]) -> str:
    """Return the size of the site in words."""
    parts = [
        counted(len(runs), "results folder"),
        f"{sum(len(run.results) for run in runs):,} results",
    ]
    parts += [f"{sum(run.failed for run in runs)} failed"]
    parts += [f"{sum(row.arm == SUBMITTED for row in rows)} submissions in the table"]
    return ", ".join(parts)
