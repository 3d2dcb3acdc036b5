"""Passkey retrieval in short: byte models are trained to find a number in filler.

LSSAR (2026), Figures 2 and A3, ask language models, which tiny ones do not answer (the study
``passkey``). These are trained on a short form of the question and tested at longer ones.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np

from benchmarks.rates import best
from benchmarks.recall.base import STOPPED, Headline, RecallStudy, share
from benchmarks.recall.filler import MULTIPLES, check_multiples, filler
from benchmarks.recall.measures import IGNORE, Integers, whole_by_row
from benchmarks.recall.problem import Problem
from benchmarks.recall.sweep import Exercise, Sweep
from benchmarks.study import curves_of
from orbits.runs.page import Picture
from orbits.runs.plots import curves
from orbits.runs.result import Metric, Result
from orbits.runs.settings import check_not_empty


@dataclass(frozen=True)
class Passkey(Problem):
    """Answer with the digits of the pass key, one by one: the short form in bytes.

    Four lines: filler, ``The pass key is <key>.``, filler, ``The pass key is <key>``. The filler is
    that of the long prompt; its part before the key is uniform on 0 .. all of it. The key has
    ``n_digits`` digits, each uniform on 0 .. 9, zeros in front included. Only the digits of the
    last line are asked for, each at the token before it; its last digit is not read. A reader
    answers all; a model that answers digits without reading gets one in ten.

    Measures: :func:`benchmarks.recall.measures.right_by_row` per digit, ``whole_by_row`` per key.

        >>> rows = Passkey(seq_len=70, n_digits=3).examples("test", 0, np.arange(1))
        >>> print(bytes(rows.tokens[0].tolist()).decode())
        The grass is green. The sky
        The pass key is 829.
        Th
        The pass key is 82
        >>> bytes(rows.targets[0][-3:].tolist())
        b'829'

    Attributes:
        seq_len: L; the same problem at a larger L tests extrapolation.
        n_digits: Digits of the key.

    Raises:
        ValueError: The lines do not fit; the message names the least ``seq_len``.
    """

    stream: ClassVar[str] = "passkey"
    vocab_size: ClassVar[int] = 256  # bytes
    seq_len: int = 128
    n_digits: int = 5

    def __post_init__(self) -> None:
        if self.n_digits < 1:
            raise ValueError(f"n_digits must be at least 1, got {self.n_digits}")
        if (n := self._n_garbage) < 0:
            least = f"at least {self.seq_len - n} for {self.n_digits} digits"
            raise ValueError(f"seq_len must be {least}, got {self.seq_len}")

    @property
    def _n_garbage(self) -> int:
        return self.seq_len + 1 - len(self._text("0" * self.n_digits, 0, 0))

    def _text(self, key: str, before: int, after: int) -> str:
        return f"{filler(before)}\nThe pass key is {key}.\n{filler(after)}\nThe pass key is {key}"

    def row(self, rng: np.random.Generator, split: str) -> tuple[Integers, Integers]:
        """Draw the key and its place."""
        key = "".join(map(str, rng.integers(10, size=self.n_digits)))
        before = int(rng.integers(self._n_garbage + 1))
        text = self._text(key, before, self._n_garbage - before)
        codes = np.frombuffer(text.encode(), np.uint8).astype(np.int64)
        targets = np.full(self.seq_len, IGNORE)
        targets[-self.n_digits :] = codes[-self.n_digits :]
        return codes[:-1], targets

    def measure(self, answers: Integers, split: str, seed: int, at: str) -> dict[str, Metric]:
        """Return the share of whole keys that are right, in %."""
        targets = self.examples(split, seed, np.arange(len(answers))).targets
        return {f"acc@{at}": Metric.mean(100 * whole_by_row(answers, targets))}


PROBLEM = Passkey


@dataclass(frozen=True)
class PasskeyShort(Sweep):
    """Settings of models of the short form and of their test lengths.

    Attributes:
        head_dim: Channels per head.
        n_train: Number of different training examples; None for new ones at every step.
        seq_len: Bytes of a training example.
        n_digits: Digits of the key.
        multiples: Lengths as multiples of the training length.
    """

    head_dim: int = 64
    n_train: int | None = None
    seq_len: int = 96
    n_digits: int = 3
    multiples: tuple[float, ...] = MULTIPLES

    def __post_init__(self) -> None:
        super().__post_init__()
        check_not_empty(self, "multiples")
        check_multiples(self.multiples)

    def exercises(self) -> Iterator[Exercise]:
        """Yield the exercise, with a test at each length."""
        tests = {f"{x:g}x": Passkey(int(x * self.seq_len), self.n_digits) for x in self.multiples}
        yield Exercise(Passkey(self.seq_len, self.n_digits), self.head_dim, self.n_train, tests)


class PasskeyShortStudy(RecallStudy):
    """Passkey retrieval in short."""

    name = "passkey_short"
    about = "Does a model that is trained on it find a number in filler, beyond that length?"
    Settings = PasskeyShort
    metrics: ClassVar = {"acc": share("whole keys that are right at Nx the length"), **STOPPED}
    keys = ("variant", "lr")

    def headline(self, results: Sequence[Result]) -> Headline | None:
        """Return the accuracy at twice the training length, if it was asked for."""
        metric, caption = "acc@2x", "Whole keys at twice the training length."
        asked = any(metric in result.metrics for result in results)
        return Headline("accuracy", metric, caption, "right keys, %", None, "") if asked else None

    def figures(self, results: Sequence[Result], out: Path) -> list[Picture]:
        """Draw accuracy against length."""
        caption = "Whole keys that are right against length: means, bars over all seeds."
        axes = ("length / training length", "right keys, %")
        title = "Whole keys that are found beyond the training length"
        drawn = curves(curves_of(best(results), "acc"), out / "accuracy.png", *axes, title=title)
        return [Picture(caption, [drawn])]


STUDY = PasskeyShortStudy()
