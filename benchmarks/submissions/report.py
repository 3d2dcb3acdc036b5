"""The report of submissions: their ranks, the checks passed, and limits of any check of files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.newton.control_names import KNOWING, is_observer, is_table
from benchmarks.newton.exam_report import section
from benchmarks.newton.exam_rows import SUBMITTED, Exam, ExamRow
from benchmarks.newton.headline import headline
from orbits.runs.folder import FIGURES
from orbits.runs.page import Report, Section
from orbits.runs.result import Result
from orbits.runs.statistics import Interval
from orbits.runs.study import Study
from orbits.runs.table import Table, interval
from orbits.runs.untrusted import printable

WORDS_OF = "What the submitters say"
CHECKED = (
    ("the questions", "the card's signature is the hash of the sequences, made again here"),
    ("the form", "an answer file for each part, read as plain numbers; nothing in it is run"),
    ("the answers", "one for every force that is asked, none twice, none of another question, all "
     "finite; with one that is not positive there is no score"),
    ("the score", "computed here, from the answers and the true forces; no number of the "
     "submitter's is used"),
)  # fmt: skip
UNCHECKED = (
    ("its training", "whether it has seen these systems or their forces: a table of the answers "
     "passes every check"),
    ("its past", "whether a force was predicted from the rows up to its own; whoever looks at the "
     "whole sequence, or at the same system in another part, knows more than a model here"),
    ("the card", "authors, parameters, labels and training data are the submitter's word"),
    ("the code", "whether what the link shows has made these answers"),
)  # fmt: skip
PUBLIC = (
    "This exam is public: its seed is known, and one command makes its answers. Rows show what "
    "honest models do; to rule out a table of answers takes a held-back exam, whose seed the host "
    "alone has."
)
HELD_BACK = (
    "This exam is held back: its seed is known to the host alone, and what submitters were given "
    "has no answers in it."
)


def report(study: Study, results: Sequence[Result], config: Mapping[str, Any], out: Path) -> Report:
    """Return the report of a run of submissions; the arguments are those of any study's."""
    exam = Exam.of(results)
    first = headline(ranked(exam.rows), ())
    return Report(
        title=study.about,
        setting=study.setting(config),
        sentences=verdict(exam),
        sections=[
            Section(first.title, [first]),
            *section(exam, out / FIGURES),
            checks(results, bool(config.get("exam", {}).get("held_back"))),
        ],
        warnings=suspicions(exam.rows),
    )


def ranked(rows: Sequence[ExamRow]) -> list[ExamRow]:
    """Return rows with the inputs of models, best first, then rows that know or are told more."""

    def knows_more(row: ExamRow) -> bool:
        name = row.variant
        knows = name in KNOWING or is_table(name) or is_observer(name)
        return row.is_control and knows

    return sorted(
        rows,
        key=lambda row: (knows_more(row), row.score is None, row.score[0] if row.score else 0.0),
    )


def verdict(exam: Exam) -> list[str]:
    """Compare the best submission with the best baseline that has the inputs of models."""
    scored = [row for row in exam.rows if row.arm == SUBMITTED and row.score]
    submitted = [row for row in scored if not _knows_too_much(row)]
    if not submitted:
        found = "every submission with a score knows more than a model could" if scored else ""
        return [f"No verdict: {found or 'no submission has a score'}."] if exam.rows else []
    best = submitted[0]
    assert best.score is not None
    said = (
        f"Outside the training box {best.variant}, {_of(len(submitted))}, errs "
        f"{_words(best.score)} times as much as an orbit fit to what it has seen"
    )
    for plain in exam.plain[:1]:
        assert plain.score is not None
        said += f"; a baseline without attention, {plain.variant}: {_words(plain.score)} times"
        said += f", {_beside(best.score, plain.score)}"
    for table in exam.tables[:1]:
        said += f". A look-up table that is told the true state: {_words(table.score)} times"
    return [f"{said}."]


def suspicions(rows: Sequence[ExamRow]) -> list[str]:
    """Name submissions that are better than an orbit fit by the right law to the same rows."""
    return [
        f"{row.variant} errs less than an orbit fit, by the right law, to the rows that a model "
        f"has seen ({_words(row.score)} times as much): it has used more than those, or it knows "
        "the answers."
        for row in rows
        if row.arm == SUBMITTED and _knows_too_much(row)
    ]


def _knows_too_much(row: ExamRow) -> bool:
    """Tell whether a row errs less than the best that its rows up to then allow."""
    return row.score is not None and row.score.high < 1


def checks(results: Sequence[Result], held_back: bool) -> Section:
    """Return the checks of each submission, the limits of any check, and the cards."""
    done = Table.of_text("Checked here", ("what", "how"), CHECKED)
    open_ = Table.of_text("Not checked, because no file shows it", ("what", "why"), UNCHECKED)
    return Section(
        "How submissions are checked",
        [cards(results), done, open_],
        [HELD_BACK if held_back else PUBLIC],
    )


def cards(results: Sequence[Result]) -> Table:
    """Return the cards, which are the submitters' words, and the number of answers read."""
    found = [result for result in results if result.ok and "card" in result.details]
    body = [
        [
            printable(result.case.variant),
            printable(", ".join(map(str, card.get("authors", ())))),
            printable(card.get("url", "")),
            f"{card.get('parameters', 0):,}",
            printable(card.get("training_data", ""), 500),
            f"{result.details['checked']['answers']:,}",
        ]
        for result in found
        for card in [result.details["card"]]
    ]
    header = ("model", "authors", "link", "parameters", "training data", "answers checked")
    return Table.of_text(WORDS_OF, header, body)


def _beside(one: Interval, other: Interval) -> str:
    if one.high < other.low:
        return "which is more"
    return "which is less" if one.low > other.high else "and no difference is shown"


def _of(count: int) -> str:
    return "the one submission" if count == 1 else f"the best of {count} submissions"


def _words(value: Interval | None) -> str:
    return interval(value).words
