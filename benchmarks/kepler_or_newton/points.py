"""The points of the study: one training recipe each; one knob differs from the centre."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from benchmarks.kepler_or_newton.settings import KeplerOrNewton
    from orbits.runs.result import Case

FIELDS = ("predicts", "input", "noise", "window", "steps")
ALL = 0
"""The window that leaves no row out."""
PUBLISHED = {"predicts": "gaussian", "noise": 0.1}
"""The published recipe: least squares, and noise on the context."""
TRAINED, RANDOM = "world model", "random weights"
"""Arms."""


@dataclass(frozen=True)
class Point:
    """Choices with which one world model is trained.

    Attributes:
        attention: The label of its attention.
        predicts: Name of the head (:mod:`worldmodel.models.next_point`).
        input: Embedding: exact ``coordinates``, or ``bin_centres``.
        noise: Standard deviation in AU of the noise on its context.
        window: Rows that each block attends to, beside the time step; 0 for all.
        steps: Time steps of both bodies that all blocks together see.
    """

    attention: str
    predicts: str
    input: str
    noise: float
    window: int
    steps: float

    @classmethod
    def of(cls, case: Case) -> Point:
        """Return the point of a result."""
        setting = {name: case.get(name) for name in FIELDS}
        return cls(case.variant, **setting)

    @property
    def view(self) -> tuple[float, int]:
        """The noise in AU through which it sees its last rows, and their number."""
        return self.noise, round(2 * self.steps)  # a time step is a row of each body

    @property
    def setting(self) -> dict[str, Any]:
        """All fields but the attention, as plain data."""
        return {name: getattr(self, name) for name in FIELDS}

    @property
    def name(self) -> str:
        """Name in words."""
        head = self.predicts if self.input == "coordinates" else f"{self.predicts}, input in bins"
        noise = f"noise {self.noise:g} AU" if self.noise else "no noise"
        return f"{self.attention}, {head}, {noise}, {self.context}"

    @property
    def context(self) -> str:
        """Rows that the model sees, in words."""
        return f"window {self.window} ({self.steps:g} steps)" if self.window else "all rows"


def observer_name(noise: float, n_rows: int) -> str:
    """Return the name of an observer who holds the law and sees few rows through noise."""
    return f"Newton's orbits, {n_rows} rows seen through noise of {noise:g} AU"


def star(
    settings: KeplerOrNewton,
    labels: Mapping[str, str],
    windowed: set[str],
    steps: Callable[[int], float],
) -> list[Point]:
    """Return the points: the centre, each knob by itself, attentions with the least window.

    Then the published recipe with all rows and the least window, if its values are among those of
    the knobs, and last the flagship's own: bins in and out without noise.

    Args:
        settings: The first value of each knob is the centre's.
        labels: Labels of attentions, by their names in the settings.
        windowed: Names of attentions that have a window.
        steps: Returns the time steps that are seen through a window.
    """
    first, window = settings.attention[0], settings.windows[0]
    head, noise = settings.predicts[0], settings.noise[0]
    centre = Point(labels[first], head, "coordinates", noise, window, steps(window))

    def change(point: Point, **changes: Any) -> Point:
        changed = dataclasses.replace(point, **changes)
        return dataclasses.replace(changed, steps=steps(changed.window))

    shortest = min((window for window in settings.windows if window), default=centre.window)
    is_asked = PUBLISHED["predicts"] in settings.predicts and PUBLISHED["noise"] in settings.noise
    published = (centre.window, shortest) if is_asked else ()
    found = [
        centre,
        *(change(centre, predicts=predicts) for predicts in settings.predicts),
        *(change(centre, noise=noise) for noise in settings.noise),
        *(change(centre, window=window) for window in settings.windows),
        *(change(centre, attention=labels[name]) for name in settings.attention),
        *(
            change(centre, attention=labels[name], window=shortest)
            for name in settings.attention
            if name in windowed
        ),
        *(change(centre, **PUBLISHED, window=window) for window in published),
        Point(labels[first], "bins", "bin_centres", 0.0, ALL, steps(ALL)),
    ]
    return list(dict.fromkeys(found))
