"""Pictures of a dataset: a few observed orbits and the distributions of a split."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.ticker import LogLocator, NullFormatter, StrMethodFormatter

from orbits import laws, motion
from orbits.dataset.read import OrbitDataset
from orbits.observation import DT_ROW, STAR
from orbits.runs.figure import WIDTH, canvas, headline, legend, save_figure
from orbits.runs.palette import COLOURS, TRUTH

_ROWS_SHOWN = 2**20
_MOST, _COLUMNS = 6, 3

Panel = tuple[npt.NDArray, str]
"""Values of a histogram and its scale: linear, log, or count for whole numbers."""


def plot_dataset(dataset: OrbitDataset, out: str | Path, n_orbits: int = 6) -> Path:
    """Draw at most six observed orbits above the distributions of the split; return the path.

    With labels these are distance, force, masses and, under Newton's law, the orbital elements;
    without, the number of planets, the time step and where bodies are seen.
    """
    drawn = min(n_orbits, len(dataset), _MOST)
    panels = _panels(dataset)
    down = [-(-number // _COLUMNS) for number in (drawn, len(panels))]
    shape = {"nrows": sum(down), "ncols": _COLUMNS, "squeeze": False}
    with canvas(WIDTH, 1.9 * sum(down) + 0.5, **shape) as (figure, axes):
        for axis in axes.flat:
            axis.set_visible(False)
        orbits, histograms = axes[: down[0]], axes[down[0] :]
        for k in range(drawn):
            _draw_orbit(orbits.flat[k], dataset, k)
        for axis, (label, panel) in zip(histograms.flat, panels.items(), strict=False):
            _draw_histogram(axis, label, *panel)
        for name, left in (("y (AU)", orbits[:, 0]), ("count", histograms[:, 0])):
            for axis in left:
                axis.set_ylabel(name)
        legend(figure)
        config = dataset.record["config"]
        headline(
            figure,
            f"{config['protocol']['name']}, {config['protocol']['law']}, {config['population']} "
            f"{dataset.split}: {len(dataset)} sequences",
        )
        return save_figure(figure, out)


def _draw_orbit(axis: Axes, dataset: OrbitDataset, index: int) -> None:
    axis.set_visible(True)
    sequence = dataset[index]
    points = dataset.layout.decode(sequence["tokens"][1:])
    body = sequence["body"][1:]
    # The star last: it lies on top, and planets take the colour cycle in their order.
    for number in (*range(1, body.max() + 1), STAR):
        star = number == STAR
        axis.plot(
            *points[body == number].T,
            ".-",
            lw=0.4,
            ms=5 if star else 2,
            color=TRUTH if star else None,
            label="star" if star else f"planet {number}" if body.max() > 1 else "planet",
        )
    axis.set_aspect("equal", adjustable="datalim")
    axis.set_title(f"orbit {index}, dt {sequence['dt']:.3g} yr", fontsize=8)
    axis.set_xlabel("x (AU)")


def _draw_histogram(axis: Axes, label: str, values: npt.NDArray, scale: str) -> None:
    axis.set_visible(True)
    if scale == "count":
        numbers, times = np.unique(values, return_counts=True)
        axis.bar(range(len(numbers)), times, color=COLOURS[0])
        names = [f"{number:.3g}" for number in numbers]
        slanted = 30 if max(map(len, names)) > 3 else 0
        axis.set_xticks(range(len(numbers)), names, rotation=slanted)
    else:
        low, high = np.percentile(values, [0.1, 99.9])
        if scale == "log":
            bins = np.geomspace(low, max(high, low * 1.01), 40)
            axis.set_xscale("log")
            axis.xaxis.set_minor_formatter(NullFormatter())
            if high < 100 * low:  # few powers of ten to label
                between = (2.0, 5.0) if high < 30 * low else (3.0,)  # as many as stand apart
                axis.xaxis.set_major_locator(LogLocator(subs=(1.0, *between)))
                axis.xaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
        else:
            bins = np.linspace(low, max(high, low + 1e-6), 40)
        axis.hist(values, bins=bins.tolist(), color=COLOURS[0])
    axis.set_xlabel(label.replace(" (", "\n("))  # a unit in a line of its own


def _panels(dataset: OrbitDataset) -> dict[str, Panel]:
    n_rows = len(dataset[0]["body"])
    batch = dataset.batch(np.arange(min(len(dataset), max(1, _ROWS_SHOWN // n_rows))))
    if "state" not in batch:
        seen = batch["body"] != DT_ROW
        x, y = dataset.layout.decode(batch["tokens"][seen]).T
        return {
            "planets": (batch["body"].max(axis=1), "count"),
            "time step (years)": (batch["dt"], "count"),
            "distance to origin (AU)": (np.hypot(x, y), "linear"),
        }
    planet = batch["body"] > STAR
    state, force = batch["state"][planet], batch["force"][planet]
    first = batch["state"][:, 1]
    panels = {
        "distance r (AU)": (np.hypot(state[:, 0], state[:, 1]), "log"),
        "force (solar mass AU / year²)": (np.hypot(force[:, 0], force[:, 1]), "log"),
        "planet mass m1 (solar masses)": (first[:, 4], "log"),
        "star mass m2 (solar masses)": (first[:, 5], "log"),
    }
    if dataset.record["config"]["protocol"]["law"] == motion.NEWTON:
        axis, eccentricity = _elements(first)
        panels["semi-major axis (AU)"] = axis, "log"
        panels["eccentricity"] = eccentricity, "linear"
    return panels


def _elements(state: npt.NDArray[np.float64]) -> tuple[npt.NDArray, npt.NDArray]:
    """Return semi-major axis (AU) and eccentricity of states [N, 6] under Newton's law.

    From energy (vis-viva) and angular momentum, which the published states keep although their
    radial velocity has the wrong sign.
    """
    x, y, vx, vy, m1, m2 = state.T
    mu = laws.get(motion.NEWTON).parameters["G"] * (m1 + m2)
    axis = 1 / (2 / np.hypot(x, y) - (vx**2 + vy**2) / mu)
    momentum = x * vy - y * vx
    return axis, np.sqrt(np.maximum(0, 1 - momentum**2 / (mu * axis)))
