"""Passkey retrieval: language models continue a long prompt that hides a number in filler.

LSSAR (2026), Figures 2 and A3, with the prompt of Mohtashami and Jaggi (2023), at exact numbers of
tokens. Tiny language models answer no such prompt; the study ``passkey_short`` trains byte models
on a short form of it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from benchmarks.language.base import (
    TRAINING_METRICS,
    LanguageModels,
    LanguageStudy,
    measured,
)
from benchmarks.recall.filler import MULTIPLES, check_multiples
from benchmarks.study import curves_of
from orbits.runs.deferred import deferred
from orbits.runs.page import Picture
from orbits.runs.plots import curves
from orbits.runs.result import Quantity, Result
from orbits.runs.settings import check_at_least, check_not_empty
from orbits.runs.table import Table


@dataclass(frozen=True)
class Passkeys(LanguageModels):
    """Settings of language models and of their prompts.

    Attributes:
        multiples: Lengths as multiples of the training length.
        n_trials: Prompts at each length.
    """

    multiples: tuple[float, ...] = MULTIPLES
    n_trials: int = 100

    def __post_init__(self) -> None:
        super().__post_init__()
        check_not_empty(self, "multiples")
        check_at_least(self, {"n_trials": 1})
        check_multiples(self.multiples)
        object.__setattr__(self, "multiples", tuple(map(float, self.multiples)))


class PasskeyStudy(LanguageStudy):
    """Passkey retrieval."""

    name = "passkey"
    version = 4
    about = "Does a language model find a number in filler, beyond its training length?"
    Settings = Passkeys
    metrics: ClassVar[Mapping[str, Quantity]] = {
        "acc": Quantity(
            "higher", "%", "whole keys that are right at Nx the training length", bounds=(0, 100)
        ),
        **TRAINING_METRICS,
    }
    published: ClassVar[tuple[str, ...]] = ("passkey",)
    cells = deferred("benchmarks.language.passkey_cells:cells")

    def tables(self, results: Sequence[Result]) -> list[Table]:
        """Return accuracies by length."""
        title = "Whole keys that are right, %, by multiple of the training length"
        columns = [f"acc@{multiple:g}x" for multiple in MULTIPLES]
        return [self.seed_table(title, measured(results), ("variant",), columns)]

    def figures(self, results: Sequence[Result], out: Path) -> list[Picture]:
        """Draw accuracy against length."""
        if not (series := curves_of(measured(results), "acc")):
            return []
        path = out / "accuracy.png"
        title = "Whole keys that are found beyond the training length"
        curves(series, path, "length / training length", "right keys, %", title=title)
        caption = "Whole keys that are right against length: means, bars over all seeds."
        return [Picture(caption, [path])]


STUDY = PasskeyStudy()
