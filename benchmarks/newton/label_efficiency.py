"""The label-efficiency curve: the gain by pre-training at each number of labels."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np

from benchmarks.newton.control_names import DRAWN
from benchmarks.newton.worlds import as_number
from orbits.runs.figure import WIDTH, End, canvas, label_ends, save_figure
from orbits.runs.naming import arm, display
from orbits.runs.palette import COLOURS, CONTROL, LINES, looks
from orbits.runs.result import Result

ARMS = {"pretrained": "-", "scratch": "--"}
"""Trained arms and their lines."""
BAND_COLOURS = {"pretrained": COLOURS[0], "scratch": COLOURS[5]}
ALONE = "lssar p=15"
"""The model that has its own lines beside the bands."""
FEW = 3
"""Most models that each have their own lines; with more there are bands."""
BANDS = (
    "Lines join means over trainings; dots are seeds, each with its own labelled sequences. Of "
    "more than three models bands reach from the best to the worst mean, and thin lines are the "
    "models. Grey: a look-up table that is told the true state."
)

Curve = Mapping[float, Sequence[float]]
"""Errors by label budget, one per seed."""


def budget_of(result: Result) -> float:
    """Return the number of labelled sequences, infinite where every step has new ones."""
    return as_number(result.case.get("labels"))


def label_efficiency(forces: Sequence[Result], path: Path) -> Path | None:
    """Draw the error against the label budget, pre-trained and from scratch."""
    trained = [result for result in forces if result.case.arm in ARMS]
    budgets = sorted({budget_of(result) for result in trained})
    if len(budgets) < 2:
        return None
    models = list(dict.fromkeys(result.case.variant for result in trained))
    alone = [model for model in models if model == ALONE or len(models) <= FEW]
    style, ends = looks(models), []
    with canvas(WIDTH, 4.2) as (figure, axis):
        axis.set_xlim(-0.1, len(budgets) - 0.9)
        for name, colour in BAND_COLOURS.items():
            curves = {
                model: _curve(trained, model, name)
                for model in models
                if model not in alone and _curve(trained, model, name)
            }
            if curves:
                ends.append(_band(axis, curves, budgets, name, colour))
        for model in alone:
            for name in ARMS:
                if curve := _curve(trained, model, name):
                    text = f"{model}, {name}"
                    ends.append(_line(axis, curve, budgets, text, look(style[model], name)))
        for number, control in enumerate(DRAWN):
            if curve := _curve(forces, control, "control"):
                how = {"color": CONTROL, "ls": (":", "-.")[number], "lw": 1.0}
                ends.append(_line(axis, curve, budgets, control, how))
        ticks = ["unlimited" if math.isinf(budget) else f"{budget:,g}" for budget in budgets]
        axis.set_xticks(range(len(budgets)), ticks)
        axis.set(xlabel="labelled sequences", ylabel="1 - R² of ln F on held-out sequences")
        axis.set_yscale("log")
        axis.grid(axis="y")
        label_ends(axis, ends)
        return save_figure(figure, path)


def _curve(results: Sequence[Result], model: str, name: str) -> Curve:
    """Return the errors of a model and arm, by budget."""
    found: dict[float, list[float]] = {}
    for result in results:
        if (result.case.variant, result.case.arm) == (model, name):
            r2 = result.value("r2_log")
            if r2 is not None and r2 < 1:
                found.setdefault(budget_of(result), []).append(1 - r2)
    return found


def _band(
    axis: Any, curves: Mapping[str, Curve], budgets: Sequence[float], name: str, colour: str
) -> End:
    """Draw the band of an arm from the best to the worst model, and its models as thin lines."""
    places = np.arange(len(budgets))
    means = np.array(
        [[fmean(c[b]) if b in c else math.nan for b in budgets] for c in curves.values()]
    )
    low, high = np.nanmin(means, axis=0), np.nanmax(means, axis=0)
    axis.fill_between(places, low, high, color=colour, alpha=0.3, lw=0)
    for mean in means:
        axis.plot(places, mean, color=colour, lw=0.7, alpha=0.7, ls=ARMS[name])
    middle = math.sqrt(low[-1] * high[-1])
    many = f"{len(curves)} attentions" if len(curves) > 1 else display(next(iter(curves)))
    return End(f"{arm(name)}: {many}", places[-1], middle, colour)


def _line(
    axis: Any, curve: Curve, budgets: Sequence[float], text: str, look: Mapping[str, Any]
) -> End:
    """Draw the means of one model and arm as a line and its seeds as dots."""
    there = [budget for budget in budgets if budget in curve]
    places = [budgets.index(budget) for budget in there]
    means = [fmean(curve[budget]) for budget in there]
    plain = {name: value for name, value in look.items() if not name.startswith("marker")}
    axis.plot(places, means, **plain)
    if "marker" in look:
        dots = [
            (at, value) for at, budget in zip(places, there, strict=True) for value in curve[budget]
        ]
        axis.plot(*np.array(dots).T, **{**look, "linestyle": "none"})
    return End(text, places[-1], means[-1], look["color"])


def look(style: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Return the look of a curve of a model in an arm, as arguments of matplotlib."""
    elsewhere = name not in ("pretraining", *ARMS)
    return {
        "color": style["color"],
        "linestyle": LINES[2] if elsewhere else ARMS.get(name, "-"),
        "marker": style["marker"],
        "markerfacecolor": filled(style["color"], name),
        "fillstyle": "left" if elsewhere else "full",
    }


def filled(colour: str, name: str) -> str:
    """Return the colour in a mark of an arm: models from scratch have hollow ones."""
    return "white" if name == "scratch" else colour
