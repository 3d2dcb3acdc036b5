"""The figure: missed kick against compute, a line per width, the best of widths, the orbit fit."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from statistics import fmean

import numpy as np
from matplotlib.ticker import LogLocator, NullFormatter

from benchmarks.scaling.curves import controls, frontier, points
from orbits.runs.figure import WIDTH, End, canvas, headline, label_ends, save_figure
from orbits.runs.page import Picture
from orbits.runs.palette import CONTROL, LINES, TRUTH, looks
from orbits.runs.result import Result
from orbits.runs.study import Study

CAPTION = (
    "Share of the kick that is missed one step ahead, against the FLOPs of the training; each "
    "point is a training of its own, lines join means over seeds. Thin: power law through the "
    "best of widths, dotted in its colour where there is one width. Grey: what needs no training."
)

TITLE = "Does more compute bring a world model nearer to the law's kick?"


def figures(study: Study, results: Sequence[Result], out: Path) -> list[Picture]:
    """Draw the curve."""
    found = points(results)
    if not found:
        return []
    keys = list(dict.fromkeys((p.variant, p.heads, p.sequences) for p in found))
    series = {
        _named(*key): [p for p in found if (p.variant, p.heads, p.sequences) == key] for key in keys
    }
    style, ends = looks(list(series)), []
    flops = [p.metrics["flops"] for p in found]
    with canvas(WIDTH, 4.6) as (figure, axis):
        headline(figure, TITLE)
        for name, mine in series.items():
            means = {
                x: fmean(p.metrics["missed"] for p in mine if p.metrics["flops"] == x)
                for x in sorted({p.metrics["flops"] for p in mine})
            }
            axis.plot(means.keys(), means.values(), **style[name])
            dots = [(p.metrics["flops"], p.metrics["missed"]) for p in mine]
            axis.plot(*np.array(dots).T, ls="none", marker=".", ms=3, color=style[name]["color"])
            last = max(means)
            ends.append(End(name, last, means[last], style[name]["color"]))
        for variant, each in frontier(found, "missed").items():
            if each.at(1.0) is not None:
                over = np.array([min(flops), max(flops)])
                line = [value.value for x in over if (value := each.at(x)) is not None]
                alone = [style[_named(*key)]["color"] for key in keys if key[0] == variant]
                if len(alone) == 1:
                    axis.plot(over, line, color=alone[0], lw=0.9, ls=":")
                    continue
                axis.plot(over, line, color=TRUTH, lw=0.8)
                ends.append(End(f"{variant}, best of widths", max(flops), line[-1], TRUTH))
        for number, (name, result) in enumerate(controls(results).items()):
            level = result.metrics["missed"].value
            axis.axhline(level, color=CONTROL, lw=0.9, ls=LINES[(number + 1) % len(LINES)])
            ends.append(End(name, max(flops), level, CONTROL))
        axis.set_xscale("log")
        axis.set_yscale("log")
        axis.xaxis.set_major_locator(LogLocator(subs=(1, 3)))
        axis.xaxis.set_minor_formatter(NullFormatter())
        axis.set_xlabel("FLOPs of the training")
        axis.set_ylabel("share of the kick that is missed (0: none)")
        axis.grid(axis="y")
        label_ends(axis, ends)
        return [Picture(CAPTION, [save_figure(figure, out / "scaling.png")])]


def _named(variant: str, heads: int, sequences: int | None) -> str:
    """Return the name of a line: the attention, its width, and its data where they are few."""
    data = f", {sequences:,} sequences" if sequences else ""
    return f"{variant}, {heads} head{'s' * (heads > 1)}{data}"
