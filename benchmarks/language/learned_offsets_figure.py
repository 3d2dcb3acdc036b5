"""Figures of learned offsets by layer, and of learned biases by distance, a panel per layer."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from orbits.runs.figure import WIDTH, canvas, figure_path, headline, panels, save_figure
from orbits.runs.naming import display
from orbits.runs.page import Picture
from orbits.runs.palette import COLOURS, PALE, own_colour
from orbits.runs.result import Result

COLUMNS = 4
"""Panels in a row."""


def figures(results: Sequence[Result], out: Path) -> list[Picture]:
    """Draw the offsets that each model's layers learned."""
    pictures = []
    layers = [x for x in results if x.case.get("layer") is not None]
    for label in dict.fromkeys(x.case.variant for x in layers):
        mine = [x for x in layers if x.case.variant == label]
        name = label.replace(" ", "_").replace("=", "")
        if any("tau" in x.details for x in mine):
            pictures.append(_offsets(mine, label, figure_path(out, f"offsets_{name}")))
        if any("bias" in x.details for x in mine):
            pictures.append(_biases(mine, label, figure_path(out, f"biases_{name}")))
    return pictures


def _of_layer(results: Sequence[Result], what: str) -> dict[int, Any]:
    """Return the numbers of each layer, a row per seed: [seeds, H, ...]."""
    found: dict[int, list[Any]] = {}
    for result in results:
        found.setdefault(int(result.case.get("layer")), []).append(result.details[what])
    return {layer: np.array(each) for layer, each in sorted(found.items())}


def _offsets(results: Sequence[Result], label: str, path: Path) -> Picture:
    """Draw a dot per head and seed, and the mean of each layer."""
    with canvas(WIDTH, 3.2) as (figure, axes):
        for layer, values in _of_layer(results, "tau").items():
            spread = layer + 0.12 * (np.arange(values.shape[0]) - (len(values) - 1) / 2)
            for at, heads in zip(spread, values, strict=True):
                dots = {"color": own_colour(label), "mec": "white", "mew": 0.4, "ms": 5}
                axes.plot([at] * len(heads), heads, "o", **dots)
            axes.plot([layer - 0.3, layer + 0.3], [values.mean()] * 2, color=COLOURS[0], lw=1.5)
        axes.axhline(1.0, color=PALE, lw=0.9, ls=":")
        axes.set_xticks(sorted(_of_layer(results, "tau")))
        axes.set(xlabel="layer", ylabel="offset tau, which is subtracted")
        headline(figure, f"Offsets that {display(label)} has learned")
        save_figure(figure, path)
    caption = (
        f"Offsets of {label}: a dot per head, a column of dots per training; lines: means; "
        "dotted: where they start."
    )
    return Picture(caption, [path])


def _biases(results: Sequence[Result], label: str, path: Path) -> Picture:
    """Draw the bias of each head by distance, about its mean, and the mean of heads."""
    layers = _of_layer(results, "bias")
    shared = {"sharex": True, "sharey": True}
    with panels(len(layers), COLUMNS, 2.1, 1.9, margin=1.0, **shared) as (figure, axes):
        for axis, (layer, values) in zip(axes, layers.items(), strict=True):
            added = values.mean(axis=-1, keepdims=True) - values
            for head in added.reshape(-1, added.shape[-1]):
                axis.plot(head, color=PALE, lw=0.6)
            axis.plot(added.mean(axis=(0, 1)), color=own_colour(label), lw=1.6)
            axis.axhline(0.0, color=PALE, lw=0.9, ls=":")
            axis.set_title(f"layer {layer}", fontsize=8)
            axis.set(xlabel="distance", ylabel="added to the score")
            axis.label_outer()
        headline(figure, f"Distance biases that {display(label)} has learned")
        save_figure(figure, path)
    caption = (
        f"What {label} adds to scores by distance, -b, about each head's mean: grey lines are "
        "heads of all trainings, the thick one is their mean."
    )
    return Picture(caption, [path])
