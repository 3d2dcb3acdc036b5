"""Figures of the force probes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib.pyplot as plt
import numpy as np
import numpy.typing as npt
from matplotlib.figure import Figure

from orbits import artefacts, laws
from orbits.solar_system import PLANETS
from worldmodel.probes._style import COLOURS, NO_MODEL, SUN, TRUTH

Line = Mapping[str, Any]
Array = npt.NDArray[np.float64]

ARROWS = 36
"""At most so many are drawn on an orbit."""

LEAK_COLOURS = {0: COLOURS[0], 2: COLOURS[1], None: COLOURS[-1]}
ROW_MARKERS = {"unlabelled": "o", "leaked labels": "x", "fresh sequences": "s"}
PANELS = {
    "r2_log": "R² of log F",
    "exponent_m1": "exponent of m1",
    "exponent_m2": "exponent of m2",
    "exponent_r": "exponent of r",
}


class Column(NamedTuple):
    """One column of the figures of forces.

    Attributes:
        title: Who answers.
        colour: Of the arrows.
        kept: ``position`` in AU [8, T, 2], and the rows that were ``asked``, [8, T].
        vectors: Forces in the scale of training, [8, T, 2].
    """

    title: str
    colour: str
    kept: dict[str, Array]
    vectors: Array


def kept_vectors(lines: Sequence[Line], out: Path) -> list[Column]:
    """Return the columns of the figures of forces: of each world the truth, then its models."""
    first: dict[tuple[str, ...], Line] = {}
    for line in lines:
        if line["files"]:
            row = line["row"]
            first.setdefault((row["protocol"], row["law"], row["model"], row["arm"]), line)
    columns: list[Column] = []
    worlds: list[tuple[str, ...]] = []
    for (*world, model, arm), line in first.items():
        kept, _ = artefacts.load_arrays(out / line["files"]["vectors"])
        if tuple(world) not in worlds:
            worlds.append(tuple(world))
            columns.append(Column(f"true, {world[0]}", TRUTH, kept, kept["scaled"]))
        colour = COLOURS[(len(columns) - len(worlds)) % len(COLOURS)]
        columns.append(Column(f"{model}, {arm}", colour, kept, kept["answer"]))
    return columns


def vectors_on_orbits(columns: Sequence[Column], planets: Sequence[str], size: float) -> Figure:
    """Draw forces along orbits: a row per planet, a column per answerer, panels of some inches."""
    figure, axes = plt.subplots(
        len(planets),
        len(columns),
        figsize=(size * len(columns), 0.85 * size * len(planets) + 0.5),
        squeeze=False,
        layout="constrained",
    )
    for row, planet in zip(axes, planets, strict=True):
        number = PLANETS.index(planet)
        for axis, (title, colour, kept, vectors) in zip(row, columns, strict=True):
            position, asked = kept["position"][number], np.flatnonzero(kept["asked"][number])
            asked = asked[np.unique(np.linspace(0, len(asked) - 1, ARROWS).astype(int))]
            span = np.nanmax(np.abs(position))
            axis.plot(*position.T, ".", color="#aaaaaa", ms=2)
            axis.plot(0, 0, "o", color=SUN, ms=6)
            axis.quiver(
                *position[asked].T,
                *(0.55 * span * vectors[number, asked]).T,
                color=colour,
                angles="xy",
                scale_units="xy",
                scale=1,
                width=0.008,
            )
            axis.set(xlim=(-1.4 * span, 1.4 * span), ylim=(-1.4 * span, 1.4 * span), aspect="equal")
            axis.tick_params(labelsize=7)
            if planet == planets[0]:
                axis.set_title(title, fontsize=9)
        row[0].set_ylabel(f"{planet} (AU)", fontsize=9)
    return figure


def angles(lines: Sequence[Line]) -> Figure:
    """Draw the angle to the Sun by planet; a model and its untrained twin have one colour."""
    shown = [line for line in lines if line["row"]["model"] != "towards the Sun"]
    series: dict[str, dict[str, list[Any]]] = {}
    colours: dict[str, str] = {}
    for line in shown:
        by_planet = series.setdefault(_who(line), {})
        by_planet.setdefault(line["setting"]["planet"], []).append(line["metrics"]["angle_deg"])
        colours.setdefault(line["row"]["model"], COLOURS[len(colours) % len(COLOURS)])
    models = {_who(line): line["row"]["model"] for line in shown}
    figure, axis = plt.subplots(figsize=(9.2, 4), layout="constrained")
    for number, (who, by_planet) in enumerate(series.items()):
        shift = 0.7 * (number + 0.5) / len(series) - 0.35
        for place, values in enumerate(by_planet.values()):
            spans = np.array([v if isinstance(v, list) else [v, v, v] for v in values])
            middle, low, high = spans.T
            axis.errorbar(
                np.full(len(spans), place + shift),
                middle,
                yerr=[middle - low, high - middle],
                fmt="D",
                mfc="white" if who.endswith("untrained") else None,
                color=colours[models[who]],
                ms=5,
                capsize=2,
                label=who if place == 0 else None,
            )
    axis.axhline(90, color="#999999", lw=0.8, ls=":")
    axis.set_xticks(range(len(PLANETS) + 1), [*PLANETS, "all"])
    axis.set_ylabel("angle to the Sun (degrees)")
    axis.set_ylim(0, min(180, axis.get_ylim()[1]))
    axis.legend(fontsize=8, ncols=2)
    axis.spines[["top", "right"]].set_visible(False)
    return figure


def inference(lines: Sequence[Line]) -> Figure:
    """Draw R2 and exponents of everyone, at each kind of row and with each leak."""
    whose = [_with_leak(line) for line in lines]
    names = list(dict.fromkeys(whose))[::-1]
    figure, axes = plt.subplots(
        1, 4, figsize=(11.5, 1.6 + 0.34 * len(names)), sharey=True, layout="constrained"
    )
    exponents = laws.get(lines[0]["row"]["law"]).exponents or {}
    for axis, (metric, title) in zip(axes, PANELS.items(), strict=True):
        truth = exponents.get(metric.removeprefix("exponent_"))
        if truth is not None:
            axis.axvline(truth, color=TRUTH, lw=1, ls=":")
        for line, name in zip(lines, whose, strict=True):
            rows, leak = line["setting"]["rows"], line["setting"].get("leak")
            middle, low, high = line["metrics"][metric]
            height = names.index(name) + 0.22 * (1 - list(ROW_MARKERS).index(rows))
            axis.plot([low, high], [height, height], color=LEAK_COLOURS[leak], lw=1.6)
            axis.plot(middle, height, ROW_MARKERS[rows], color=LEAK_COLOURS[leak], ms=5)
        axis.set_title(title, fontsize=10)
        axis.grid(axis="x", alpha=0.3)
        axis.spines[["top", "right"]].set_visible(False)
        axis.tick_params(labelsize=8)
    axes[0].set_xlim(left=max(axes[0].get_xlim()[0], -1))  # below, it is wrong by any measure
    axes[0].set_yticks(range(len(names)), names, fontsize=9)
    handles = [
        plt.Line2D([], [], color=LEAK_COLOURS[None], marker=marker, ls="", label=rows)
        for rows, marker in ROW_MARKERS.items()
    ]
    figure.legend(handles=handles, loc="outside lower center", ncols=3, fontsize=9, frameon=False)
    return figure


def magnitudes(lines: Sequence[Line], out: Path) -> Figure:
    """Draw predicted against true magnitudes of prediction files, a panel each."""
    width = min(4, len(lines))
    height = -(-len(lines) // width)
    figure, axes = plt.subplots(
        height,
        width,
        figsize=(3.1 * width, 3.2 * height),
        squeeze=False,
        sharex=True,
        sharey=True,
        layout="constrained",
    )
    for axis in axes.flat[len(lines) :]:
        axis.set_visible(False)
    for axis, line in zip(axes.flat, lines, strict=False):
        kept, _ = artefacts.load_arrays(out / line["files"]["predictions"])
        true, predicted = kept["force"], kept["force_predicted"]
        shown = np.random.default_rng(0).permutation(np.flatnonzero(predicted > 0))[:3000]
        axis.loglog(true[shown], predicted[shown], ".", ms=2, alpha=0.4, color=COLOURS[0])
        axis.loglog(ends := [true.min(), true.max()], ends, "-", color=TRUTH, lw=0.8)
        axis.set_title(f"{_who(line)}, R² {line['metrics']['r2_log'][0]:.3f}", fontsize=9)
        axis.tick_params(labelsize=7)
    figure.supxlabel("true F (solar mass AU / year²)", fontsize=9)
    figure.supylabel("predicted F", fontsize=9)
    return figure


def _with_leak(line: Line) -> str:
    leak = line["setting"].get("leak")
    return _who(line) if leak is None else f"{_who(line)}, {f'leak {leak}' if leak else 'no leak'}"


def _who(line: Line) -> str:
    row = line["row"]
    return row["model"] if row["arm"] in NO_MODEL else f"{row['model']}, {row['arm']}"
