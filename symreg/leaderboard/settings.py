"""Settings of a leaderboard.

Apart from the study: the types of settings are looked up with all that their module may import.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from symreg.measure import POINTS, search_config

BASELINE = "powerlaw"
"""The closed-form engine that every row has beside the search: a bound, never a discovery."""


@dataclass(frozen=True)
class LeaderboardSettings:
    """Settings of a leaderboard.

    Attributes:
        files: Prediction files: .npz, .csv or .parquet.
        law: The true law.
        engine: The symbolic search, ``auto`` or a name shown by ls.
        engine_args: Changes to its settings, such as '{"generations": 100}'.
        seeds: Number of searches per file; each draws its own points and seeds the engine.
        points: Points per search.
        rule: Rule that chooses a formula from a front; none for the engine's own.
    """

    files: tuple[str, ...] = ()
    law: str = "newton"
    engine: str = "auto"
    engine_args: dict[str, Any] = field(default_factory=dict)
    seeds: int = 10
    points: int = POINTS
    rule: str | None = None

    def __post_init__(self) -> None:
        if self.seeds < 1:
            raise ValueError(f"seeds must be at least 1, got {self.seeds}")

    def searches(self) -> list[dict[str, Any]]:
        """Return the data that determine a search, of the engine and the baseline beside it."""
        search = search_config(self.law, self.engine, self.engine_args, self.points, self.rule)
        if search["engine"] == BASELINE:
            return [search]
        return [search, search_config(self.law, BASELINE, {}, self.points, self.rule)]
