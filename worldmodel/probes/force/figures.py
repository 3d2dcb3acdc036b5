"""Figures of the force probes."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from matplotlib.lines import Line2D

from orbits import laws
from orbits.runs import artefact, folder
from orbits.runs.figure import TICKS, WIDTH, canvas, headline, label_level, panels, save_figure
from orbits.runs.naming import display
from orbits.runs.palette import COLOURS, CONTROL, PALE, SUN, TRUTH
from orbits.runs.result import Result, grouped
from orbits.solar_system import PLANETS
from worldmodel.probes.looks import Array, Looks, bars, rank, together, world_of

ARROWS_OF = "Forces on {} as fine-tuned heads predict them"
ARROWS = 36
"""Largest number of arrows on an orbit."""

ALL = "all"
"""Name of the setting in which all planets are taken together."""
LEAK_COLOURS = {0: COLOURS[0], 2: COLOURS[1], None: CONTROL}
LEAKS = {
    0: "no label of a test sequence in the training set",
    2: "two labels of each test sequence in the training set",
    None: "controls",
}
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
        title: Name of the model, or of the truth.
        colour: Colour of the arrows.
        kept: ``position`` in AU [8, T, 2], and the predicted rows, ``asked``, [8, T].
        vectors: Forces in the scale of training, [8, T, 2].
    """

    title: str
    colour: str
    kept: dict[str, Array]
    vectors: Array


def kept_vectors(results: Sequence[Result], out: Path) -> list[Column]:
    """Return the columns of the figures of forces: the truth, then the models."""
    looks = Looks(results)
    columns: list[Column] = []
    for result in looks.first_of_each(results, "vectors"):
        if (file := folder.file(out, result, "vectors")) is None:
            continue
        arrays, _ = artefact.load_arrays(file)
        if not columns:
            columns.append(
                Column(f"true force, {world_of(results)}", TRUTH, arrays, arrays["scaled"])
            )
        name, colour = display(looks.name(result)), looks.colour(result)
        columns.append(Column(name, colour, arrays, arrays["answer"]))
        if "untrained" in arrays:  # not in files of earlier versions
            title = f"{display(looks.model(result))}, random weights"
            columns.append(Column(title, CONTROL, arrays, arrays["untrained"]))
    return columns


def vectors_on_orbits(
    columns: Sequence[Column], planets: Sequence[str], size: float, path: Path
) -> Path:
    """Draw forces along orbits: a row per planet, a column per model, panels of some inches."""
    shape = {"nrows": len(planets), "ncols": len(columns), "squeeze": False}
    across = min(size, 10 / len(columns))
    width, height = across * len(columns), 0.85 * across * len(planets) + 0.7
    with canvas(width, height, **shape) as (figure, axes):
        headline(figure, ARROWS_OF.format(" and ".join(planets) if len(planets) < 3 else "planets"))
        for row, planet in zip(axes, planets, strict=True):
            number = PLANETS.index(planet)
            for axis, (title, colour, arrays, vectors) in zip(row, columns, strict=True):
                position = arrays["position"][number]
                there = np.flatnonzero(arrays["asked"][number])
                some = there[np.unique(np.linspace(0, len(there) - 1, ARROWS).astype(int))]
                span = np.nanmax(np.abs(position))
                axis.plot(*position.T, ".", color=PALE, ms=2)
                axis.plot(0, 0, "o", color=SUN, ms=6)
                axis.quiver(
                    *position[some].T,
                    *(0.55 * span * vectors[number, some]).T,
                    color=colour,
                    angles="xy",
                    scale_units="xy",
                    scale=1,
                    width=0.008,
                )
                ends = (-1.4 * span, 1.4 * span)
                axis.set(xlim=ends, ylim=ends, aspect="equal")
                axis.locator_params(nbins=TICKS)
                if planet == planets[0]:
                    axis.set_title(textwrap.fill(title, int(11 * across)), fontsize=8)
            row[0].set_ylabel(f"{planet} (AU)")
        return save_figure(figure, path)


