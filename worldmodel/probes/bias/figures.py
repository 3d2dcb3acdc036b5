"""Figures of the inductive-bias probe, from its results."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from orbits.runs.figure import WIDTH, canvas, headline, label_level, legend, save_figure
from orbits.runs.naming import display
from orbits.runs.palette import PALE, TRUTH
from orbits.runs.result import Result
from worldmodel.probes.bias.components import PARTS
from worldmodel.probes.looks import (
    Looks,
    bars,
    is_control,
    once,
    together,
    without_repeats,
    world_of,
)

STATES = "Do equal states get equal answers from a model that learns new functions?"
DISTANCES = "Are answers as far apart as an oracle's that sees the true state?"
PARTS_KEPT = "Which components of the state do answers carry? (1: all, 0: none)"
ORACLES = {"linear": "linear oracle", "mlp": "MLP oracle"}
SEQUENCES = {
    "labelled": "other rows of labelled sequences",
    "fresh": "systems without labels",
}


def calibration(results: Sequence[Result], path: Path) -> Path:
    """Draw the models' distances against an oracle's, with the 45-degree line.

    It is the linear one; of bits, of which a line makes nothing, the MLP. The other is a curve.
    """
    looks, alone = Looks(results), without_repeats(results)
    key = "mlp" if results[0].case.setting["target"] == "random" else "linear"
    shown = [result for result in alone if result.case.variant != ORACLES[key]]
    with canvas(WIDTH, 5.6) as (figure, axis):
        headline(figure, DISTANCES)
        largest = 0.0
        for result, label in zip(shown, once([looks.name(x) for x in shown]), strict=True):
            curve, style = result.details["curves"][key], looks.style(result)
            axis.plot(curve["oracle"], curve["model"], ms=3.5, label=label, **style)
            axis.fill_between(
                curve["oracle"], curve["low"], curve["high"], color=style["color"], alpha=0.12
            )
            largest = max(largest, *curve["oracle"], *curve["model"])
        axis.plot([0, largest], [0, largest], color=TRUTH, lw=1, label="calibrated")
        axis.set_xlabel(f"distance of two answers, {ORACLES[key]}")
        axis.set_ylabel("distance of two answers, model")
        legend(figure, world_of(results))
        return save_figure(figure, path)


def state_bias_dots(results: Sequence[Result], path: Path) -> Path:
    """Draw R-IB of each model and control, a dot per training with its interval."""
    looks, shown = Looks(results), without_repeats(results)
    names = list(dict.fromkeys(looks.name(x) for x in sorted(shown, key=_order)))
    with canvas(WIDTH, 1.4 + 0.34 * len(names)) as (figure, axis):
        headline(figure, STATES)
        for result in shown:
            span = np.array([together([result], "r_ib")])
            look = {**looks.style(result), "linestyle": "none", "ms": 6}
            place = names.index(looks.name(result))
            axis.errorbar(span[:, 0], [place], xerr=bars(span), elinewidth=1, **look)
        label_level(axis, 1.0, "always")
        axis.set_yticks(range(len(names)), list(map(display, names)))
        axis.set_ylim(len(names) - 0.5, -0.5)
        axis.set_xlim(right=max(1.02, axis.get_xlim()[1]))
        axis.tick_params(axis="y", length=0)
        axis.grid(axis="x")
        axis.set_xlabel("R-IB (1: equal states always get equal answers, 0: by chance)")
        return save_figure(figure, path)


def _order(result: Result) -> tuple[int, float]:
    """Return the place of a row: controls, trained models, random weights."""
    group = 0 if is_control(result) else 1 + result.case.arm.startswith("untrained")
    return group, -result.metrics["r_ib"].value


def carried(results: Sequence[Result], path: Path) -> Path:
    """Draw the slope of each component, at labelled sequences and at systems without labels."""
    looks = Looks(results)
    names = list(dict.fromkeys(looks.name(result) for result in results))
    with canvas(WIDTH, 5.6, nrows=2, sharex=True) as (figure, axes):
        headline(figure, PARTS_KEPT)
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
                axis.axhline(height, color=TRUTH if height else PALE, lw=0.8, ls=":")
            axis.set_xticks(range(len(PARTS)), list(PARTS))
            axis.set_title(title, loc="left")
            axis.set_ylabel("slope of the coefficients")
            axis.set_ylim(-1, 2.6)  # of few datasets one may have next to none of a component
        legend(figure, world_of(results))
        return save_figure(figure, path)
