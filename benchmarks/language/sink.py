"""Attention sinks of trained language models.

Lazy Attention, Table 2 (loss, density, sink of the offset forms), Tables 4 to 7 (norm and
variance of queries, keys, values and hidden states by position, on a story and on a repeated
token) and Figure 2a (a fixed token at one place of every training window). A sink is judged
beside what uniform attention has: at short lengths the first key gets much by arithmetic alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean
from typing import ClassVar

from benchmarks.language.base import (
    TRAINING_METRICS,
    EvaluatedText,
    LanguageStudy,
    measured,
)
from benchmarks.language.differences import BASELINE, trained_apart
from benchmarks.published import tables as published
from benchmarks.published.compare import Ours
from orbits.runs.at_once import Compared, in_each
from orbits.runs.deferred import deferred
from orbits.runs.page import Picture
from orbits.runs.plots import bars
from orbits.runs.result import Quantity, Result
from orbits.runs.settings import check_at_least
from orbits.runs.statistics import paired
from orbits.runs.table import Table, Value, by_variant, number, seed_table
from orbits.runs.verdict import against, beside, shown

TEXTS = ("natural", "repeated", "story")
"""Held-out windows; a window of one token, its first one, again and again; the papers' sentence."""
SHARE = (0, 100)
"""Bounds of a share of weights, in %."""
KINDS = ("q", "k", "v", "hidden")
FIRST = tuple(f"{statistic}_{kind}" for statistic in ("norm", "var") for kind in KINDS)
"""Metrics by position, shown at the first position divided by the mean of the others."""
NORMS = {"norm_v": "values", "norm_hidden": "hidden states"}
"""Statistics that are drawn, in words."""
FIRST_TITLE = "The first position by the mean of the others"
FIRST_ABOUT = (
    "Norm and variance of queries, keys, values and hidden states; means over layers, heads and "
    "windows, then over seeds with a 95% interval. The last rows are computed from Lazy Attention, "
    "Tables 4 to 7, of models of billions of weights."
)
PAPER_MODELS = {
    ("Qwen3-4B", "story"): ("lazy_table_4a", "lazy_table_5a"),
    ("Qwen3-4B", "repeated"): ("lazy_table_4b", "lazy_table_5b"),
    ("BLOOM", "story"): ("lazy_table_6a", "lazy_table_7a"),
    ("BLOOM", "repeated"): ("lazy_table_6b", "lazy_table_7b"),
}
"""Tables of these statistics by position, by model and text."""


@dataclass(frozen=True)
class Sinks(EvaluatedText):
    """Settings of language models and of the windows that measure their attention.

    Attributes:
        n_windows: Held-out windows.
        mask_at: Places of a fixed token in every training window, from 0: a further training of
            ``mask_attention`` for each.
        mask_attention: The variant of these trainings.
    """

    n_windows: int = 256
    mask_at: tuple[int, ...] = (0, 1, 4, 16, 48)
    mask_attention: str = "softmax"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_at_least(self, {"n_windows": 1, "mask_at": 0})
        if self.mask_at and self.shards is not None:
            raise ValueError(
                f"with shards, mask_at must be empty (--mask-at ''): got {self.mask_at}"
            )
        for place in self.mask_at:
            if not 0 <= place < self.seq_len:
                raise ValueError(f"mask_at must be in [0, {self.seq_len}), got {place}")


