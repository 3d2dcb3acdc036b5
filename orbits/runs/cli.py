"""Command lines: one line for bad input, and hints for old spellings; imports nothing heavy."""

from __future__ import annotations

import argparse
import contextlib
import os
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NoReturn

from orbits.runs import plugins
from orbits.runs.choices import TYPES, did_you_mean

ORRERY = {
    "orbits": "data",
    "worldmodel fit": "train",
    "worldmodel": "",
    "symreg": "law",
    "benchmarks": "bench",
    "attention": "attention",
}
"""Commands of ``python -m`` and the words after ``orrery`` that run the same; others, such as
``worldmodel probe``, keep their own word."""

RENAMED = {
    "--attentions": "--attention",
    "--engines": "--engine",
    "--laws": "--law",
    "--jobs": "--workers",
    "--submitit": "--executor slurm --partition",
    "--slurm": "--executor slurm --partition",
    "--dask": "--executor dask --scheduler",
}
"""Flags of earlier versions, and those that took their place."""


def called(command: str) -> str:
    """Return a command as it is typed where this program was started.

        >>> called("worldmodel fit -c pretrain")
        'python -m worldmodel fit -c pretrain'

    Args:
        command: It as it stands after ``python -m``. Where this program was started by the
            console command, the result is ``orrery train -c pretrain``.
    """
    program = Path(sys.argv[0])
    if (program.parent.name if program.name == "__main__.py" else program.stem) != "orrery":
        return f"python -m {command}"
    for words, word in ORRERY.items():
        if command == words or command.startswith(f"{words} "):
            return " ".join(["orrery", *word.split(), *command.removeprefix(words).split()])
    raise ValueError(f"no command of orrery runs {command!r}")


def next_line(command: str) -> str:
    """Return the line that names the command to type next, with the plug-ins of this one."""
    return " ".join([f"next: {called(command)}", *plugins.flags()])


class OneLineParser(argparse.ArgumentParser):
    """A parser whose errors are one line on stderr, without the usage, and exit code 2."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **{"allow_abbrev": False, **kwargs})

    def add_subparsers(self, **kwargs: Any) -> Any:
        """Return the group of commands; each refuses flags that it does not know itself."""
        return super().add_subparsers(**{"parser_class": _Command, **kwargs})

    def error(self, message: str) -> NoReturn:
        """Print the message and exit."""
        words = re.sub(r"invalid (int|float) value: (.+)", _of_a_number, message)
        leave(f"error: {words}{hint(words, self._option_string_actions)}", 2)


class _Command(OneLineParser):
    """The parser of a command, whose own flags are those that a misspelt one is near."""

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Parse the arguments, all of which are known; a list of paths may go on behind flags."""
        known, rest = super().parse_known_args(args, namespace)
        lists = [x.dest for x in self._actions if x.nargs == "*" and x.type is Path]
        if lists and not any(word.startswith("-") for word in rest):
            (several,) = lists
            setattr(known, several, [*getattr(known, several), *map(Path, rest)])
            rest = []
        if rest:
            self.error(f"unrecognized arguments: {' '.join(rest)}")
        return known, rest


def _of_a_number(wrong: re.Match[str]) -> str:
    """Return in plain words that a value is no number."""
    return f"must be {TYPES[int if wrong[1] == 'int' else float]}, got {wrong[2]}"


def taken(arguments: Sequence[str] | None) -> list[str]:
    """Return a command line, by default that of this program, without the plug-ins that it names.

    Who types no word at all is shown the help. A plug-in that cannot be is one line on stderr and
    exit code 2.
    """
    with one_line_errors(resumes=False):
        return plugins.take(sys.argv[1:] if arguments is None else arguments) or ["--help"]
    raise AssertionError  # one_line_errors leaves


def hint(message: str, flags: Iterable[str]) -> str:
    """Return likely corrections of a word that an error of argparse is about.

    Args:
        message: The error: of a word that is none of some choices, or of an unrecognized flag.
        flags: The flags that there are.
    """
    if wrong := re.search(r"invalid choice: '([^']+)' \(choose from (.+)\)", message):
        return did_you_mean(wrong[1], re.findall(r"'([^']+)'", wrong[2]))
    if "nrecognized" not in message:
        return ""
    words = [word.partition("=")[0] for word in message.replace(",", " ").split()]
    unrecognized = next((word for word in words if word.startswith("--")), "--")
    if unrecognized in RENAMED:
        return f"; use {RENAMED[unrecognized]}"
    return did_you_mean(unrecognized.replace("_", "-"), flags, cutoff=0.75)


@contextlib.contextmanager
def one_line_errors(*failures: type[Exception], resumes: bool = True) -> Iterator[None]:
    """Let expected errors be one line on stderr, in place of a traceback.

    Bad input (a ValueError or an OSError) exits with 2, an interruption with 130, memory that
    ran out with 1. A reader of the output who leaves early is no error.

    Args:
        *failures: Errors of the work itself; they exit with 1.
        resumes: Whether the same command continues where it was interrupted; a line says so.
    """
    try:
        yield
        sys.stdout.flush()
    except BrokenPipeError:  # the reader, for example `head`, has seen enough
        # What is left must go somewhere: Python writes it when it exits, and would fail again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except (ValueError, OSError) as error:
        leave(f"error: {_words(error)}", 2)
    except (KeyboardInterrupt, SystemExit) as ended:
        # Lightning makes an interruption a plain exit.
        if not any(isinstance(x, KeyboardInterrupt) for x in (ended, ended.__context__)):
            raise
        words = "; run the same command again to resume" if resumes else ""
        leave(f"stopped{words}", 130)
    except MemoryError as error:
        leave(f"error: out of memory: {error}", 1)
    except failures as error:
        leave(f"error: {_words(error)}", 1)


def _words(error: Exception) -> str:
    """Return the message of an error, on one line."""
    if isinstance(error, OSError) and error.strerror and error.filename:
        return f"{error.filename}: {error.strerror}"
    return " ".join(str(error).split())


def leave(message: str, code: int) -> NoReturn:
    """Print a message to standard error and exit."""
    print(message, file=sys.stderr)
    sys.exit(code)
