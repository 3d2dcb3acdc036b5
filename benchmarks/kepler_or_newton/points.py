"""The points of the study: one training recipe each, a star around the first value of each knob."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from benchmarks.kepler_or_newton.kepler_or_newton import KeplerOrNewton
    from orbits.runs.result import Case

ALL = 0
"""The window that leaves out no row."""
TRAINED, RANDOM = "world model", "random weights"
"""Arms."""


@dataclass(frozen=True)
class Point:
    """How one world model is trained.

    Attributes:
        attention: The label of its attention.
        predicts: Its head (:mod:`worldmodel.models.next_point`).
        input: Its embedding: exact ``coordinates``, or ``bin_centres``.
        noise: Standard deviation in AU of the noise on its context.
        window: Rows that each block attends to, beside the time step; 0 for all.
    """

    attention: str
    predicts: str
    input: str
    noise: float
    window: int

    @classmethod
    def of(cls, case: Case) -> Point:
        """Return the point of a result."""
        setting = {name: case.get(name) for name in ("predicts", "input", "noise", "window")}
        return cls(case.variant, **setting)

    @property
    def setting(self) -> dict[str, Any]:
        """What tells it apart beside its attention, as plain data."""
        plain = dataclasses.asdict(self)
        return {name: value for name, value in plain.items() if name != "attention"}

    @property
    def name(self) -> str:
        """It in words."""
        head = self.predicts if self.input == "coordinates" else f"{self.predicts}, input in bins"
        noise = f"noise {self.noise:g} AU" if self.noise else "no noise"
        window = f"window {self.window}" if self.window else "all rows"
        return f"{self.attention}, {head}, {noise}, {window}"


def steps_seen(window: int, n_layer: int, n_points: int) -> float:
    """Return how many time steps of both bodies a model with a window sees."""
    rows = 1 + n_layer * (window - 1) if window else n_points
    return min(rows, n_points) / 2


def star(settings: KeplerOrNewton, labels: Mapping[str, str], quadratic: set[str]) -> list[Point]:
    """Return the points: the centre, each knob by itself, attentions with the least window.

    The last is the flagship's own recipe, bins in and out without noise.

    Args:
        settings: The first value of each knob is the centre's.
        labels: Labels of attentions, by their names in the settings.
        quadratic: Names of attentions that can have a window.
    """
    first = settings.attention[0]
    centre = Point(
        labels[first], settings.predicts[0], "coordinates", settings.noise[0], settings.windows[0]
    )
    change = dataclasses.replace
    shortest = min((window for window in settings.windows if window), default=centre.window)
    found = [
        centre,
        *(change(centre, predicts=predicts) for predicts in settings.predicts),
        *(change(centre, noise=noise) for noise in settings.noise),
        *(change(centre, window=window) for window in settings.windows),
        *(change(centre, attention=labels[name]) for name in settings.attention),
        *(
            change(centre, attention=labels[name], window=shortest)
            for name in settings.attention
            if name in quadratic
        ),
        Point(labels[first], "bins", "bin_centres", 0.0, ALL),
    ]
    return list(dict.fromkeys(found))