class SinkStudy(LanguageStudy):
    """Attention sinks."""

    name = "sink"
    version = 5
    about = "Does attention gather on the first token, and does an elastic softmax prevent it?"
    Settings = Sinks
    metrics: ClassVar[Mapping[str, Quantity]] = {
        "loss@1x": Quantity("lower", "nats per token", "loss at the training length"),
        "sink": Quantity("lower", "%", "mean weight on the first key", bounds=SHARE),
        "sink_head": Quantity(
            "lower", "%", "the same of the head that has most of it", bounds=SHARE
        ),
        "uniform": Quantity("none", "%", "the same of uniform attention"),
        "density": Quantity("lower", "%", "mean mass on the other keys", bounds=SHARE),
        "missing": Quantity(
            "none", "%", "mass that rows lack: 100 less sink and density", bounds=SHARE
        ),
        "zeros": Quantity(
            "none", "%", "share of visible keys whose weight is exactly 0", bounds=SHARE
        ),
        "entropy": Quantity("none", "nats", "mean entropy of a row"),
        "received": Quantity("none", "%", "mean weight on the fixed token, of the rows after it"),
        "uniform_received": Quantity("none", "%", "the same of uniform attention"),
        **{
            name: Quantity("none", "", f"{name} at the first position by the mean of the others")
            for name in FIRST
        },
        **TRAINING_METRICS,
    }
    published: ClassVar[tuple[str, ...]] = ("offsets",)
    training_only: ClassVar = LanguageStudy.training_only | {"mask_at", "mask_attention"}
    cells = deferred("benchmarks.language.sink_cells:cells")

    def tables(self, results: Sequence[Result]) -> list[Table]:
        """Return one table per text, one of the first position and one of the fixed token's."""
        shares = [name for name in self.metrics if name not in FIRST]
        tables = [
            self.seed_table(f"On {text} text", _of(results, text), ("variant",), shares)
            for text in TEXTS
        ]
        whole = measured(results, mask_at=None)
        if whole:
            first = seed_table(FIRST_TITLE, whole, ("variant", "text"), FIRST, FIRST_ABOUT)
            tables.append(_beside_papers(first))
        masked = [x for x in measured(results) if x.case.get("mask_at") is not None]
        compared = {x.case.variant for x in masked}
        plain = [x for x in _of(results, "natural") if x.case.variant in compared]
        columns = ("received", "uniform_received", "sink", "uniform", "loss@1x", "var_v")
        title = "A fixed token at one place of every window, or none"
        token = seed_table(title, [*plain, *masked], ("variant", "mask_at"), columns)
        return [*tables, token]

    def sentences(self, results: Sequence[Result]) -> list[str]:
        """Say whether softmax gathers on the first token, and which variants differ."""
        chosen = _of(results, "natural")
        rows = by_variant(chosen, "sink")
        if BASELINE not in rows:
            return []
        uniform = chosen[0].value("uniform")
        assert uniform is not None
        gathers = paired(rows[BASELINE], dict.fromkeys(rows[BASELINE], uniform))
        if gathers is None or not gathers.differs:
            what = "no sink is shown"
        else:
            what = "a sink" if gathers.difference.value > 0 else "no sink, and nothing to prevent"
        heads = by_variant(chosen, "sink_head")  # not in reports of version 4
        most = f" ({fmean(heads[BASELINE].values()):.2f}% in one head)" if BASELINE in heads else ""
        weight = shown(rows[BASELINE], ".2f", "%", self.metrics["sink"].bounds)
        said = (
            f"On natural text {BASELINE} puts {weight} of its weight on the first token{most}, "
            f"and uniform attention {uniform:.2f}%: {what}"
        )
        compared = beside(against(rows, BASELINE), BASELINE, ".1f", " points")
        return [f"{said}; {compared}." if compared else f"{said}."]

    def all_at_once(self, results: Sequence[Result]) -> Compared:
        """Compare the weight that variants put on the first token."""
        rows = trained_apart(_of(results, "natural"), "sink")
        return in_each({"weight on the first token, natural text": rows})

    def ours(self, results: Sequence[Result], table: str) -> Ours:
        """Return the measurements on natural text."""
        return super().ours(_of(results, "natural"), table)

    def figures(self, results: Sequence[Result], out: Path) -> list[Picture]:
        """Draw every model's sink beside uniform attention's, and norms at the first position."""
        chosen = _of(results, "natural")
        if not chosen:
            return []
        uniform, path = chosen[0].value("uniform"), out / "sink.png"
        title = "Attention on the first token, beside that of uniform attention"
        bars(
            by_variant(chosen, "sink"),
            path,
            "weight on the first key, %",
            uniform,
            "uniform",
            title=title,
        )
        caption = "Mean weight on the first key on held-out text, beside that of uniform attention."
        pictures = [Picture(caption, [path])]
        if story := _of(results, "story"):
            norms = [_first(story, name, out / f"first_{name}.png") for name in NORMS]
            caption = (
                "Norms at the first position of the papers' sentence by the mean of the other "
                "positions: means over layers, a dot per seed."
            )
            pictures.append(Picture(caption, norms))
        return pictures


def _of(results: Sequence[Result], text: str) -> list[Result]:
    """Return the measurements on one text of models without a fixed token."""
    return measured(results, text=text, mask_at=None)


def _first(results: Sequence[Result], name: str, path: Path) -> Path:
    """Draw every model's norm at the first position by that at the others."""
    label = f"norm of {NORMS[name]}, first position / mean of the others"
    title = f"Does the first token stand out by its {NORMS[name]}?"
    return bars(by_variant(results, name), path, label, 1.0, "like the others", title=title)


def _beside_papers(ours: Table) -> Table:
    """Return a table of first positions with those of the papers' models below."""
    rows = list(ours.rows)
    for (model, text), names in PAPER_MODELS.items():
        values = {}
        for table in map(published.get, names):
            for metric in table.metrics:
                first, *others = (float(row.values[metric.name]) for row in table.rows)
                values[metric.name.replace("@", "_")] = first / fmean(others)
        labels = [Value(word, kind="name") for word in (f"{model} (paper)", text)]
        rows.append([*labels, *(number(values[name], ".3f") for name in FIRST)])
    return replace(ours, rows=rows)


STUDY = SinkStudy()
