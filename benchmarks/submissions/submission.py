"""A submission: a folder with a card and an answer file for each part of the exam.

It comes from anyone: the card is plain data, answers are read as any prediction file, and nothing
in either is evaluated. What is wrong with it is one line, before any work is done.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import numpy as np
import numpy.typing as npt
import yaml

from benchmarks.newton.control_names import CEILING, POWER_LAW, TRUE_FORCE, TRUE_STATE
from benchmarks.submissions.sheet import ANSWER, Exam
from symreg.predictions import formats
from worldmodel.controls.baselines import OBSERVERS

CARDS = ("card.yaml", "card.yml", "card.json")
LARGEST_CARD = 20_000
"""Most bytes of a card."""
LONGEST, MOST_AUTHORS = 500, 50
"""Most characters of a text of a card, and most names of authors."""
SUFFIXES = (".npz", ".csv", ".parquet")
RESERVED = (CEILING, TRUE_FORCE, POWER_LAW, TRUE_STATE, *map(str.lower, OBSERVERS))
"""Parts of the names of controls, which no submission may bear."""

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Card:
    """The submitter's description of a model; nobody has checked it.

    Attributes:
        name: The model's name, of at most 80 characters.
        authors: Names of the authors.
        url: Address of a page on the model; http or https.
        parameters: Number of trained parameters.
        training_data: The training data, in words.
        signature: Signature of the exam that was answered, from its ``exam.json``.
        labels: Number of labelled sequences in its training; None where unknown.
    """

    name: str
    authors: tuple[str, ...]
    url: str
    parameters: int
    training_data: str
    signature: str
    labels: int | None = None


@dataclass(frozen=True)
class Submission:
    """A submission whose form is right.

    Attributes:
        folder: Folder of the submission.
        card: Its card.
        files: The answer file of each part of the exam.
    """

    folder: Path
    card: Card
    files: Mapping[str, Path] = field(default_factory=dict)


def read(folder: Path, exam: Exam) -> Submission:
    """Return a submission, of which the card and the names of its files are read."""
    if not folder.is_dir():
        raise FileNotFoundError(f"{folder}: no such folder; a submission is a folder with a card")
    card = read_card(folder)
    files = {}
    for part in exam.parts:
        there = [folder / f"{part}{x}" for x in SUFFIXES if (folder / f"{part}{x}").is_file()]
        if len(there) != 1:
            found = " and ".join(path.name for path in there) or "none"
            names = ", ".join(f"{part}{suffix}" for suffix in SUFFIXES)
            raise FileNotFoundError(f"{folder}: needs one of {names}, found {found}")
        files[part] = there[0]
    return Submission(folder, card, files)


def check_signature(submission: Submission, exam: Exam, signature: str) -> None:
    """Refuse a submission that answers another exam."""
    if submission.card.signature != signature:
        of = "the held-back exam of this key" if exam.held_back else "the public exam"
        raise ValueError(
            f"{submission.folder}: signature {submission.card.signature[:12]}... is not that of "
            f"{of}, {signature[:12]}...; answer that one, or name its key by --key"
        )


def read_answers(submission: Submission, exam: Exam) -> dict[str, npt.NDArray[np.float64]]:
    """Return the predicted forces of each part, [n_test, steps], every one of them finite.

    Raises:
        ValueError: A file is damaged, an answer is missing, there twice, of no question or no
            finite number; the message names the file and the first such answer.
    """
    return {
        part: _answers(path, exam.n_test, np.asarray(exam.steps))
        for part, path in submission.files.items()
    }


def read_card(folder: Path) -> Card:
    """Read the card of a submission."""
    path = next((folder / name for name in CARDS if (folder / name).is_file()), None)
    if path is None:
        raise FileNotFoundError(f"{folder}: no card; write one as {CARDS[0]}")
    if path.stat().st_size > LARGEST_CARD:
        raise ValueError(f"{path} has more than {LARGEST_CARD} bytes; a card is a few lines")
    try:
        plain = yaml.load(path.read_text(encoding="utf-8"), _WithoutAliases)
    except _Alias:
        raise ValueError(f"{path} has an alias of YAML, which no card needs") from None
    except Exception:  # a tag or a number may trip the loader over anything
        raise ValueError(f"{path} is not YAML or JSON; see SUBMITTING.md for a card") from None
    known = [each.name for each in fields(Card)]
    if not isinstance(plain, dict) or not all(isinstance(name, str) for name in plain):
        raise ValueError(f"{path} must map {', '.join(known)} to values")
    for name in plain:
        if name not in known:
            raise ValueError(f"{path}: unknown field {name!r:.40}; choose from {', '.join(known)}")
    for name in known[:-1]:
        if name not in plain:
            raise ValueError(f"{path}: no {name}; a card has {', '.join(known[:-1])}")
    try:
        return _card(plain)
    except ValueError as problem:
        raise ValueError(f"{path}: {problem}") from None


class _Alias(yaml.YAMLError):
    """A card has an alias."""


class _WithoutAliases(yaml.SafeLoader):
    """A loader that refuses aliases, by which a few lines can stand for gigabytes."""

    def compose_node(self, parent: Any, index: Any) -> Any:
        """Return the next node, unless it is an alias."""
        if self.check_event(yaml.AliasEvent):
            raise _Alias
        return super().compose_node(parent, index)


def _card(plain: Mapping[str, Any]) -> Card:
    authors = plain["authors"] if isinstance(plain["authors"], list) else [plain["authors"]]
    if not 0 < len(authors) <= MOST_AUTHORS:
        raise ValueError(f"authors must be 1 to {MOST_AUTHORS} names")
    card = Card(
        name=_text("name", plain["name"], formats.MAX_TEXT),
        authors=tuple(_text("authors", each, formats.MAX_TEXT) for each in authors),
        url=_text("url", plain["url"]),
        parameters=_count("parameters", plain["parameters"]),
        training_data=_text("training_data", plain["training_data"]),
        signature=_text("signature", plain["signature"]),
        labels=None if plain.get("labels") is None else _count("labels", plain["labels"]),
    )
    if urlsplit(card.url).scheme not in ("http", "https") or not urlsplit(card.url).netloc:
        raise ValueError(f"url must begin with https:// or http://, got {card.url!r:.80}")
    if word := next((x for x in RESERVED if x in card.name.lower()), None):
        raise ValueError(f"name {card.name!r} is like that of a control ({word}); choose another")
    return card


def _text(name: str, value: object, longest: int = LONGEST) -> str:
    if not isinstance(value, str) or not value.strip() or len(value) > longest:
        got = f"{value!r:.40}" if isinstance(value, str) else type(value).__name__
        raise ValueError(f"{name} must be text of 1 to {longest} characters, got {got}")
    text = " ".join(value.split())
    if not text.isprintable():
        raise ValueError(f"{name} has characters that do not print")
    return text


def _count(name: str, value: object) -> int:
    if type(value) is not int or not 0 <= value < 10**15:
        # A value of YAML that is no scalar may be far larger than its text.
        is_plain = isinstance(value, str | int | float | None)
        got = f"{value!r:.40}" if is_plain else type(value).__name__
        raise ValueError(f"{name} must be a whole number, 0 or more, got {got}")
    return value


def _answers(path: Path, n: int, steps: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
    try:
        columns = formats.read(path, ANSWER)
        sequence, step = (_whole(name, columns[name]) for name in ANSWER[:2])
        force = _numbers("force_predicted", columns["force_predicted"])
        if not len(sequence) == len(step) == len(force):
            raise formats.Refused("its columns are not of one length")
        column = np.full(int(steps.max()) + 1, -1)
        column[steps] = np.arange(len(steps))
        inside = (step >= 0) & (step < len(column)) & (sequence >= 0) & (sequence < n)
        asked = inside & (column[np.where(inside, step, 0)] >= 0)
        _refuse_first(~asked, sequence, step, "answers what is not asked")
        place = sequence * len(steps) + column[step]
        count = np.bincount(place, minlength=n * len(steps))
        _refuse_first(count[place] > 1, sequence, step, "is answered more than once")
        _refuse_first(~np.isfinite(force), sequence, step, "has no finite force_predicted")
        if missing := np.flatnonzero(count == 0).tolist():
            first = divmod(missing[0], len(steps))
            raise formats.Refused(
                f"{len(missing)} of {len(count)} answers are missing, the first of sequence_id "
                f"{first[0]}, step {steps[first[1]]}"
            )
    except formats.Refused as reason:
        raise ValueError(f"{path}: {reason}") from None
    answers = np.empty(n * len(steps))
    answers[place] = force
    return answers.reshape(n, len(steps))


def _refuse_first(wrong: Array, sequence: Array, step: Array, what: str) -> None:
    if wrong.any():
        row = int(np.argmax(wrong))
        more = int(wrong.sum()) - 1
        others = f", and {more} more" if more else ""
        raise formats.Refused(
            f"row {row} (sequence_id {sequence[row]}, step {step[row]}) {what}{others}"
        )


def _whole(name: str, values: Array) -> npt.NDArray[np.int64]:
    if values.dtype.kind == "U":  # a table's sequence_id may be text
        try:
            values = values.astype(np.float64)
        except ValueError:
            raise formats.Refused(f"{name} must be whole numbers") from None
    numbers = _numbers(name, values)
    if not (np.isfinite(numbers).all() and (numbers == np.floor(numbers)).all()):
        raise formats.Refused(f"{name} must be whole numbers")
    if (np.abs(numbers) > 2**53).any():
        raise formats.Refused(f"{name} is too large")
    return numbers.astype(np.int64)


def _numbers(name: str, values: Array) -> npt.NDArray[np.float64]:
    if values.ndim != 1 or values.dtype.kind not in "iuf":
        raise formats.Refused(
            f"{name} must be numbers of shape [n], got {values.dtype} of shape {list(values.shape)}"
        )
    return values.astype(np.float64)
