"""The figure of the exchange probe: where in the model a changed mass takes effect."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from orbits.runs.figure import canvas, legend, save_figure
from orbits.runs.page import Picture
from orbits.runs.palette import TRUTH
from orbits.runs.result import Result
from worldmodel.probes.looks import Looks, bars, own_setting, together, world_of
from worldmodel.probes.motion.residual import CHANGED, ROWS

CAPTION = (
    "How much of a mass's part of the true change an exchange brings about (slope; 1: all, 0: "
    "nothing), by the place in the model and the rows that are given the residual stream of the "
    "same system with another mass. The rest of the change, which the bodies' places account for, "
    "is taken off. Every row: the model as it answers for the other system. Bars: 95% over "
    "trainings where there are three, else over sequences. Controls: random weights, a linear "
    "filter of places for motion, and for forces whoever takes the total mass from the planet's "
    "rows and its shares from the star's."
)


def draw_all(results: Sequence[Result], out: Path) -> list[Picture]:
    """Draw a panel for each quantity and changed mass; seeds of one model together."""
    shown = [x for x in results if own_setting(x)["donor"] == CHANGED]
    quantities, masses, stages = (
        list(dict.fromkeys(str(x.case.setting[name]) for x in shown))
        for name in ("of", "changed", "after")
    )
    places = [(stage, rows) for stage in stages for rows in ROWS]
    labels = [f"{'input' if s == 'embedding' else s}\n{rows}" for s, rows in places]
    looks = Looks(shown)
    shape = {"nrows": len(quantities), "ncols": len(masses), "sharey": True, "squeeze": False}
    with canvas(5.6 * len(masses), 1.2 + 2.6 * len(quantities), **shape) as (figure, axes):
        for row, of in zip(axes, quantities, strict=True):
            for axis, changed in zip(row, masses, strict=True):
                panel = {"of": of, "changed": changed}
                here = [x for x in shown if panel.items() <= own_setting(x).items()]
                names = list(dict.fromkeys(looks.name(x) for x in here))
                for number, (stage, rows) in enumerate(places):
                    wanted = {"after": stage, "rows": rows}
                    for place, name in enumerate(names):
                        alike = [
                            x
                            for x in here
                            if looks.name(x) == name and wanted.items() <= own_setting(x).items()
                        ]
                        if alike:
                            shift = 0.7 * (place + 0.5) / len(names) - 0.35
                            span = np.array([together(alike, "slope_mass")])
                            look = {**looks.style(alike[0]), "linestyle": "none", "ms": 4}
                            axis.errorbar(
                                number + shift,
                                span[:, 0],
                                bars(span),
                                capsize=2,
                                label=name,
                                **look,
                            )
                for height in (0, 1):
                    axis.axhline(height, color=TRUTH if height else "#999999", lw=0.8, ls=":")
                axis.set_xticks(range(len(places)), labels, fontsize=7)
                axis.set_title(f"{changed} changed: {of}", fontsize=10)
                axis.set_ylim(-0.6, 1.8)
            row[0].set_ylabel("slope, mass's part", fontsize=8)
        legend(figure, world_of(results))
        return [Picture(CAPTION, [save_figure(figure, out / "figures" / "exchange.png")])]
