"""Figures of the causal probe: predicted against true changes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure

from orbits import artefacts
from worldmodel.probes._motion_figures import first_of_each_model, world_of
from worldmodel.probes._style import COLOURS, TRUTH, save

Line = Mapping[str, Any]

CAPTIONS = {
    "causal_force": (
        "Predicted against true log-ratio of the force on the planet when its mass (m1) or that of "
        "the star (m2) is changed in the simulator; each point is one observation of a held-out "
        "sequence. Line: true physics. A model that does not notice lies on zero."
    ),
    "causal_motion": (
        "Predicted against true change of the next place (AU, both coordinates) when a mass is "
        "changed in the simulator, after a straight line through the body's last two points is "
        "taken off in each world: the change of the acceleration times dt². Line: true physics."
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
        if any("changes" in line["files"] for line in mine):
            paths[name] = save(_scatter(mine, quantities, out), folder / f"{name}.png")
    return paths


def _scatter(lines: Sequence[Line], quantities: Sequence[str], out: Path) -> Figure:
    """Draw a row of panels per model, a panel per changed mass and quantity."""
    models = first_of_each_model(lines, "changes")
    settings = [{"changed": m, "of": of} for m in ("m1", "m2") for of in quantities]
    size = 3.4 if len(settings) < 3 else 2.7
    figure, axes = plt.subplots(
        len(models),
        len(settings),
        figsize=(size * len(settings), 0.5 + size * len(models)),
        squeeze=False,
        layout="constrained",
    )
    for row, line in zip(axes, models, strict=True):
        alike = [x for x in lines if x["files"] == line["files"]]
        kept, _ = artefacts.load_arrays(out / line["files"]["changes"])
        for axis, setting in zip(row, settings, strict=True):
            predicted, true = kept["{changed} {of}".format(**setting)]
            reach = 1.05 * np.quantile(np.abs(true), 0.995)
            axis.plot([-reach, reach], [-reach, reach], "-", color=TRUTH, lw=0.8)
            axis.axhline(0, color="#bbbbbb", lw=0.8, zorder=0)
            axis.plot(true, predicted, ".", color=COLOURS[0], ms=2, alpha=0.4, rasterized=True)
            axis.set(xlim=(-reach, reach), ylim=(-reach, reach), aspect="equal")
            measured = [x["metrics"]["agreement"][0] for x in alike if x["setting"] == setting]
            verdict = f"agreement {measured[0]:.3f}" if measured else "less than bins show"
            axis.set_title(f"{setting['changed']} changed: {setting['of']}\n{verdict}", fontsize=9)
            axis.tick_params(labelsize=7)
        row[0].set_ylabel(f"{line['row']['model']}\n{world_of(line)}", fontsize=8)
    unit = "log-ratio" if "force" in quantities else "AU"
    figure.supxlabel(f"true change ({unit})", fontsize=9)
    figure.supylabel(f"predicted change ({unit})", fontsize=9)
    return figure
