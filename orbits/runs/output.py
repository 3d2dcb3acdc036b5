"""Output of a command: text for a reader, JSON for a program, or the one line that matters.

A command whose output is data takes its flags from :func:`offer` and prints by :func:`say`.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import math
import sys
from collections.abc import Callable, Mapping
from typing import Any


def offer(parser: argparse.ArgumentParser, alone: str, full: bool = False) -> Any:
    """Add ``--json`` and ``--quiet``, and for reports ``--full``; at most one may be given.

    Args:
        parser: Parser of the command.
        alone: Output of ``--quiet``, in words.
        full: Whether the command prints a report, of which the text is the first screen.

    Returns:
        The group, to which another form of the output may be added.
    """
    group = parser.add_mutually_exclusive_group()
    if full:
        group.add_argument("--full", action="store_true", help="print every table, not the first")
    group.add_argument("--json", action="store_true", help="print one JSON object")
    group.add_argument("--quiet", action="store_true", help=f"print {alone} alone")
    return group


def say(
    asked: Any,
    text: Callable[[], str],
    record: Callable[[], Any],
    alone: Callable[[], str],
) -> None:
    """Print text, JSON or the one line for programs, as the flags ask; the others are not made.

    Args:
        asked: The flags, for example parsed arguments.
        text: Function that makes the text for a reader.
        record: Function that makes the plain data of ``--json``.
        alone: Function that makes the line of ``--quiet``.
    """
    made = as_json(record()) if asked.json else alone() if asked.quiet else text()
    if made:
        print(made)


def as_json(record: Any) -> str:
    """Return plain data as JSON, in which there is no number for NaN or infinity: they are null."""
    return json.dumps(_bounded(record), allow_nan=False)


def _bounded(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {key: _bounded(each) for key, each in value.items()}
    return [_bounded(each) for each in value] if isinstance(value, list | tuple) else value


def on_the_way(asked: Any) -> contextlib.AbstractContextManager[Any]:
    """Send progress to standard error where the output is for a program."""
    silent = asked.json or asked.quiet
    return contextlib.redirect_stdout(sys.stderr) if silent else contextlib.nullcontext()
