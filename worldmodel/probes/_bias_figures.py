"""Figures of the inductive-bias probe, from its lines."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from orbits import pictures
from worldmodel.legend import legend
from worldmodel.palette import TRUTH
from worldmodel.probes._style import (
    Line,
    Looks,
    bare,
    bars,
    once,
    without_repeats,
    world_of,
)

PANELS = {"linear": "linear oracle", "mlp": "MLP oracle"}


def calibration(lines: Sequence[Line], path: Path) -> None:
    """Draw the models' distances against each oracle's, with the 45-degree line."""
    figure, axes = plt.subplots(1, 2, figsize=(9.2, 5.2), layout="constrained")
    looks, alone = Looks(lines), without_repeats(lines)
    for axis, (key, oracle) in zip(axes, PANELS.items(), strict=True):
        shown = [line for line in alone if line["row"]["model"] != oracle]
        largest = 0.0
        for line, label in zip(shown, once([looks.who(x) for x in shown]), strict=True):
            curve, style = line["curves"][key], looks.style(line)
            axis.plot(curve["oracle"], curve["model"], ms=3.5, lw=1.4, label=label, **style)
            axis.fill_between(
                curve["oracle"], curve["low"], curve["high"], color=style["color"], alpha=0.12
            )
            largest = max(largest, *curve["oracle"], *curve["model"])
        axis.plot([0, largest], [0, largest], color=TRUTH, lw=1, label="calibrated")
        axis.set(xlabel=f"distance of the {oracle}'s answers", ylabel="distance of the answers")
    legend(figure, world_of(lines))
    pictures.save(bare(figure), path)


def state_bias_plane(lines: Sequence[Line], path: Path) -> None:
    """Draw R-IB against D-IB with their intervals."""
    figure, axis = plt.subplots(figsize=(7.4, 5.4), layout="constrained")
    looks, shown = Looks(lines), without_repeats(lines)
    for line, label in zip(shown, once([looks.who(x) for x in shown]), strict=True):
        r_ib, d_ib = (np.array([line["metrics"][name]]) for name in ("r_ib", "d_ib"))
        axis.errorbar(
            d_ib[:, 0],
            r_ib[:, 0],
            xerr=bars(d_ib),
            yerr=bars(r_ib),
            ms=7,
            capsize=3,
            label=label,
            **{**looks.style(line), "linestyle": "none"},
        )
    axis.set(xlabel="D-IB (other states: 1 is chance)", ylabel="R-IB (same state: 1 is always)")
    low, high = axis.get_xlim()
    axis.set_xlim(min(low, 0.95), max(high, 1.02))  # no magnified noise
    legend(figure, world_of(lines))
    pictures.save(bare(figure), path)
