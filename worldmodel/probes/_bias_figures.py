"""Figures of the inductive-bias probe, from its lines, and how lines look in a figure."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure

from worldmodel.probes import Line
from worldmodel.probes._style import COLOURS, NO_MODEL, TRUTH, bars, save

MARKERS = {"untrained": "o", "oracle": "s"}
PANELS = {"linear": "linear oracle", "mlp": "MLP oracle"}


def calibration(lines: Sequence[Line], path: Path) -> None:
    """Draw the models' distances against each oracle's, with the 45-degree line."""
    figure, axes = plt.subplots(1, 2, figsize=(9.2, 4.6), layout="constrained")
    palette = colours(lines)
    for axis, (key, oracle) in zip(axes, PANELS.items(), strict=True):
        shown = [line for line in lines if line["row"]["model"] != oracle]
        largest = 0.0
        for line, label in zip(shown, labels(shown), strict=True):
            curve, arm = line["curves"][key], line["row"]["arm"]
            axis.plot(
                curve["oracle"],
                curve["model"],
                "--" if arm == "untrained" else "-",
                color=palette[who(line)],
                marker=MARKERS.get(arm, "D"),
                ms=3.5,
                lw=1.4,
                label=label,
            )
            axis.fill_between(
                curve["oracle"], curve["low"], curve["high"], color=palette[who(line)], alpha=0.12
            )
            largest = max(largest, *curve["oracle"], *curve["model"])
        axis.plot([0, largest], [0, largest], color=TRUTH, lw=1, label="calibrated")
        axis.set(xlabel=f"distance of the {oracle}'s answers", ylabel="distance of the answers")
        axis.legend(fontsize=8, frameon=False)
    save(bare(figure), path)


def state_bias_plane(lines: Sequence[Line], path: Path) -> None:
    """Draw R-IB against D-IB with their intervals."""
    figure, axis = plt.subplots(figsize=(6.6, 4.6), layout="constrained")
    palette = colours(lines)
    for line, label in zip(lines, labels(lines), strict=True):
        r_ib, d_ib = (np.array([line["metrics"][name]]) for name in ("r_ib", "d_ib"))
        axis.errorbar(
            d_ib[:, 0],
            r_ib[:, 0],
            xerr=bars(d_ib),
            yerr=bars(r_ib),
            fmt=MARKERS.get(line["row"]["arm"], "D"),
            mfc="white" if line["row"]["arm"] == "untrained" else None,
            color=palette[who(line)],
            ms=7,
            capsize=3,
            label=label,
        )
    axis.set(xlabel="D-IB (other states: 1 is chance)", ylabel="R-IB (same state: 1 is always)")
    low, high = axis.get_xlim()
    axis.set_xlim(min(low, 0.95), max(high, 1.02))  # no magnified noise
    axis.legend(fontsize=8, frameon=False)
    save(bare(figure), path)


def who(line: Line) -> tuple[str, str]:
    """Return who answered, which decides the colour."""
    return line["row"]["model"], line["row"]["arm"]


def colours(lines: Sequence[Line]) -> dict[tuple[str, str], str]:
    """Return the colour of everyone who answered; an untrained twin has that of its model.

    Models come first, so that they have the same colours in every figure.
    """
    found: dict[tuple[str, str], str] = {}
    for line in sorted(lines, key=lambda line: line["row"]["arm"] in NO_MODEL):
        model, arm = who(line)
        twin = (model, line["subject"]["arm"]) if arm == "untrained" else (model, arm)
        found.setdefault(twin, COLOURS[len(set(found.values())) % len(COLOURS)])
        found.setdefault((model, arm), found[twin])
    return found


def labels(lines: Sequence[Line]) -> list[str | None]:
    """Return each line's label; None where another seed of the same model has it."""
    found: list[str | None] = []
    for line in lines:
        row = line["row"]
        label = row["model"] if row["arm"] == "oracle" else f"{row['model']}, {row['arm']}"
        if row["law"] != "newton":
            label += f" ({row['law']})"
        found.append(None if label in found else label)
    return found


def bare(figure: Figure) -> Figure:
    """Return a figure without the frames of its panels."""
    for axis in figure.axes:
        axis.spines[["top", "right"]].set_visible(False)
        axis.tick_params(labelsize=8)
    return figure
