"""Figures of the causal probe: predicted against true changes."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure

from orbits import artefacts, pictures
from worldmodel.palette import COLOURS, TRUTH
from worldmodel.probes._style import Array, Line, Looks, world_of

CAPTIONS = {
    "causal_force": (
        "Predicted against true log-ratio of the force on the planet when its mass (m1) or that of "
        "the star (m2) is changed in the simulator; each point is one observation of a held-out "
        "sequence. Line: true physics. A model that does not notice lies on zero. "
        "A mass that can be changed in no sequence has no panel."
    ),
    "causal_motion": (
        "Predicted against true change of the next place (AU, both coordinates) when a mass is "
        "changed in the simulator, after a straight line through the body's last two points is "
        "taken off in each world: the change of the acceleration times dt². Line: true physics. "
        "A mass that can be changed in no sequence has no panel."
    ),
}
PANELS = {
    "causal_force": ("force",),
    "causal_motion": ("planet bend", "star bend"),
}


def draw_all(lines: Sequence[Line], out: Path) -> dict[str, Path]:
    """Draw the figures into ``out/figures``; paths by name."""
    folder = out / "figures"
    paths = {}
    for name, quantities in PANELS.items():
        mine = [x for x in lines if x["setting"]["of"] in quantities]
        figure = _scatter(mine, quantities, out)
        if figure is not None:
            paths[name] = pictures.save(figure, folder / f"{name}.png")
    return paths


def _scatter(lines: Sequence[Line], quantities: Sequence[str], out: Path) -> Figure | None:
    """Draw a row of panels per model, a panel per changed mass and quantity.

    What no intervention changed has no panel, and there may be none at all.
    """
    looks = Looks(lines)
    models = looks.first_of_each(lines, "changes")
    changes = [artefacts.load_arrays(out / line["files"]["changes"])[0] for line in models]
    settings = [
        {"changed": mass, "of": of}
        for mass in ("m1", "m2")
        for of in quantities
        if any(kept[f"{mass} {of}"].size for kept in changes)
    ]
    if not settings:
        return None
    size = 3.4 if len(settings) < 3 else 2.7
    figure, axes = plt.subplots(
        len(models),
        len(settings),
        figsize=(size * len(settings), 0.5 + size * len(models)),
        squeeze=False,
        layout="constrained",
    )
    for row, line, kept in zip(axes, models, changes, strict=True):
        alike = [x for x in lines if x["files"] == line["files"]]
        for axis, setting in zip(row, settings, strict=True):
            predicted, true = kept["{changed} {of}".format(**setting)]
            reach = _reach(true)
            axis.plot([-reach, reach], [-reach, reach], "-", color=TRUTH, lw=0.8)
            axis.axhline(0, color="#bbbbbb", lw=0.8, zorder=0)
            axis.plot(true, predicted, ".", color=COLOURS[0], ms=2, alpha=0.4, rasterized=True)
            axis.set(xlim=(-reach, reach), ylim=(-reach, reach), aspect="equal")
            measured = [x["metrics"]["agreement"][0] for x in alike if x["setting"] == setting]
            verdict = f"agreement {measured[0]:.3f}" if measured else "less than bins show"
            axis.set_title(f"{setting['changed']} changed: {setting['of']}\n{verdict}", fontsize=9)
            axis.tick_params(labelsize=7)
        row[0].set_ylabel(textwrap.fill(looks.model(line), 40), fontsize=8)
    figure.suptitle(world_of(lines), fontsize=9)
    unit = "log-ratio" if "force" in quantities else "AU"
    figure.supxlabel(f"true change ({unit})", fontsize=9)
    figure.supylabel(f"predicted change ({unit})", fontsize=9)
    return figure


def _reach(true: Array) -> float:
    """Return how far a panel goes to either side of zero: all but the rarest true changes."""
    reach = 1.05 * float(np.quantile(np.abs(true), 0.995)) if true.size else 0.0
    return reach or 1.0
