"""How the figures of probes look: one palette, one size, one way to keep them."""

from __future__ import annotations

from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
import numpy.typing as npt
from matplotlib.figure import Figure

Array = npt.NDArray[np.float64]

COLOURS = ("#3b6ea5", "#c8553d", "#4f8f5b", "#8a5aa8", "#b08a2e", "#5c6670")
"""Of models, in the order of the checkpoints; told apart by the colour-blind."""
TRUTH, SUN = "#222222", "#d98e04"
DPI = 110
NO_MODEL = ("oracle", "ceiling", "control")
"""Arms whose lines no checkpoint answered."""


def bars(spans: Array) -> Array:
    """Return lengths of error bars, [2, n], for rows of value, low, high."""
    # Rounding may leave a value a hair outside its interval, which matplotlib refuses.
    return np.maximum([spans[:, 0] - spans[:, 1], spans[:, 2] - spans[:, 0]], 0.0)


def save(figure: Figure, path: Path) -> Path:
    """Write a figure, close it and return its path."""
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=DPI, facecolor="white")
    plt.close(figure)
    return path
