"""A study for the tests of the frame: coins are tossed, and the share of heads is reported."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

from orbits.runs.cell import Cell, Outcome
from orbits.runs.result import Case, Metric, Quantity
from orbits.runs.study import Study

if TYPE_CHECKING:
    import wave  # noqa: F401  # stands for what takes long to import


@dataclass(frozen=True)
class Throw:
    """How coins are thrown.

    Attributes:
        height: Metres.
    """

    height: float = 1.0


@dataclass(frozen=True)
class Settings:
    """Coins.

    Attributes:
        coins: Names, a row each.
        seeds: Seeds.
        tosses: Tosses per coin; None for ten.
        fair: Whether heads and tails are alike.
        throw: How they are thrown.
        watcher: Who looks on.
    """

    coins: tuple[str, ...] = ("penny",)
    seeds: tuple[int, ...] = (0, 1, 2)
    tosses: int | None = 20
    fair: bool = True
    throw: Throw = field(default_factory=Throw)
    watcher: str = "nobody"

    def __post_init__(self) -> None:
        if not self.coins:
            raise ValueError("coins must not be empty")
        if self.tosses is not None and self.tosses < 1:
            raise ValueError(f"tosses must be at least 1, got {self.tosses}")


def toss(seed: int, tosses: int, fair: bool) -> Outcome:
    """Toss a coin."""
    draw = random.Random(seed)
    heads = [draw.random() < (0.5 if fair else 0.9) for _ in range(tosses)]
    return Outcome(metrics={"heads": Metric.mean(heads), "heads@first": float(heads[0])})


class Tossing(Study):
    """Tosses."""

    name = "tossing"
    about = "Is a coin 100% fair?"
    Settings = Settings
    metrics: ClassVar = {"heads": Quantity("none", "share", "tosses that show heads")}
    undeciding = ("watcher",)

    def check_changes(self, settings, changes):
        if not settings.fair and "throw.height" in changes:
            raise ValueError("a false coin falls alike, so --throw.height changes nothing")

    def cells(self, settings):
        for coin in settings.coins:
            for seed in settings.seeds:
                arguments = {"seed": seed, "tosses": settings.tosses or 10, "fair": settings.fair}
                yield Cell(toss, Case(self.name, "toss", coin, seed=seed), arguments)

    def tables(self, results):
        from orbits.runs.table import seed_table

        return [seed_table("Heads", results, ("variant",), ("heads",))]

    def figures(self, results, out):
        from orbits.runs.page import Picture
        from orbits.runs.plots import bars
        from orbits.runs.table import by_variant

        values = by_variant(results, "heads")
        return [Picture("Heads.", [bars(values, out / "heads.png", "heads", 0.5)])]

    def sentences(self, results):
        return [f"{len(results)} series of tosses."]


STUDY = Tossing()
