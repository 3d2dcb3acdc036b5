"""The figures: the matrix of worlds, panels per attention, and prompts as models continue them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from benchmarks.implied.scores import Place, Row, laws_of, models, one, places, rows, table_of
from orbits import laws
from orbits.runs import artefact, folder
from orbits.runs.figure import WIDTH, End, canvas, headline, label_ends, save_figure
from orbits.runs.naming import display
from orbits.runs.page import Picture
from orbits.runs.palette import CONTROL, TRUTH, looks
from orbits.runs.result import Result
from orbits.runs.study import Study
from worldmodel.controls.names import IN_BINS
from worldmodel.probes.implied.figures import Drawn, continued
from worldmodel.probes.implied.names import in_words
from worldmodel.probes.looks import bars

CAPTION = (
    "Exponent of r along continued orbits by the law of the prompt, a colour for each world of the "
    "training: means over trainings with 95% intervals, or over sequences where there is one "
    "training. Dashed: a table of that world's training orbits. Dotted: the truth in bins. A "
    "horizontal line is one law for all prompts. On the right: orbits of the training's own law "
    "outside the training box. What lies beyond the panel is at its edge."
)
TITLE = "By which power of r do models continue orbits? (flat: by one law, whatever the prompt)"
HIGHEST, LOWEST = 1.0, -3.5
"""Exponents at which a panel ends."""
TABLE_LOOK: Mapping[str, Any] = {"ls": "--", "lw": 0.9}
TRUTH_LOOK: Mapping[str, Any] = {"color": TRUTH, "ls": ":", "marker": "."}


def figures(study: Study, results: Sequence[Result], out: Path) -> list[Picture]:
    """Draw the matrix, and the same prompts as one model of each world continues them."""
    found = rows(results)
    named = models(found)
    if not named:
        return []
    pictures = [Picture(CAPTION, [_matrix(named, found, out / "matrix.png")])]
    return pictures + continued(_drawn(named, out.parent), laws_of(found), out)


def _matrix(named: dict[str, list[Row]], found: Sequence[Row], path: Path) -> Path:
    every = sorted(places(found), key=_exponent)  # from left to right, as numbers rise
    inside = [place for place in every if place[1] is None]
    outer = [place for place in every if place[1] is not None]
    widths = [max(2, len(inside)), len(outer)] if outer else [1]
    shape = {"nrows": len(named), "ncols": len(widths), "width_ratios": widths, "squeeze": False}
    height = min(2.9, max(1.1, 5.6 / len(named)))
    truth = one(found, IN_BINS)
    with canvas(WIDTH, 1.2 + height * len(named), sharex="col", sharey=True, **shape) as (
        figure,
        axes,
    ):
        headline(figure, TITLE)
        for row, (name, mine) in zip(axes, named.items(), strict=True):
            style = _styles(mine)
            row[0].set_title(display(name), loc="left")
            row[0].set_ylim(LOWEST - 0.1, HIGHEST + 0.1)
            row[0].set_xlim(-0.3, len(inside) - 0.7)
            for axis, where in zip(row, (inside, outer), strict=False):
                _panel(axis, truth, where, TRUTH_LOOK)
                for one_of in mine:
                    table = {**TABLE_LOOK, "color": style[one_of.trained_in]["color"]}
                    _panel(axis, table_of(found, one_of.world), where, table)
                    _panel(axis, one_of, where, style[one_of.trained_in])
                axis.set_xticks(range(len(where)), [_tick(place) for place in where])
            lines = [(x, f"trained in {x.trained_in}", style[x.trained_in]["color"]) for x in mine]
            lines += [(truth, "truth", TRUTH)] if truth else []
            label_ends(row[0], [end for line in lines if (end := _end(*line, inside))])
        figure.supylabel("exponent of r")
        axes[-1][0].set_xlabel("law of the prompts")
        if outer:
            axes[-1][1].set_xlabel("own law,\noutside\nthe box")
        figure.legend(handles=_handles(found), loc="outside lower center", ncols=3)
        return save_figure(figure, path)


def _styles(mine: Sequence[Row]) -> dict[str, dict[str, Any]]:
    """Return the look of each world of training by its name in words."""
    found = looks([str(row.world) for row in mine])
    return {row.trained_in: found[str(row.world)] for row in mine}


def _exponent(place: Place) -> float:
    """Return the exponent of a prompt's law; laws that are no power come last."""
    exponents = laws.get(place[0]).exponents
    return math.inf if exponents is None else exponents["r"]


def _tick(place: Place) -> str:
    law, shift = place
    return in_words(law) + (f"\n{shift.replace('_', ' ')}" if shift else "")


def _panel(axis: Axes, row: Row | None, where: Sequence[Place], style: Mapping[str, Any]) -> None:
    """Draw one who continues orbits: a line over the powers of r, and points elsewhere."""
    if row is None:
        return
    there = [(at, place, span) for at, place in enumerate(where) if (span := row.interval(place))]
    powers, apart = (
        [(at, span) for at, place, span in there if _on_line(place) is wanted]
        for wanted in (True, False)
    )
    for group, own in ((powers, {}), (apart, {"ls": "none", "marker": style.get("marker", "_")})):
        if group:
            values = np.clip([span for _, span in group], LOWEST, HIGHEST)
            spans = bars(values)
            at = [at for at, _ in group]
            axis.errorbar(at, values[:, 0], yerr=spans, elinewidth=1, **{**style, **own})


def _on_line(place: Place) -> bool:
    law, shift = place
    return shift is None and laws.get(law).exponents is not None


def _end(row: Row, text: str, colour: str, where: Sequence[Place]) -> End | None:
    """Return the place of a row's name: at its last prompt of the training box."""
    there = [(at, x) for at, place in enumerate(where) if (x := row.mean(place)) is not None]
    if not there:
        return None
    at, mean = there[-1]
    return End(text, at, float(np.clip(mean, LOWEST, HIGHEST)), colour)


def _handles(found: Sequence[Row]) -> list[Line2D]:
    """Return the meaning of each kind of line."""
    handles = [Line2D([], [], color=CONTROL, marker="o", label="world model")]
    if any(table_of(found, row.world) for row in found):
        label = "table of its world's training orbits"
        handles.append(Line2D([], [], color=CONTROL, label=label, **TABLE_LOOK))
    if one(found, IN_BINS):
        handles.append(Line2D([], [], label="truth in bins", **TRUTH_LOOK))
    return handles


def _drawn(named: dict[str, list[Row]], out: Path) -> dict[str, Drawn]:
    """Return the continuations of the first training in each world, of the first attention."""
    name, mine = next(iter(named.items()))
    style = _styles(mine)
    drawn = {}
    for row in mine:
        results = [x for each in row.found.values() for x in each if "orbits" in x.files]
        if results and (file := folder.file(out, results[0], "orbits")):
            arrays = artefact.load_arrays(file)[0]
            drawn[f"{name}, trained in {row.trained_in}"] = Drawn(
                str(row.world), arrays, style[row.trained_in]
            )
    return drawn
