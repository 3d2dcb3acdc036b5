"""Harder recall: pairs shown twice, values that change, and keys of two parts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

from benchmarks.recall.base import STOPPED, Headline, RecallStudy, share
from benchmarks.recall.blind import by_place
from benchmarks.recall.mqar_compositional import Compositional
from benchmarks.recall.mqar_forgetting import Forgetting
from benchmarks.recall.mqar_repeated import Repeated
from benchmarks.recall.problem import Problem
from benchmarks.recall.sweep import Exercise, Sweep
from orbits.runs.choices import check_choice
from orbits.runs.result import Result
from orbits.runs.settings import check_not_empty

PROBLEMS: dict[str, tuple[Callable[..., Problem], tuple[str, ...]]] = {
    "repeated": (Repeated, ("n_passes",)),
    "forgetting": (Forgetting, ("n_updates",)),
    "compositional": (Compositional, ()),
}
"""Kinds of recall, with the settings of theirs alone."""
LOADS = ("vocab_size", "seq_len", "n_pairs")
"""Settings of every kind."""


@dataclass(frozen=True)
class Variants(Sweep):
    """Settings of models and of the variants of recall.

    Attributes:
        kinds: Problems: repeated (pairs are shown ``n_passes`` times), forgetting (``n_updates``
            keys get another value) and compositional (two keys together have a value).
        vocab_size: Tokens.
        seq_len: Length of a row.
        n_pairs: Pairs; for compositional a square number.
        n_passes: Number of times that pairs are shown.
        n_updates: Keys that get another value.
        n_train: Number of different training examples; None for new ones at every step.
        head_dim: Channels per head; with one head, the width of the model.
    """

    kinds: tuple[str, ...] = tuple(PROBLEMS)
    vocab_size: int = 256
    seq_len: int = 32
    n_pairs: int = 4
    n_passes: int = 2
    n_updates: int = 2
    n_train: int | None = None
    head_dim: int = 64

    def __post_init__(self) -> None:
        check_not_empty(self, "kinds")
        for kind in self.kinds:
            check_choice("kind", kind, tuple(PROBLEMS))
        super().__post_init__()

    def exercises(self) -> Iterator[Exercise]:
        """Yield each kind."""
        for kind in dict.fromkeys(self.kinds):
            make, own = PROBLEMS[kind]
            loads = {name: getattr(self, name) for name in (*LOADS, *own)}
            problem = make(**loads)
            setting = {"recall": kind, **loads}
            yield Exercise(problem, self.head_dim, self.n_train, {"": problem}, setting)


class VariantStudy(RecallStudy):
    """Variants of multi-query associative recall."""

    name = "mqar_variants"
    about = "Can a mixer recall what it read twice, what changed, and what two keys share?"
    Settings = Variants
    keys = ("recall", "seq_len", "n_pairs", "variant", "lr", "weight_decay")
    metrics: ClassVar = {"accuracy": share("right answers"), **STOPPED}

    def headline(self, results: Sequence[Result]) -> Headline:
        """Return the accuracy of a kind, beside what needs no look-up."""
        setting = results[0].case.setting
        make, own = PROBLEMS[setting["recall"]]
        problem = make(**{name: setting[name] for name in (*LOADS, *own)})
        caption = f"Right answers, {setting['recall']} recall of {setting['n_pairs']} pairs."
        level = max(100 / setting["n_pairs"], by_place(problem))
        guess = "a value of the row, or its place"
        return Headline(setting["recall"], "accuracy", caption, "right answers, %", level, guess)


STUDY = VariantStudy()
