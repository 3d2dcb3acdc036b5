"""The base of synthetic problems: settings that make examples, a random stream a row.

A problem is a frozen dataclass of its settings. ``examples(split, seed, indices)`` is a pure
function: a row depends on the settings, the split, the seed and its own index, never on the rows
made before or beside it, so any worker can make any row. No two splits or kinds of problem share
a stream; two settings of one kind do.

    >>> problem = get("mqar", vocab_size=20, seq_len=8, n_pairs=2)
    >>> whole = problem.examples("train", seed=0, indices=np.arange(100))
    >>> alone = problem.examples("train", seed=0, indices=np.array([42]))
    >>> bool((whole.tokens[42] == alone.tokens[0]).all())
    True

A file of :mod:`benchmarks.recall` or :mod:`benchmarks.recall.skills` that defines ``PROBLEM`` is
a problem of the file's name.
"""

from __future__ import annotations

import dataclasses
import importlib
import zlib
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from benchmarks.recall.measures import Integers, Reals, right_by_row
from orbits.runs.choices import check_choice, unknown
from orbits.runs.result import Metric

SPLITS = ("train", "val", "test")
PACKAGES = ("benchmarks.recall", "benchmarks.recall.skills")
"""Packages of the files of problems."""


@dataclass(frozen=True)
class Examples:
    """Rows of a problem.

    Attributes:
        tokens: Tokens that the model reads, [N, L].
        targets: Right answer at each position, ``IGNORE`` where nothing is asked, [N, L].
            They are already shifted: the answer at position t belongs to the output at t.
    """

    tokens: Integers
    targets: Integers


class Problem(ABC):
    """A synthetic problem: settings that make examples.

    Attributes:
        stream: The name of its random streams.
        learner: Learner, a key of :data:`benchmarks.learners.LEARNERS`.
        padded: Whether rows end in padding, which a batch has no more of than it needs.
        weighs: Whether :meth:`measure_distributions` measures anything.
    """

    stream: ClassVar[str]
    learner: ClassVar[str] = "problem"
    padded: ClassVar[bool] = False
    weighs: ClassVar[bool] = False

    @property
    @abstractmethod
    def vocab_size(self) -> int:
        """Tokens are 0 .. vocab_size - 1."""

    @property
    @abstractmethod
    def seq_len(self) -> int:
        """Tokens in a row, L."""

    @property
    def name(self) -> str:
        """The name of its file."""
        return type(self).__module__.rpartition(".")[2]

    def to_json(self) -> dict[str, Any]:
        """Return the name and the settings as plain data, the arguments of the data of a job."""
        settings = dataclasses.asdict(self)  # type: ignore[call-overload]
        return {"problem": self.name, "problem_args": settings}

    def check_even_length(self, least: int, formula: str = "") -> None:
        """Refuse rows of an odd or too small length.

        Raises:
            ValueError: The length is odd, or below ``least``, which ``formula`` explains.
        """
        if self.seq_len % 2 or self.seq_len < least:
            raise ValueError(
                f"seq_len must be even and at least {formula}{least}, got {self.seq_len}"
            )

    def row(self, rng: np.random.Generator, split: str) -> tuple[Integers, Integers]:
        """Draw the tokens and the targets of one row, [L] each."""
        raise NotImplementedError  # where examples() is another one

    def examples(self, split: str, seed: int, indices: npt.ArrayLike) -> Examples:
        """Return one row per index.

        Args:
            split: ``train``, ``val`` or ``test``.
            seed: The data's seed, 0 <= seed < 2^64.
            indices: Row numbers, not negative, in any order, [N].

        Raises:
            ValueError: Unknown split, or a seed or index out of range.
        """
        drawn = [self.row(rng, split) for rng in generators(self.stream, split, seed, indices)]
        rows = np.array(drawn, dtype=np.int64).reshape(-1, 2, self.seq_len)
        return Examples(tokens=rows[:, 0], targets=rows[:, 1])

    def measure(self, answers: Integers, split: str, seed: int, at: str) -> dict[str, Metric]:
        """Return the accuracy of greedy answers to the first rows of a split, in %.

        Args:
            answers: A token at each position, [N, L].
            split: The split.
            seed: The data's seed.
            at: The names of metrics end in it; may be empty.
        """
        targets = self.examples(split, seed, np.arange(len(answers))).targets
        return {at_test("accuracy", at): Metric.mean(100 * right_by_row(answers, targets))}

    def measure_distributions(
        self, shares: Reals, split: str, seed: int, at: str
    ) -> dict[str, Metric]:
        """Return metrics of the probabilities of all tokens, beyond the likeliest one.

        Args:
            shares: The probability of each token at each position, [N, L, V].
            split: The split.
            seed: The data's seed.
            at: The names of metrics end in it; may be empty.
        """
        return {}


