"""The figures: the matrix of worlds, a panel per attention, and prompts as models continue them."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from benchmarks.implied.scores import Place, Row, laws_of, models, one, places, rows, table_of
from orbits.runs import artefact, folder
from orbits.runs.figure import canvas, legend, save_figure
from orbits.runs.page import Picture
from orbits.runs.palette import TRUTH, look
from orbits.runs.result import Result
from orbits.runs.study import Study
from worldmodel.probes.implied.asked import in_words
from worldmodel.probes.implied.figures import Drawn, continued
from worldmodel.probes.implied.references import IN_BINS
from worldmodel.probes.looks import bars

CAPTION = (
    "Exponent of r along continued orbits by the law of the prompt, a colour for each world of the "
    "training: means over trainings with 95% intervals, or over sequences where there is one "
    "training. Dashed: a table of that world's training orbits. Black: the truth in bins. A "
    "horizontal line is one law for all prompts. On the right: orbits of the training's own law "
    "outside the training box. What lies beyond the panel is at its edge."
)
ACROSS = 4
HIGHEST, LOWEST = 1.0, -3.5
"""Exponents at which a panel ends."""


def figures(study: Study, results: Sequence[Result], out: Path) -> list[Picture]:
    """Draw the matrix, and the same prompts as one model of each world continues them."""
    found = rows(results)
    named = models(found)
    if not named:
        return []
    pictures = [Picture(CAPTION, [_matrix(named, found, out / "matrix.png")])]
    return pictures + continued(_drawn(named, out.parent), laws_of(found), out)


def _matrix(named: dict[str, list[Row]], found: Sequence[Row], path: Path) -> Path:
    prompts = laws_of(found)
    outer = [place for place in places(found) if place[1] is not None]
    worlds = list(dict.fromkeys(row.world for row in found))
    down, across = -(-len(named) // ACROSS), min(len(named), ACROSS)
    shape = {"nrows": down, "ncols": across, "squeeze": False, "sharey": True}
    with canvas(2.4 + 3.6 * across, 1.5 + 3.4 * down, **shape) as (figure, axes):
        for axis, mine in itertools.zip_longest(axes.flat, named.items()):
            if mine is None:
                axis.set_visible(False)
                continue
            name, models_of = mine
            truth = {"color": TRUTH, "ls": ":", "marker": ".", "label": "truth in bins"}
            _panel(axis, one(found, IN_BINS), prompts, outer, truth)
            for row in models_of:
                style = {**look(worlds.index(row.world)), "label": f"trained in {row.trained_in}"}
                own = f"table of the orbits of {row.trained_in}"
                table = {"color": style["color"], "ls": "--", "lw": 0.8, "label": own}
                _panel(axis, table_of(found, row.world), prompts, outer, table)
                _panel(axis, row, prompts, outer, style)
            axis.set_title(name)
            names = [in_words(law) for law in prompts]
            names += [f"{in_words(law)}, {shift}".replace("_", " ") for law, shift in outer]
            axis.set_xticks(range(len(names)), names, fontsize=8, rotation=30, ha="right")
            axis.axvline(len(prompts) - 0.5, color="#dddddd", lw=0.8)
            axis.set_ylim(LOWEST - 0.1, HIGHEST + 0.1)
        for axis in axes[:, 0]:
            axis.set_ylabel("exponent of r along the path")
        legend(figure)
        return save_figure(figure, path)


def _panel(
    axis: Axes,
    row: Row | None,
    prompts: Sequence[str],
    outer: Sequence[Place],
    style: Mapping[str, Any],
) -> None:
    """Draw one who continues orbits: a line over the prompts, then points outside the box."""
    if row is None:
        return
    inside: list[tuple[int, Place]] = [(at, (law, None)) for at, law in enumerate(prompts)]
    beyond = [(len(prompts) + number, place) for number, place in enumerate(outer)]
    apart = {"ls": "none", "marker": style.get("marker", "_"), "label": None}
    for group, own in ((inside, {}), (beyond, apart)):
        spans = [(at, span) for at, place in group if (span := row.interval(place))]
        if spans:
            values = np.clip([span for _, span in spans], LOWEST, HIGHEST)
            axis.errorbar(
                [at for at, _ in spans],
                values[:, 0],
                yerr=bars(values),
                elinewidth=1,
                **{**style, **own},
            )


def _drawn(named: dict[str, list[Row]], out: Path) -> dict[str, Drawn]:
    """Return the continuations of the first training in each world, of the first attention."""
    name, mine = next(iter(named.items()))
    drawn = {}
    for number, row in enumerate(mine):
        results = [x for each in row.found.values() for x in each if "orbits" in x.files]
        if results and (file := folder.file(out, results[0], "orbits")):
            arrays = artefact.load_arrays(file)[0]
            drawn[f"{name}, trained in {row.trained_in}"] = Drawn(
                str(row.world), arrays, look(number)
            )
    return drawn
