"""The figure: R2 of ln F by backbone, a colour per arm, a dot per label set."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

from benchmarks.few_labels.scores import ARMS, LAST, NO_CHOICE, STOPPED, Group, controls, groups
from orbits.runs.figure import canvas, legend, save_figure
from orbits.runs.page import Picture
from orbits.runs.palette import CONTROL, LINES, look
from orbits.runs.result import Result
from orbits.runs.study import Study

CAPTION = (
    "R² of ln F on test sequences by backbone: a dot per label set, filled at the last step, "
    "hollow where validation would have stopped. Grey: baselines without a world model, means over "
    "label sets. A seed stands for another backbone in each attention."
)
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
    with canvas(2.2 + 3.6 * len(panels), 4.0, ncols=len(panels), squeeze=False, sharey=True) as (
        figure,
        axes,
    ):
        for axis, panel in zip(axes[0], panels, strict=True):
            for group in found:
                if (group.lr, group.steps) == panel:
                    _draw(axis, group, seeds, series.index(_series(group)), len(series))
            for number, (name, level) in enumerate(levels.items()):
                style = LINES[(number + 1) % len(LINES)]
                axis.axhline(level, color=CONTROL, lw=0.9, ls=style, label=name)
            axis.set_title(f"rate {panel[0]:g}, {panel[1]} steps")
            axis.set_xlabel("seed of the backbone")
            axis.set_xticks(range(len(seeds)), list(map(str, seeds)))
        axes[0][0].set_ylabel("R² of ln F")
        legend(figure)
        return [Picture(CAPTION, [save_figure(figure, out / "backbones.png")])]


def _series(group: Group) -> str:
    return group.variant if group.arm == NO_CHOICE else f"{group.variant}, {ARMS[group.arm]}"


def _draw(axis: Any, group: Group, seeds: Sequence[int], number: int, total: int) -> None:
    """Draw the points of one arm, beside those of the other arms at each seed."""
    beside = SPREAD * ((number + 0.5) / total - 0.5)
    style = {**look(number), "ls": "none", "ms": 4}
    for asked in (STOPPED, LAST):  # what is asked of most lies on top
        points = [
            (seeds.index(seed) + beside, value)
            for seed, sets in group.scores(asked).items()
            for value in sets.values()
        ]
        own = {"label": _series(group)} if asked == LAST else {"mfc": "none", "alpha": 0.6}
        axis.plot([x for x, _ in points], [y for _, y in points], **style, **own)