def at_test(metric: str, at: str) -> str:
    """Return the name of a metric on a test, whose name may be empty."""
    return f"{metric}@{at}" if at else metric


def get(name: str, **settings: Any) -> Problem:
    """Return a problem with some settings.

    Raises:
        ValueError: There is no such problem, or it refuses a setting.
    """
    kind = _kind(name)
    if kind is None:
        raise unknown("problem", name, names())
    known = {field.name for field in dataclasses.fields(kind)}  # type: ignore[arg-type]
    for setting in settings:
        check_choice(f"setting of {name}", setting, sorted(known))
    plain = {key: tuple(x) if isinstance(x, list) else x for key, x in settings.items()}
    return kind(**plain)  # a list stands for a tuple in JSON


def names() -> list[str]:
    """Return the names of all problems, in alphabetical order."""
    return sorted(name for name in _files() if _kind(name) is not None)


def _kind(name: str) -> type[Problem] | None:
    """Return the class of a problem; None where its file defines none."""
    if (module := _files().get(name)) is None:
        return None
    return getattr(importlib.import_module(module), "PROBLEM", None)


def _files() -> dict[str, str]:
    """Return the modules that may define problems, by name."""
    return {
        path.stem: f"{package}.{path.stem}"
        for package in PACKAGES
        for place in importlib.import_module(package).__path__
        for path in Path(place).glob("[a-z]*.py")
    }


def generators(
    name: str, split: str, seed: int, indices: npt.ArrayLike
) -> Iterator[np.random.Generator]:
    """Return an independent random generator for each index.

    A stream's address is (name, split, seed, index) in words of fixed width, hashed by numpy's
    SeedSequence into the state of a PCG64. numpy keeps both of these the same on every machine and
    in every version; it may improve how a Generator turns their bits into a choice or a shuffle
    (NEP 19), which the examples in the docstrings, run as tests, would show.

    Args:
        name: The kind of problem, without its settings.
        split: ``train``, ``val`` or ``test``.
        seed: 0 <= seed < 2^64.
        indices: Not negative, [N].

    Raises:
        ValueError: Unknown split, or a seed or index out of range.
    """
    if split not in SPLITS:
        raise ValueError(f"unknown split {split!r}; choose one of {', '.join(SPLITS)}")
    if not 0 <= seed < 2**64:
        raise ValueError(f"seed must be in [0, 2^64), got {seed}")
    rows = row_numbers(indices)
    address = [zlib.crc32(name.encode()), SPLITS.index(split), *_two_words(seed)]
    return (
        np.random.default_rng(np.array([*address, *_two_words(row)], np.uint32)) for row in rows
    )


def row_numbers(indices: npt.ArrayLike) -> list[int]:
    """Return the indices as integers.

    Raises:
        ValueError: One of them is negative.
    """
    rows = np.asarray(indices, dtype=np.int64).reshape(-1).tolist()
    if min(rows, default=0) < 0:
        raise ValueError(f"indices must not be negative, got {min(rows)}")
    return rows


def _two_words(number: int) -> tuple[int, int]:
    return number & 0xFFFFFFFF, number >> 32
