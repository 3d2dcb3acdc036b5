"""Figures of the causal probe: predicted against true changes."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from orbits.runs import artefact, folder
from orbits.runs.figure import TICKS, canvas, save_figure
from orbits.runs.naming import display
from orbits.runs.page import Picture
from orbits.runs.palette import PALE, TRUTH
from orbits.runs.result import Result
from worldmodel.probes.looks import Array, Looks, own_setting, world_of

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


def draw_all(results: Sequence[Result], out: Path) -> list[Picture]:
    """Draw the figures into ``out/figures``."""
    pictures = []
    for name, quantities in PANELS.items():
        shown = [x for x in results if x.case.setting["of"] in quantities]
        path = _scatter(shown, quantities, out, out / "figures" / f"{name}.png")
        if path is not None:
            pictures.append(Picture(CAPTIONS[name], [path]))
    return pictures


def _scatter(
    results: Sequence[Result], quantities: Sequence[str], out: Path, path: Path
) -> Path | None:
    """Draw a row of panels per model, a panel per changed mass and quantity.

    What no intervention changed has no panel, and there may be none at all.
    """
    looks = Looks(results)
    pairs = [
        (result, artefact.load_arrays(file)[0])
        for result in looks.first_of_each(results, "changes")
        if (file := folder.file(out, result, "changes"))
    ]
    settings = [
        {"changed": mass, "of": of}
        for mass in ("m1", "m2")
        for of in quantities
        if any(changes[f"{mass} {of}"].size for _, changes in pairs)
    ]
    if not settings:
        return None
    size = 3.2 if len(settings) < 3 else 2.1
    shape = {"nrows": len(pairs), "ncols": len(settings), "squeeze": False}
    with canvas(size * len(settings), 0.5 + size * len(pairs), **shape) as (figure, axes):
        for row, (result, changes) in zip(axes, pairs, strict=True):
            alike = [x for x in results if x.files == result.files]
            for axis, setting in zip(row, settings, strict=True):
                predicted, true = changes["{changed} {of}".format(**setting)]
                reach = _reach(true)
                axis.plot([-reach, reach], [-reach, reach], "-", color=TRUTH, lw=0.8)
                axis.axhline(0, color=PALE, lw=0.8, zorder=0)
                axis.plot(
                    true,
                    predicted,
                    ".",
                    color=looks.colour(result),
                    ms=2,
                    alpha=0.4,
                    rasterized=True,
                )
                axis.set(xlim=(-reach, reach), ylim=(-reach, reach), aspect="equal")
                measured = [x.value("agreement") for x in alike if own_setting(x) == setting]
                verdict = f"agreement {measured[0]:.2f}" if measured else "less than bins show"
                what = f"{setting['changed']} changed: {setting['of']}"
                axis.set_title(f"{what}\n{verdict}", fontsize=8)

                axis.locator_params(nbins=TICKS)
            row[0].set_ylabel(textwrap.fill(display(looks.model(result)), 26), fontsize=8)
        words = "bend: the next place less a straight continuation; "
        title = f"{world_of(results)}. {'' if 'force' in quantities else words}"
        figure.suptitle(f"{title}agreement: 1 is the true change, 0 is none", fontsize=8)
        unit = "log-ratio" if "force" in quantities else "AU"
        figure.supxlabel(f"true change ({unit})")
        figure.supylabel(f"predicted change ({unit})")
        return save_figure(figure, path)


def _reach(true: Array) -> float:
    """Return the limit of a panel on either side of zero: all but the rarest true changes."""
    reach = 1.05 * float(np.quantile(np.abs(true), 0.995)) if true.size else 0.0
    return reach or 1.0
