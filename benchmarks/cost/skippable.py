"""Tiles of attention that a kernel could skip in trained models, and the error of doing so.

Chunk-skipping would leave out tiles of keys whose weights (r^p of a re-weighted variant) all lie
below a share of the row's largest. Before such an option is worth a kernel, trained checkpoints
must have such tiles, and do without them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from orbits.runs.deferred import deferred
from orbits.runs.executors import Execution
from orbits.runs.result import Quantity, Result
from orbits.runs.settings import check_at_least, check_not_empty
from orbits.runs.study import Study
from orbits.runs.table import Column, Table, Value, number


@dataclass(frozen=True)
class TileSettings:
    """Settings: checkpoints, text and thresholds.

    Attributes:
        checkpoints: Files of text models.
        length: Tokens of held-out text.
        text: Text file or folder; none for the standard library of Python.
        thresholds: Shares of the row's largest weight.
    """

    checkpoints: tuple[str, ...] = ()
    length: int = 1024
    text: str | None = None
    thresholds: tuple[float, ...] = (0.0, 2.0**-24, 2.0**-12, 2.0**-9)

    def __post_init__(self) -> None:
        check_not_empty(self, "thresholds")
        check_at_least(self, {"length": 1, "thresholds": 0})


class Skippable(Study):
    """Skippable tiles of attention."""

    name = "skippable"
    about = "How much attention of trained models could a kernel skip, and at what price?"
    Settings = TileSettings
    metrics: ClassVar = {
        "skippable": Quantity("higher", "share", "causal tiles without a weight above a threshold"),
        "error": Quantity("lower", "share", "RMS of the output's error without them, by its RMS"),
    }
    execution = Execution("here", workers=1)
    cells = deferred("benchmarks.cost.tiles:cells")

    def check(self, settings: TileSettings) -> None:
        """Refuse a run without checkpoints, and missing files."""
        if not settings.checkpoints:
            raise ValueError("no checkpoint is given; use --checkpoints A.ckpt,B.ckpt")
        for path in (*settings.checkpoints, *([settings.text] if settings.text else [])):
            if not Path(path).exists():
                raise FileNotFoundError(f"there is no {path}")

    def tables(self, results: Sequence[Result]) -> Sequence[Table]:
        """Return shares and errors of every block."""
        blocks = [result for result in results if result.ok]
        names = {name for result in blocks for name in result.metrics}
        at = sorted({name.partition("@")[2] for name in names}, key=float)
        keys = ("checkpoint", "variant", "block")
        kinds = {"skippable": ("share", ".3f"), "error": ("error", ".1e")}
        rows = [
            [
                *(Value(str(result.case.get(key)), kind="name") for key in keys),
                *(
                    number(result.value(f"{metric}@{threshold}"), form)
                    for metric, (_, form) in kinds.items()
                    for threshold in at
                ),
            ]
            for result in blocks
        ]
        columns = [
            Column(f"{name}, {threshold}", self.metrics[metric].about, leaves=place)
            for metric, (name, _) in kinds.items()
            for place, threshold in zip([*range(1, len(at)), 0], at, strict=True)
        ]
        caption = "Tiles below a share of the row's largest weight, and the output without them."
        return [Table("Tiles", [*map(Column, keys), *columns], rows, caption)]

    def sentences(self, results: Sequence[Result]) -> Sequence[str]:
        """Say which share of tiles could be skipped without an error, and with the largest one."""
        blocks = [result for result in results if result.ok]
        thresholds = {n.partition("@")[2] for x in blocks for n in x.metrics if "@" in n}
        if not thresholds:
            return []
        said = []
        for threshold in (min(thresholds, key=float), max(thresholds, key=float)):
            shares = [x.value(f"skippable@{threshold}") or 0.0 for x in blocks]
            errors = [x.value(f"error@{threshold}") or 0.0 for x in blocks]
            of = f"those whose weights are at most {threshold} of their row's largest"
            if float(threshold) == 0:
                of = "those whose weights are all 0"
            said.append(
                f"{min(shares):.1%} to {max(shares):.1%} of all tiles ({of}) at an error of up to "
                f"{max(errors):.1g}"
            )
        trained = len({x.case.get("checkpoint") for x in blocks})
        return [f"In {trained} trained models a kernel could skip {', and '.join(said)}."]


STUDY = Skippable()