def angles(results: Sequence[Result], path: Path) -> Path:
    """Draw the angle to the Sun: a row per model and control, single planets as small dots."""
    shown = [result for result in results if result.case.variant != "towards the Sun"]
    looks = Looks(shown)
    rows = grouped(sorted(shown, key=rank), looks.name)
    with canvas(WIDTH, 1.5 + 0.36 * len(rows)) as (figure, axis):
        headline(figure, "How far do fine-tuned force arrows miss the direction to the Sun?")
        for place, mine in enumerate(rows.values()):
            look = {**looks.style(mine[0]), "linestyle": "none"}
            of_planet = grouped(mine, lambda result: result.case.setting["planet"])
            for planet, each in of_planet.items():
                span = np.array([together(each, "angle_deg")])
                if planet == ALL:
                    axis.errorbar(span[:, 0], place, xerr=bars(span), ms=7, **look)
                else:
                    axis.plot(span[:, 0], place, "o", color=look["color"], ms=3, alpha=0.45)
        label_level(axis, 90, "90°: any direction")
        axis.set_yticks(range(len(rows)), list(map(display, rows)))
        axis.set_ylim(len(rows) - 0.5, -0.5)
        axis.set_xlim(0, min(180, axis.get_xlim()[1]))
        axis.tick_params(axis="y", length=0)
        axis.grid(axis="x")
        axis.set_xlabel("angle to the Sun in degrees\n(large: all planets; small: each planet)")
        return save_figure(figure, path)


def inference(results: Sequence[Result], path: Path) -> Path:
    """Draw R2 and exponents of all models and controls, at each kind of row, with each leak."""
    looks = Looks(results)
    of_each = [looks.name(result) + _leak(result) for result in results]
    names = list(dict.fromkeys(map(display, of_each)))[::-1]
    exponents = laws.get(str(results[0].case.law)).exponents or {}
    with canvas(8.2, 1.9 + 0.3 * len(names), ncols=4, sharey=True) as (figure, axes):
        headline(figure, "What leaked labels do to the law that is read out")
        for axis, (metric, title) in zip(axes, PANELS.items(), strict=True):
            truth = exponents.get(metric.removeprefix("exponent_"))
            if truth is not None:
                axis.axvline(truth, color=TRUTH, lw=1, ls=":")
            for result, name in zip(results, of_each, strict=True):
                if metric not in result.metrics:
                    continue
                rows, leak = result.case.setting["rows"], result.case.setting.get("leak")
                middle, low, high = together([result], metric)
                height = names.index(display(name)) + 0.22 * (1 - list(ROW_MARKERS).index(rows))
                axis.plot([low, high], [height, height], color=LEAK_COLOURS[leak], lw=1.6)
                axis.plot(middle, height, ROW_MARKERS[rows], color=LEAK_COLOURS[leak], ms=5)
            axis.set_title(title)
            axis.grid(axis="x")
        axes[0].set_xlim(left=max(axes[0].get_xlim()[0], -1))  # below, it is wrong by any measure
        axes[0].set_yticks(range(len(names)), names, fontsize=9)
        handles = [
            Line2D([], [], color=LEAK_COLOURS[None], marker=marker, ls="", label=rows)
            for rows, marker in ROW_MARKERS.items()
        ]
        told = {x.case.setting.get("leak") for x in results}
        handles += [
            Line2D([], [], color=colour, lw=2, label=LEAKS[leak])
            for leak, colour in LEAK_COLOURS.items()
            if leak in told
        ]
        figure.legend(handles=handles, loc="outside lower center", ncols=2)
        return save_figure(figure, path)


def magnitudes(results: Sequence[Result], out: Path, path: Path) -> Path | None:
    """Draw predicted against true magnitudes of prediction files, a panel each."""
    looks = Looks(results)
    files = [
        (result, file) for result in results if (file := folder.file(out, result, "predictions"))
    ]
    if not files:
        return None
    with panels(len(files), 4, 2.3, 2.5, sharex=True, sharey=True) as (figure, axes):
        for axis, (result, file) in zip(axes, files, strict=True):
            columns, _ = artefact.load_arrays(file)
            true, predicted = columns["force"], columns["force_predicted"]
            some = np.random.default_rng(0).permutation(np.flatnonzero(predicted > 0))[:3000]
            axis.loglog(
                true[some], predicted[some], ".", ms=2, alpha=0.4, color=COLOURS[0], rasterized=True
            )
            axis.loglog(ends := [true.min(), true.max()], ends, "-", color=TRUTH, lw=0.8)
            r2 = result.value("r2_log")  # None where no prediction is positive
            title = f"{display(looks.name(result))}, R² {'-' if r2 is None else f'{r2:.3f}'}"
            axis.set_title(textwrap.fill(title, 30), fontsize=8)
        figure.supxlabel("true F (solar mass AU / year²)", fontsize=9)
        figure.supylabel("predicted F", fontsize=9)
        return save_figure(figure, path)


def _leak(result: Result) -> str:
    leak = result.case.setting.get("leak")
    return "" if leak is None else ", labels leak" if leak else ", no leak"
