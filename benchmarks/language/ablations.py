"""Ablations of softmax: its exponential, its normalisation and its sign.

LSSAR (2026), Tables A4 (modified weights), A5 (exponential and normalisation apart) and A6 (other
functions in the exponential's place), as one sweep of language models at the training length.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from statistics import fmean
from typing import ClassVar

from benchmarks.language.base import measured
from benchmarks.language.extrapolation import ExtrapolationStudy
from orbits.runs.page import Picture
from orbits.runs.plots import bars
from orbits.runs.result import Result
from orbits.runs.table import Table, by_variant, seed_table


class AblationsStudy(ExtrapolationStudy):
    """Ablations of softmax."""

    name = "ablations"
    about = "Which parts of softmax does a language model need?"
    published: ClassVar = ("ablation",)
    same_scale: ClassVar = ("lssar_table_a4", "lssar_table_a5", "lssar_table_a6")
    ntk: ClassVar = (False,)  # nothing is longer than what was trained on

    def tables(self, results: Sequence[Result]) -> list[Table]:
        """Return the loss of every variant."""
        return [seed_table("Loss, nats per token", measured(results), ("variant",), ("loss@1x",))]

    def figures(self, results: Sequence[Result], out: Path) -> list[Picture]:
        """Draw the loss of every variant beside softmax's."""
        values = by_variant(measured(results), "loss@1x")
        if not values:
            return []
        level = fmean(values["softmax"].values()) if "softmax" in values else None
        title = "Loss at the training length"
        path = bars(values, out / "loss.png", "nats per token", level, "softmax", title=title)
        return [Picture("Loss at the training length, beside softmax's.", [path])]


STUDY = AblationsStudy()
