"""The figure: R2 of ln F by backbone, a colour per arm, a dot per label set."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

from matplotlib.lines import Line2D

from benchmarks.few_labels.scores import (
    ANNEALED,
    LAST,
    NO_CHOICE,
    STOPPED,
    WITH,
    WITHOUT,
    Group,
    controls,
    groups,
)
from orbits.runs.figure import WIDTH, End, canvas, headline, label_ends, save_figure
from orbits.runs.naming import display
from orbits.runs.page import Picture
from orbits.runs.palette import CONTROL, LINES, looks
from orbits.runs.result import Result
from orbits.runs.study import Study

CAPTION = (
    "R² of ln F on test sequences by backbone: a dot per label set, filled at the last step, "
    "hollow where validation would have stopped. Grey: baselines without a world model, means over "
    "label sets. A seed stands for another backbone in each attention."
)
TITLE = "How well do heads do by their backbone? (a dot per label set)"
TUNED = {WITH: "re-weighted", WITHOUT: "at p = 1", ANNEALED: "from p = 1 up"}
"""States of the second stage while heads are trained, in words."""
SPREAD = 0.7
"""Width that the arms of one seed share, where seeds are 1 apart."""


def figures(study: Study, results: Sequence[Result], out: Path) -> list[Picture]:
    """Draw a panel per learning rate and number of steps."""
    found = [group for group in groups(results) if group.means()]
    if not found:
        return []
    panels = list(dict.fromkeys((group.lr, group.steps) for group in found))
    series = list(dict.fromkeys(map(_series, found)))
    seeds = sorted({seed for group in found for seed in group.means()})
    levels = {
        name: fmean(values)
        for name, sets in controls(results).items()
        if (values := [v for x in sets.values() if (v := x.value("r2_log")) is not None])
    }
    style = looks(series, series)
    shape = {"nrows": len(panels), "squeeze": False, "sharex": True, "sharey": True}
    with canvas(WIDTH, 1.5 + 2.9 * len(panels), **shape) as (figure, axes):
        headline(figure, TITLE)
        for (axis,), panel in zip(axes, panels, strict=True):
            for group in found:
                if (group.lr, group.steps) == panel:
                    place = (series.index(_series(group)) + 0.5) / len(series)
                    look = {**style[_series(group)], "ls": "none", "ms": 4.5}
                    _draw(axis, group, seeds, SPREAD * (place - 0.5), look)
            axis.set_xlim(-0.5, len(seeds) - 0.5)
            for number, level in enumerate(levels.values()):
                dashes = LINES[(number + 1) % len(LINES)]
                axis.axhline(level, color=CONTROL, lw=0.9, ls=dashes)
            axis.set_title(f"learning rate {panel[0]:g}, {panel[1]} steps", loc="left")
            axis.set_xticks(range(len(seeds)), list(map(str, seeds)))
            axis.set_ylabel("R² of ln F")
            axis.grid(axis="y")
        for (axis,) in axes:
            label_ends(axis, [End(x, len(seeds) - 0.5, y, CONTROL) for x, y in levels.items()])
        axes[-1][0].set_xlabel("seed of the backbone")
        handles = [Line2D([], [], ls="none", **_mark(style[x]), label=display(x)) for x in series]
        early = "stopped by validation"
        handles.append(
            Line2D([], [], marker="o", ls="none", mfc="none", alpha=0.6, color=CONTROL, label=early)
        )
        figure.legend(handles=handles, loc="outside lower center", ncols=2)
        return [Picture(CAPTION, [save_figure(figure, out / "backbones.png")])]


def _series(group: Group) -> str:
    return group.variant if group.arm == NO_CHOICE else f"{group.variant}, tuned {TUNED[group.arm]}"


def _mark(style: Mapping[str, Any]) -> dict[str, Any]:
    return {"color": style["color"], "marker": style["marker"]}


def _draw(
    axis: Any, group: Group, seeds: Sequence[int], beside: float, style: Mapping[str, Any]
) -> None:
    """Draw the points of one arm, beside those of the other arms at each seed."""
    for asked in (STOPPED, LAST):  # what is asked of most lies on top
        points = [
            (seeds.index(seed) + beside, value)
            for seed, sets in group.scores(asked).items()
            for value in sets.values()
        ]
        own = {} if asked == LAST else {"mfc": "none", "alpha": 0.6}
        axis.plot([x for x, _ in points], [y for _, y in points], **{**style, **own})
