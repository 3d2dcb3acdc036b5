"""Figures of the force probes."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure

from orbits import artefacts, laws
from orbits.solar_system import PLANETS
from worldmodel.legend import legend
from worldmodel.palette import COLOURS, CONTROL, SUN, TRUTH
from worldmodel.probes._style import Array, Line, Looks, bars, once, world_of

ARROWS = 36
"""At most so many are drawn on an orbit."""

LEAK_COLOURS = {0: COLOURS[0], 2: COLOURS[1], None: CONTROL}
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
    """Return the columns of the figures of forces: the truth, then the models."""
    looks = Looks(lines)
    columns: list[Column] = []
    for line in looks.first_of_each(lines, "vectors"):
        kept, _ = artefacts.load_arrays(out / line["files"]["vectors"])
        if not columns:
            columns.append(Column(f"true, {world_of(lines)}", TRUTH, kept, kept["scaled"]))
        columns.append(Column(looks.who(line), looks.colour(line), kept, kept["answer"]))
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
                axis.set_title(textwrap.fill(title, int(13 * size)), fontsize=9)
        row[0].set_ylabel(f"{planet} (AU)", fontsize=9)
    return figure


def angles(lines: Sequence[Line]) -> Figure:
    """Draw the angle to the Sun by planet; a model and its untrained twin have one colour."""
    shown = [line for line in lines if line["row"]["model"] != "towards the Sun"]
    looks, places = Looks(shown), [*PLANETS, "all"]
    everyone = [looks.who(line) for line in shown]
    names = list(dict.fromkeys(everyone))
    figure, axis = plt.subplots(figsize=(9.2, 4.8), layout="constrained")
    for line, who, label in zip(shown, everyone, once(everyone), strict=True):
        shift = 0.7 * (names.index(who) + 0.5) / len(names) - 0.35
        value = line["metrics"]["angle_deg"]
        span = np.array([value if isinstance(value, list) else [value] * 3])
        axis.errorbar(
            [places.index(line["setting"]["planet"]) + shift],
            span[:, 0],
            yerr=bars(span),
            ms=5,
            capsize=2,
            label=label,
            **{**looks.style(line), "linestyle": "none"},
        )
    axis.axhline(90, color="#999999", lw=0.8, ls=":")
    axis.set_xticks(range(len(places)), places)
    axis.set_ylabel("angle to the Sun (degrees)")
    axis.set_ylim(0, min(180, axis.get_ylim()[1]))
    legend(figure, world_of(lines))
    axis.spines[["top", "right"]].set_visible(False)
    return figure


def inference(lines: Sequence[Line]) -> Figure:
    """Draw R2 and exponents of everyone, at each kind of row and with each leak."""
    looks = Looks(lines)
    whose = [looks.who(line) + _leak(line) for line in lines]
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
            if metric not in line["metrics"]:
                continue
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
    looks, width = Looks(lines), min(4, len(lines))
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
        r2 = line["metrics"].get("r2_log")  # none where no answer is positive
        title = f"{looks.who(line)}, R² {f'{r2[0]:.3f}' if r2 else '-'}"
        axis.set_title(textwrap.fill(title, 40), fontsize=9)
        axis.tick_params(labelsize=7)
    figure.supxlabel("true F (solar mass AU / year²)", fontsize=9)
    figure.supylabel("predicted F", fontsize=9)
    return figure


def _leak(line: Line) -> str:
    leak = line["setting"].get("leak")
    return "" if leak is None else f", leak {leak}" if leak else ", no leak"
