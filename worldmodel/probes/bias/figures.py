"""Figures of the inductive-bias probe, from its results."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from orbits.runs.figure import canvas, legend, save_figure
from orbits.runs.palette import TRUTH
from orbits.runs.result import Result
from worldmodel.probes.bias.components import PARTS
from worldmodel.probes.looks import (
    Looks,
    bars,
    interval,
    once,
    together,
    without_repeats,
    world_of,
)

PANELS = {"linear": "linear oracle", "mlp": "MLP oracle"}
SEQUENCES = {
    "labelled": "other rows of labelled sequences",
    "fresh": "systems without labels",
}


def calibration(results: Sequence[Result], path: Path) -> Path:
    """Draw the models' distances against each oracle's, with the 45-degree line."""
    looks, alone = Looks(results), without_repeats(results)
    with canvas(9.2, 5.2, ncols=2) as (figure, axes):
        for axis, (key, oracle) in zip(axes, PANELS.items(), strict=True):
            shown = [result for result in alone if result.case.variant != oracle]
            largest = 0.0
            labels = once([looks.name(x) for x in shown])
            for result, label in zip(shown, labels, strict=True):
                curve, style = result.details["curves"][key], looks.style(result)
                axis.plot(curve["oracle"], curve["model"], ms=3.5, label=label, **style)
                axis.fill_between(
                    curve["oracle"], curve["low"], curve["high"], color=style["color"], alpha=0.12
                )
                largest = max(largest, *curve["oracle"], *curve["model"])
            axis.plot([0, largest], [0, largest], color=TRUTH, lw=1, label="calibrated")
            axis.set_xlabel(f"distance of the {oracle}'s outputs")
            axis.set_ylabel("distance of the outputs")
        legend(figure, world_of(results))
        return save_figure(figure, path)


def state_bias_plane(results: Sequence[Result], path: Path) -> Path:
    """Draw R-IB against D-IB with their intervals."""
    looks, shown = Looks(results), without_repeats(results)
    with canvas(7.4, 5.4) as (figure, axis):
        for result, label in zip(shown, once([looks.name(x) for x in shown]), strict=True):
            r_ib, d_ib = (np.array([interval(result, name)]) for name in ("r_ib", "d_ib"))
            look = {**looks.style(result), "linestyle": "none", "ms": 7, "capsize": 3}
            x, y = d_ib[:, 0], r_ib[:, 0]
            axis.errorbar(x, y, xerr=bars(d_ib), yerr=bars(r_ib), label=label, **look)
        axis.set_xlabel("D-IB (other states: 1 is chance)")
        axis.set_ylabel("R-IB (same state: 1 is always)")
        low, high = axis.get_xlim()
        axis.set_xlim(min(low, 0.95), max(high, 1.02))  # no magnified noise
        legend(figure, world_of(results))
        return save_figure(figure, path)


def carried(results: Sequence[Result], path: Path) -> Path:
    """Draw the slope of each component, at labelled sequences and at systems without labels."""
    looks = Looks(results)
    names = list(dict.fromkeys(looks.name(result) for result in results))
    with canvas(10.4, 4.8, ncols=2, sharey=True) as (figure, axes):
        for axis, (where, title) in zip(axes, SEQUENCES.items(), strict=True):
            for place, part in enumerate(PARTS):
                wanted = {"component": part, "sequences": where}
                here = [x for x in results if wanted.items() <= x.case.setting.items()]
                for number, name in enumerate(names):
                    alike = [x for x in here if looks.name(x) == name]
                    shift = 0.7 * (number + 0.5) / len(names) - 0.35
                    span = np.array([together(alike, "slope")])
                    look = {**looks.style(alike[0]), "linestyle": "none", "ms": 5, "capsize": 2}
                    axis.errorbar(place + shift, span[:, 0], bars(span), label=name, **look)
            for height in (0, 1):
                axis.axhline(height, color=TRUTH if height else "#999999", lw=0.8, ls=":")
            axis.set_xticks(range(len(PARTS)), list(PARTS))
            axis.set_title(title, fontsize=10)
            axis.set_ylim(-1, 2.6)  # of few datasets one may have next to none of a component
        axes[0].set_ylabel("slope of the coefficients (1: carried)")
        legend(figure, world_of(results))
        return save_figure(figure, path)
