"""The figure of the exchange probe: where in the model a changed mass takes effect."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from orbits.runs.figure import TRUTH, canvas, legend, save_figure
from orbits.runs.page import Picture
from orbits.runs.result import Result
from worldmodel.probes.looks import Looks, bars, interval, own_setting, without_repeats, world_of
from worldmodel.probes.motion.residual import CHANGED, ROWS

CAPTION = (
    "How much of a mass's part of the true change an exchange brings about (slope; 1: all, 0: "
    "nothing), by the place in the model and the rows that are given the residual stream of the "
    "same system with another mass. The rest of the change, which the bodies' places account for, "
    "is taken off. Every row: the model as it answers for the other system. Bars: 95% over "
    "sequences. Controls: random weights, and a linear filter of places where there is one."
)


def draw_all(results: Sequence[Result], out: Path) -> list[Picture]:
    """Draw a panel for each changed mass and quantity."""
    shown = [x for x in results if own_setting(x)["donor"] == CHANGED]
    panels = list(dict.fromkeys((_of(x, "changed"), _of(x, "of")) for x in shown))
    stages = list(dict.fromkeys(_of(x, "after") for x in shown))
    places = [(stage, rows) for stage in stages for rows in ROWS]
    looks = Looks(shown)
    names = list(dict.fromkeys(looks.name(result) for result in shown))
    width = max(6.0, 5.2 * len(panels))
    with canvas(width, 5.0, ncols=len(panels), sharey=True, squeeze=False) as (figure, axes):
        for axis, (changed, of) in zip(axes[0], panels, strict=True):
            for number, (stage, rows) in enumerate(places):
                wanted = {"changed": changed, "of": of, "after": stage, "rows": rows}
                alike = [x for x in shown if wanted.items() <= own_setting(x).items()]
                for result in without_repeats(alike):
                    name = looks.name(result)
                    shift = 0.7 * (names.index(name) + 0.5) / len(names) - 0.35
                    span = np.array([interval(result, "slope_mass")])
                    look = {**looks.style(result), "linestyle": "none", "ms": 4, "capsize": 2}
                    axis.errorbar(number + shift, span[:, 0], bars(span), label=name, **look)
            for height in (0, 1):
                axis.axhline(height, color=TRUTH if height else "#999999", lw=0.8, ls=":")
            axis.set_xticks(range(len(places)), [f"{s}\n{r}" for s, r in places], fontsize=7)
            axis.set_title(f"{changed} changed: {of}", fontsize=10)
            axis.set_ylim(-0.6, 1.6)
        axes[0, 0].set_ylabel("slope against the mass's part")
        legend(figure, world_of(results))
        return [Picture(CAPTION, [save_figure(figure, out / "figures" / "exchange.png")])]


def _of(result: Result, name: str) -> str:
    return str(result.case.setting[name])
