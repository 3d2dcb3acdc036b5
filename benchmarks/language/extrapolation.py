"""Loss of language models at 1x to 16x of their training length.

LSSAR (2026), Table 1 and Figures A2 and A3; Lazy Attention, Figure 6. Every length reads the same
text, cut into windows that do not overlap. ``loss`` is the mean over all tokens of a window and
``tail`` over its last ones: a model that ignores what is far away can keep its loss flat and
still have no use for a longer context, which the tail shows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from benchmarks.language.base import (
    TRAINING_METRICS,
    EvaluatedText,
    LanguageStudy,
    measured,
)
from benchmarks.language.differences import (
    BASELINE,
    STATES,
    WINDOW,
    all_at_once,
    differences,
    from_baseline,
)
from benchmarks.published.compare import Ours
from benchmarks.study import curves_of
from orbits.runs.at_once import Compared
from orbits.runs.deferred import deferred
from orbits.runs.figure import figure_path
from orbits.runs.naming import display
from orbits.runs.page import Picture
from orbits.runs.plots import curves
from orbits.runs.result import Quantity, Result, grouped
from orbits.runs.settings import check_not_empty
from orbits.runs.table import Table, by_variant, seed_table
from orbits.runs.verdict import beside, shown

Curve = Mapping[float, Sequence[float]]
"""Values of a variant, one per seed, by place."""
MULTIPLES = (1, 2, 4, 8, 16)
TITLES = {
    "loss": "Loss, mean over the window, nats per token",
    "rise": "Rise of the loss over that at the training length, nats per token",
    "ppl": "Perplexity, over the window",
    "tail": "Loss of the window's last tokens, nats per token",
    "tail_rise": "Rise of the last tokens' loss, nats per token",
}
"""Titles of tables by metric."""
MANY_POWERS = 3
"""Powers of a variant above which its curves, beside another such one's, have their own figure."""


@dataclass(frozen=True)
class Extrapolation(EvaluatedText):
    """Settings of language models and of the lengths of their evaluation.

    Attributes:
        multiples: Lengths as multiples of the training length.
        tail: Last tokens of a window, over which the metric ``tail`` is the mean.
        eval_tokens: Tokens of held-out text, the same at every length: whole windows of the
            longest.
    """

    multiples: tuple[int, ...] = MULTIPLES
    tail: int = 32
    eval_tokens: int = 2**14

    def __post_init__(self) -> None:
        super().__post_init__()
        check_not_empty(self, "multiples")
        for multiple in self.multiples:
            if multiple not in MULTIPLES:
                raise ValueError(f"multiples must be among {MULTIPLES}, got {multiple}")
        object.__setattr__(self, "multiples", tuple(sorted(self.multiples)))
        if not self.checkpoints:
            self.check_lengths(self.seq_len)

    def check_lengths(self, context: int) -> None:
        """Refuse tails and texts that do not fit a training length."""
        if not 1 <= self.tail <= context:
            raise ValueError(f"tail must be in [1, {context}], got {self.tail}")
        longest = context * max(self.multiples)
        if self.eval_tokens < 2 * longest or self.eval_tokens % longest:
            # Whole windows of every length then begin and end at the same tokens.
            raise ValueError(
                f"eval_tokens must be a multiple of {longest}, the longest window, and at least "
                f"two of them, got {self.eval_tokens}"
            )


