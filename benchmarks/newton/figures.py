"""The figures of the flagship, made from its results and the files that they name."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from matplotlib.ticker import NullFormatter

from benchmarks.newton.control_names import CEILING, DRAWN
from benchmarks.newton.label_efficiency import (
    ARMS,
    BANDS,
    budget_of,
    filled,
    label_efficiency,
    look,
)
from orbits.runs import folder
from orbits.runs.figure import canvas, legend, panels, save_figure
from orbits.runs.naming import arm, display
from orbits.runs.page import Picture
from orbits.runs.palette import CONTROL, LINES, PALE, SUN, TRUTH, looks
from orbits.runs.result import Result, grouped
from symreg import predictions
from symreg.points import NAMES

MOST_PANELS = 8
UNITS = {
    "r": "distance r (AU)",
    "m1": "planet mass m1 (solar masses)",
    "m2": "star mass m2 (solar masses)",
}
CAPTIONS = {
    "force_vectors": "Forces along one held-out orbit, true and predicted (drawn to one scale): "
    "one training of each model.",
    "label_efficiency": f"What pre-training is worth: error against the label budget, both arms "
    f"at equal numbers of steps. {BANDS} Unlimited: every step is new, so the longer scratch arm "
    "sees more labels.",
    "magnitudes": "How far predicted magnitudes are off on held-out sequences, by distance and "
    "masses: above the median of ln(predicted / true), below half of the range that holds 90% of "
    "it. Means over trainings at the largest label budget; dashed in a colour: from scratch.",
    "loss_curves": "Validation losses, means over trainings; thin: training losses.",
}


def pictures(results: Sequence[Result], out: Path, target: Path) -> list[Picture]:
    """Draw every figure into a folder and return them with their captions, in reading order."""
    forces = [result for result in results if result.case.kind == "forces" and result.ok]
    drawn: Mapping[str, Path | None] = {
        "force_vectors": force_vectors(forces, out, target / "force_vectors.png"),
        "label_efficiency": label_efficiency(forces, target / "label_efficiency.png"),
        "magnitudes": magnitudes(forces, target / "magnitudes.png"),
        "loss_curves": loss_curves(results, out, target / "loss_curves.png"),
    }
    return [Picture(CAPTIONS[name], [path]) for name, path in drawn.items() if path is not None]


def force_vectors(forces: Sequence[Result], out: Path, path: Path) -> Path | None:
    """Draw true and predicted forces along one held-out orbit (LSSAR paper, Fig. 1).

    One panel per model at its largest label budget, of its first training, one with random weights
    and the look-up table; without the scratch arm where that would be more than eight. All panels
    show the same orbit, the one whose predicted steps go furthest around at a moderate
    eccentricity.
    """
    known = _with_file(forces, out, "predictions")
    trained = [group[0] for group in _showcase(known)]
    others = [x for x in known if x.case.arm.startswith("untrained")][:1]
    shown = [*trained, *others, *_controls(known, *DRAWN)]
    if len(shown) > MOST_PANELS:
        shown = [result for result in shown if result.case.arm != "scratch"]
    if not shown:
        return None
    tables = [_predictions(result, out) for result in shown]
    sequence = _widest_orbit(tables[0])
    chosen = [table.sequence_id == sequence for table in tables]
    position = tables[0].vectors["position"][chosen[0]]
    true = tables[0].vectors["force_vector"][chosen[0]]
    longest = np.linalg.norm(true, axis=1).max()
    arrows: list[tuple[str, np.ndarray, str]] = [("true force", true, TRUTH)]
    style = looks([result.case.variant for result in trained])
    for result, table, rows in zip(shown, tables, chosen, strict=True):
        force = table.vectors["force_vector_predicted"][rows]
        colour = style[result.case.variant]["color"] if result in trained else CONTROL
        arrows.append((_title(result), force, colour))
    span = np.abs(position).max()
    with panels(len(arrows), 4, 2.05, 2.35, sharex=True, sharey=True) as (figure, axes):
        for axis, (title, force, colour) in zip(axes, arrows, strict=True):
            axis.plot(*position.T, "-", color=PALE, lw=1)
            axis.plot(0, 0, "o", color=SUN, ms=8)
            axis.quiver(
                *position.T,
                *(force / longest * span * 0.9).T,
                color=colour,
                angles="xy",
                scale_units="xy",
                scale=1,
                width=0.01,
            )
            ends = -1.25 * span, 1.25 * span
            axis.set(xlim=ends, ylim=ends, aspect="equal")
            axis.set_title(title, fontsize=8)
        figure.supxlabel(
            "position relative to the star (AU); the longest arrow of the true force is "
            f"{longest:.2g} solar masses AU / year²"
        )
        return save_figure(figure, path)


def magnitudes(forces: Sequence[Result], path: Path) -> Path | None:
    """Draw the error of predicted magnitudes by distance and masses, one line per model."""
    known = [result for result in forces if result.details.get("residuals")]
    controls = [[result] for result in _controls(known, *DRAWN, CEILING)]
    groups = [*_showcase(known), *controls]
    if not groups:
        return None
    style = looks([group[0].case.variant for group in groups])
    with canvas(8.2, 5.4, nrows=2, ncols=3, sharex="col", sharey="row") as (figure, axes):
        drawn: set[str] = set()
        for group in groups:
            case = group[0].case
            how = {**style[case.variant], "ls": ARMS.get(case.arm, "-"), "lw": 1.2}
            how |= {"ms": 3.5, "markevery": 5, "mfc": filled(how["color"], case.arm)}
            if case.arm not in ARMS:
                how = {"color": CONTROL, "ls": LINES[1 + controls.index(group) % 2]}
            name = None if case.arm == "scratch" and case.variant in drawn else case.variant
            drawn.add(case.variant)
            for (above, below), variable in zip(axes.T, NAMES, strict=True):
                bins = _mean_bins([result.details["residuals"][variable] for result in group])
                above.plot(bins["centre"], bins["median"], label=name, **how)
                below.plot(bins["centre"], (bins["high"] - bins["low"]) / 2, **how)
        for (above, below), variable in zip(axes.T, NAMES, strict=True):
            above.axhline(0, color=TRUTH, lw=0.8)
            below.set(xscale="log", yscale="log", xlabel=UNITS[variable])
            for axis in (above, below):
                axis.grid(axis="y")
        axes[0, 0].set_ylabel("median of ln(predicted / true)")
        axes[1, 0].set_ylabel("half of its 5 to 95% range")
        axes[1, 0].xaxis.set_major_formatter(lambda x, _: f"{x:g}")
        axes[1, 0].xaxis.set_minor_formatter(NullFormatter())
        axes[1, 0].set_xticks([x for x in (0.1, 0.2, 0.5, 1, 2, 5, 10) if _inside(axes[1, 0], x)])
        if {group[0].case.arm for group in groups} >= set(ARMS):
            axes[0, 0].plot([], [], color=CONTROL, ls="--", marker="o", ms=3.5, mfc="white",
                            label="hollow: from scratch")  # fmt: skip
        legend(figure)
        return save_figure(figure, path)


def _inside(axis: Any, x: float) -> bool:
    low, high = axis.get_xlim()
    return bool(low <= x <= high)


def _mean_bins(bins: Sequence[Mapping[str, Sequence[float]]]) -> dict[str, npt.NDArray]:
    """Return the mean of bins of several trainings; of those that have the first one's places."""
    alike = [each for each in bins if len(each["centre"]) == len(bins[0]["centre"])]
    return {name: np.mean([each[name] for each in alike], axis=0) for name in bins[0]}


