"""The figure: missed kick against compute, a line per width, the best of widths, the orbit fit."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from statistics import fmean

import numpy as np

from benchmarks.scaling.curves import controls, frontier, points
from orbits.runs.figure import canvas, legend, save_figure
from orbits.runs.page import Picture
from orbits.runs.palette import CONTROL, LINES, look
from orbits.runs.result import Result
from orbits.runs.study import Study

CAPTION = (
    "Share of the kick that is missed one step ahead, against the FLOPs of the training; each "
    "point is a training of its own, lines join means over seeds. Black: power law through the "
    "best of widths. Grey: what needs no training."
)


def figures(study: Study, results: Sequence[Result], out: Path) -> list[Picture]:
    """Draw the curve."""
    found = points(results)
    if not found:
        return []
    series = list(dict.fromkeys((p.variant, p.heads, p.sequences) for p in found))
    with canvas(8.2, 4.6) as (figure, axis):
        for place, (variant, heads, sequences) in enumerate(series):
            mine = [p for p in found if (p.variant, p.heads, p.sequences) == series[place]]
            means = {
                flops: fmean(p.metrics["missed"] for p in mine if p.metrics["flops"] == flops)
                for flops in sorted({p.metrics["flops"] for p in mine})
            }
            style, data = look(place), f", {sequences:,} sequences" if sequences else ""
            label = f"{variant}, {heads} head{'s' * (heads > 1)}{data}"
            axis.plot(means.keys(), means.values(), label=label, **style)
            dots = [(p.metrics["flops"], p.metrics["missed"]) for p in mine]
            axis.plot(*np.array(dots).T, ls="none", marker=".", ms=3, color=style["color"])
        flops = [p.metrics["flops"] for p in found]
        for variant, each in frontier(found, "missed").items():
            if each.at(1.0) is not None:
                ends = np.array([min(flops), max(flops)])
                line = [value.value for x in ends if (value := each.at(x)) is not None]
                axis.plot(ends, line, color="black", lw=0.8, label=f"{variant}, best of widths")
        for number, (name, result) in enumerate(controls(results).items()):
            dashes = LINES[(number + 1) % len(LINES)]
            level = result.metrics["missed"].value
            axis.axhline(level, color=CONTROL, lw=0.9, ls=dashes, label=name)
        axis.set_xscale("log")
        axis.set_yscale("log")
        axis.set_xlabel("FLOPs of the training")
        axis.set_ylabel("share of the kick that is missed")
        legend(figure)
        return [Picture(CAPTION, [save_figure(figure, out / "scaling.png")])]