class ExtrapolationStudy(LanguageStudy):
    """Length extrapolation."""

    name = "extrapolation"
    version = 2
    about = "Does the loss of a language model stay flat beyond its training length?"
    Settings = Extrapolation
    metrics: ClassVar[Mapping[str, Quantity]] = {
        "loss": Quantity(
            "lower", "nats per token", "mean loss of all tokens of a window, at Nx the length"
        ),
        "ppl": Quantity("lower", "", "perplexity: the exponential of that loss"),
        "tail": Quantity("lower", "nats per token", "mean loss of a window's last tokens"),
        "rise": Quantity("lower", "nats per token", "loss at Nx the training length less at 1x"),
        "tail_rise": Quantity(
            "lower", "nats per token", "loss of the same last tokens at Nx less at 1x"
        ),
        **TRAINING_METRICS,
    }
    published: ClassVar[tuple[str, ...]] = ("extrapolation",)
    same_scale: ClassVar[tuple[str, ...]] = ("lssar_table_1",)
    ntk: ClassVar[tuple[bool, ...]] = (False, True)
    cells = deferred("benchmarks.language.extrapolation_cells:cells")

    def tables(self, results: Sequence[Result]) -> list[Table]:
        """Return losses, rises, perplexities and tails, with NTK off and on, and who differs."""
        tables = [
            seed_table(
                title,
                measured(results),
                ("variant", "ntk"),
                [f"{metric}@{multiple}x" for multiple in MULTIPLES],
            )
            for metric, title in TITLES.items()
        ]
        return [*tables, *(differences(results, state) for state in STATES)]

    def sentences(self, results: Sequence[Result]) -> list[str]:
        """Say whose loss differs from softmax's beyond the training length; NTK off."""
        found = measured(results, ntk=False)
        asked = [x for x in (8, *MULTIPLES[::-1]) if by_variant(found, f"loss@{x}x")]
        if not asked:
            return []
        metric = f"loss@{asked[0]}x"
        rows = by_variant(found, metric)
        if BASELINE not in rows:
            return []
        rise = by_variant(found, f"rise@{asked[0]}x").get(BASELINE, {})
        said = (
            f"At {asked[0]} times the training length the loss of {BASELINE} is "
            f"{shown(rows[BASELINE], '.2f')} nats a token"
        )
        said += f", {shown(rise, '.2f')} more than at 1x" if rise else ""
        if WINDOW in rows:
            said += "; within a window of its training length, which ignores what is far away, it "
            said += f"is {shown(rows[WINDOW], '.2f')}"
        elif asked[0] > 1:
            said += "; that of a model that ignores what is far away would stay flat"
        compared = beside(from_baseline(results, "off", metric), BASELINE, ".2f")
        if asked[0] == 1 and compared:  # the training length alone: no rise and no window
            return [f"{said}; {compared}."]
        return [f"{said}.", f"At {asked[0]} times: {compared}."] if compared else [f"{said}."]

    def all_at_once(self, results: Sequence[Result]) -> Compared:
        """Compare all variants at once, at the training length and beyond it."""
        return all_at_once(results)

    def ours(self, results: Sequence[Result], table: str) -> Ours:
        """Return losses with dynamic NTK off, as the paper's second version has it."""
        return super().ours(measured(results, ntk=False), table)

    def figures(self, results: Sequence[Result], out: Path) -> list[Picture]:
        """Draw loss against length, NTK off and on, in a figure for each variant of many powers."""
        pictures = []
        for state, ntk in STATES.items():
            series = curves_of(measured(results, ntk=ntk), "loss")
            for family, drawn in by_power(series).items():
                path = figure_path(out, f"loss_ntk_{state}_{family}")
                axes = "length of the window / training length", "loss, nats per token"
                powers = f", {display(family)} by its power" if family else ""
                title = f"Loss on windows longer than any of the training, dynamic NTK {state}"
                curves(drawn, path, *axes, title=f"{title}{powers}")
                caption = (
                    f"Loss against length, dynamic NTK {state}{powers}: means over seeds, bars "
                    "from the smallest to the largest."
                )
                pictures.append(Picture(caption, [path]))
        return pictures


def by_power(series: Mapping[str, Curve]) -> dict[str, dict[str, Curve]]:
    """Return the curves of each figure, by the variant whose powers it shows.

    Such a figure has the variants of few powers, too. Where no two variants have many, all curves
    are in one, under an empty name.
    """
    families = grouped(series, lambda label: label.partition(" p=")[0])
    many = [name for name, labels in families.items() if len(labels) > MANY_POWERS]
    if len(many) < 2:
        return {"": dict(series)} if series else {}
    others = [label for name, labels in families.items() if name not in many for label in labels]
    return {name: {x: series[x] for x in (*others, *families[name])} for name in many}


STUDY = ExtrapolationStudy()