def loss_curves(results: Sequence[Result], out: Path, path: Path) -> Path | None:
    """Draw losses of training (thin) and validation: world models, then heads by budget."""
    trained = [result for result in _with_file(results, out, "curves") if result.ok]
    if not trained:
        return None
    heads = sorted((x for x in trained if x.case.kind == "forces"), key=budget_of)
    world_models = [result for result in trained if result.case.kind == "world model"]
    stages = {"pre-training": world_models} if world_models else {}
    for result in heads:
        stages.setdefault(f"force head, {_labels(result)}", []).append(result)
    style = looks(list(dict.fromkeys(result.case.variant for result in trained)))
    with panels(len(stages), 3, 8.2 / min(3, len(stages)), 3.1) as (figure, axes):
        for axis, (title, members) in zip(axes, stages.items(), strict=True):
            groups = grouped(members, lambda result: (result.case.variant, result.case.arm))
            _losses(axis, groups, out, style)
            nats = title == "pre-training"
            axis.set(title=title, xlabel="step", ylabel="nats per row" if nats else "loss")
            axis.grid(axis="y")
        legend(figure)
        return save_figure(figure, path)


def _losses(
    axis: Any,
    groups: Mapping[tuple[str, str], Sequence[Result]],
    out: Path,
    style: Mapping[str, Mapping[str, Any]],
) -> None:
    """Draw the mean losses of the trainings of each model and arm."""
    lowest = math.inf
    for (variant, name), members in groups.items():
        files = [file for x in members if (file := folder.file(out, x, "curves"))]
        curves = pd.concat([pd.read_csv(file) for file in files]).groupby("step").mean()
        training, validation = (curves[x].dropna() for x in ("train_loss", "val_loss"))
        how = look(style[variant], name)
        axis.plot(training.index, training, lw=0.5, alpha=0.4, **{**how, "marker": None})
        # Pre-training and fine-tuning look alike.
        label = f"{variant}, {'pretrained' if name == 'pretraining' else name}"
        some = -(-len(validation) // 6) or None
        axis.plot(validation.index, validation, markevery=some, label=label, **how)
        lowest = min([lowest, *validation])
    axis.set_yscale("log")
    if math.isfinite(lowest):
        axis.set_ylim(bottom=lowest / 2)  # memorised labels go to zero and say nothing more


def _with_file(results: Iterable[Result], out: Path, role: str) -> list[Result]:
    return [result for result in results if folder.file(out, result, role)]


def _predictions(result: Result, out: Path) -> predictions.Predictions:
    file = folder.file(out, result, "predictions")
    assert file is not None
    return predictions.read(file, str(result.case.law))


def _showcase(forces: Iterable[Result]) -> list[list[Result]]:
    """Return, for each model and trained arm, its trainings at its largest label budget."""
    groups: dict[tuple[str, str], list[Result]] = {}
    for result in sorted(forces, key=lambda x: (-budget_of(x), x.case.seed or 0)):
        if result.case.arm in ARMS:
            group = groups.setdefault((result.case.arm, result.case.variant), [result])
            if result is not group[0] and budget_of(result) == budget_of(group[0]):
                group.append(result)
    return [groups[name] for name in sorted(groups, key=lambda name: name[0])]


def _controls(forces: Iterable[Result], *names: str) -> list[Result]:
    """Return the named controls, each at its largest label budget, of the first seed."""
    ordered = sorted(forces, key=lambda x: (budget_of(x), -(x.case.seed or 0)))
    return list({x.case.variant: x for x in ordered if x.case.variant in names}.values())


def _labels(result: Result) -> str:
    labels = result.case.get("labels")
    return "no labels" if labels is None else f"{labels} labels"


def _title(result: Result) -> str:
    words = f"{arm(result.case.arm)}, {_labels(result)}"
    return "\n".join([display(result.case.variant), *textwrap.wrap(words, 26)])


def _widest_orbit(table: predictions.Predictions, most: float = 2.0) -> Any:
    """Return the sequence whose points go furthest around with r_max / r_min below ``most``."""
    widest, answer = -1.0, table.sequence_id[0]
    for sequence in np.unique(table.sequence_id)[:400]:
        x, y = table.vectors["position"][table.sequence_id == sequence].T
        r = np.hypot(x, y)
        turned = abs(np.ptp(np.unwrap(np.arctan2(y, x))))
        if r.max() / r.min() < most and r.max() / r.min() > 1.2 and widest < turned < 6.2:
            widest, answer = turned, sequence
    return answer
