"""Offsets and distance biases that trained heads have learned, by layer.

Lazy Attention, Figures 4, 8 and 9 (biases by distance) and Figures 5 and 10 (offsets tau). Its text
says that biases vary over some 20 tokens with rotary positions (Figure 9) and over some 100 without
(Figure 8, the row lazy_no_rope). Of 24 layers it says that the first penalises distance as ALiBi
does and has the largest offsets, the middle ones half as much and offsets about 1, the upper ones
no longer penalise what is far, push away what is 1 to 10 tokens back and have offsets that differ
from head to head. The row *as started* has the numbers before training: offsets of 1, biases of 0.

AdamW moves a number by about the learning rate at most in each step, so the sum of the rates,
``reach``, bounds what is seen: an offset that stays near 1 in a short training shows nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from benchmarks.language.base import TRAINING_METRICS, LanguageModels, LanguageStudy, measured
from orbits.runs.deferred import deferred
from orbits.runs.page import Picture
from orbits.runs.result import Quantity, Result
from orbits.runs.table import Table, by_variant
from orbits.runs.verdict import against, beside

GROUPS = ("first layer", "middle layers", "upper layers", "all layers")
MIDDLE, STARTED = GROUPS[1], "as started"
NEAR, FAR, CLOSE = 20, 100, range(2, 11)
"""Distances within which biases vary, with rotary positions and without; those they push away."""
KNOBS = ("tau", "tau_spread", "slope", "dip", "bend", "far")


@dataclass(frozen=True)
class LearnedOffsets(LanguageModels):
    """Settings of language models whose offsets and biases are read after training."""

    attention: tuple[str, ...] = ("lazy",)


class LearnedOffsetsStudy(LanguageStudy):
    """Learned offsets and distance biases."""

    name = "learned_offsets"
    about = "Which weights do trained heads learn to leave out, by distance and by size?"
    Settings = LearnedOffsets
    metrics: ClassVar[Mapping[str, Quantity]] = {
        "tau": Quantity("none", "", "offset that is subtracted, mean over heads; 1 at the start"),
        "tau_spread": Quantity(
            "none", "", "standard deviation of the offsets over the heads of a layer"
        ),
        "slope": Quantity(
            "none", "nats", "rise of the penalty from distance 0 to the context, by a straight line"
        ),
        "dip": Quantity(
            "none", "nats", "penalty of distances 2 to 10 less that of larger ones, mean over heads"
        ),
        "bend": Quantity(
            "none", "nats", "rise in 20 tokens below distance 20 less that beyond; 0 of any line"
        ),
        "far": Quantity(
            "none", "nats", "rise of the penalty from distance 20 to 100, by a straight line"
        ),
        "reach": Quantity("none", "", "sum of the learning rates: how far AdamW moves a number"),
        **TRAINING_METRICS,
    }
    cells = deferred("benchmarks.language.learned_offsets_cells:cells")

    def tables(self, results: Sequence[Result]) -> list[Table]:
        """Return tables of the offsets that groups of layers learned, and of each layer."""
        groups = measured(results, layer=None)
        layers = [x for x in measured(results) if x.case.get("layer") is not None]
        keys = ("variant", "layer")
        return [
            self.seed_table("By groups of layers", groups, ("variant",), (*KNOBS, "reach")),
            self.seed_table("By layers", layers, keys, KNOBS),
        ]

    def sentences(self, results: Sequence[Result]) -> list[str]:
        """Compare groups of layers with the start, with the middle, and with their bounds."""
        found, said = measured(results, layer=None), []
        for label in dict.fromkeys(str(x.case.get("of")) for x in found):
            mine = [x for x in found if x.case.get("of") == label]
            for metric in KNOBS:
                values = by_variant(mine, metric)
                rows = {name.removeprefix(f"{label}, "): x for name, x in values.items()}
                depths = {name: rows[name] for name in GROUPS[:3] if name in rows}
                compared = [
                    beside(against(rows, STARTED), STARTED, ".2f"),
                    beside(against(depths, MIDDLE), MIDDLE, ".2f"),
                ]
                if any(compared):
                    said.append(f"{label}, {metric}: {'; '.join(filter(None, compared))}.")
            reach = max(x.value("reach") or 0.0 for x in mine)
            said.append(f"{label}: a number could move by some {reach:.2f} in training.")
        return said

    def figures(self, results: Sequence[Result], out: Path) -> list[Picture]:
        """Draw offsets by layer, and biases by distance, a panel per layer."""
        drawn: list[Picture] = deferred("benchmarks.language.learned_offsets_figure:figures")(
            measured(results), out
        )
        return drawn

    def ours(self, results: Sequence[Result], table: str) -> Mapping[str, Any]:
        """Return nothing: the paper prints no number of these."""
        return {}


STUDY = LearnedOffsetsStudy()
