"""Results from a folder, or from a file of result lines that anyone may have written."""

from __future__ import annotations

import json
from pathlib import Path

from orbits.runs import folder
from orbits.runs.result import Result
from symreg.leaderboard.row import FORCES, SEARCH, check


def read(path: Path) -> list[Result]:
    """Return the results of a leaderboard.

    Args:
        path: A results folder, or a file with one JSON object per line; blank lines are skipped.

    Raises:
        FileNotFoundError: There is no such file, or the folder holds no finished run.
        ValueError: A line is not a result, or there is none that a row is made of; the message
            gives the number of the line.
        CorruptArtefact: The folder's records were edited or damaged.
    """
    results = folder.load(path)[0] if path.is_dir() else _lines(path)
    found = [x for x in results if x.case.kind in (FORCES, SEARCH) and x.case.law is not None]
    for result in found:
        check(result)
    if not found:
        raise ValueError(f"{path}: no results of the kinds {FORCES} and {SEARCH}")
    return found


def _lines(path: Path) -> list[Result]:
    try:
        texts = path.read_text(encoding="utf-8").split("\n")
    except UnicodeDecodeError:
        raise ValueError(f"{path}: not a text file of results") from None
    found = []
    for number, text in enumerate(texts, start=1):
        if text.strip():
            try:
                found.append(Result.from_json(json.loads(text)))
                check(found[-1])
            except ValueError as problem:
                raise ValueError(f"{path}, line {number}: not a result: {problem}") from None
    return found
