"""The figures of the flagship, made from its results and the files that they name."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from orbits.runs import folder
from orbits.runs.figure import canvas, legend, save_figure
from orbits.runs.page import Picture
from orbits.runs.palette import COLOURS, LINES, MARKERS, TRUTH
from orbits.runs.result import Result
from symreg import predictions

ARMS = {"pretrained": "-", "scratch": "--"}
"""Trained arms and their lines."""
MOST_PANELS = 8
SUN = COLOURS[5]
NEAREST = ("2-NN on the true state", "k-NN on the true state")
"""The look-up table beside which models are drawn, and what results before 2026-11 call it."""
CAPTIONS = {
    "force_vectors": "Forces along one held-out orbit, true and predicted (drawn to one scale).",
    "label_efficiency": "What pre-training is worth: accuracy against the label budget, both arms "
    "at equal numbers of steps. Lines join means; dots are seeds, each with its own labelled "
    "sequences. Unlimited: every step is new, so the longer scratch arm sees more labels.",
    "magnitudes": "Predicted against true magnitude on held-out sequences.",
    "loss_curves": "Training (thin) and validation (thick) losses.",
}


def pictures(results: Sequence[Result], out: Path, target: Path) -> list[Picture]:
    """Draw every figure into a folder and return them with their captions, in reading order.

    Args:
        results: The results of one world.
        out: The results folder, whose files they name.
        target: The folder of the figures.
    """
    forces = [result for result in results if result.case.kind == "forces" and result.ok]
    drawn: Mapping[str, Path | None] = {
        "force_vectors": force_vectors(forces, out, target / "force_vectors.png"),
        "label_efficiency": label_efficiency(forces, target / "label_efficiency.png"),
        "magnitudes": magnitudes(forces, out, target / "magnitudes.png"),
        "loss_curves": loss_curves(results, out, target / "loss_curves.png"),
    }
    return [Picture(CAPTIONS[name], [path]) for name, path in drawn.items() if path is not None]


def force_vectors(forces: Sequence[Result], out: Path, path: Path) -> Path | None:
    """Draw true and predicted forces along one held-out orbit (LSSAR paper, Fig. 1).

    One panel per model at its largest label budget; without the scratch arm where that would be
    more than eight. All panels show the same orbit, the one whose predicted steps go furthest
    around at a moderate eccentricity.
    """
    known = _with_file(forces, out, "predictions")
    shown = [*_showcase(known), *_controls(known, *NEAREST)]
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
    panels: list[tuple[str, np.ndarray]] = [("true force", true)]
    for result, table, rows in zip(shown, tables, chosen, strict=True):
        panels.append((_title(result), table.vectors["force_vector_predicted"][rows]))
    span = np.abs(position).max()
    with _grid(len(panels), 4, 3.1, 3.6) as (figure, axes):
        for axis, (title, force) in zip(axes, panels, strict=False):
            axis.plot(*position.T, ":", color="#999999", lw=1)
            axis.plot(0, 0, "o", color=SUN, ms=8)
            axis.quiver(
                *position.T,
                *(force / longest * span * 0.9).T,
                color=TRUTH if title == "true force" else COLOURS[0],
                angles="xy",
                scale_units="xy",
                scale=1,
                width=0.008,
            )
            ends = -1.25 * span, 1.25 * span
            axis.set(title=title, xlim=ends, ylim=ends, aspect="equal")
        figure.supxlabel("position relative to the star (AU)")
        return save_figure(figure, path)


def label_efficiency(forces: Sequence[Result], path: Path) -> Path | None:
    """Draw accuracy against the label budget, pre-trained and from scratch."""
    trained = [result for result in forces if result.case.arm in ARMS]
    budgets = sorted({_budget(result) for result in trained})
    if len(budgets) < 2:
        return None
    models = list(dict.fromkeys(result.case.variant for result in trained))
    with canvas(6.4, 4) as (figure, axis):
        for number, model in enumerate(models):
            for arm in ARMS:
                mine = [x for x in trained if (x.case.variant, x.case.arm) == (model, arm)]
                _accuracy(axis, mine, budgets, f"{model}, {arm}", _look(number, arm))
        ticks = ["unlimited" if math.isinf(budget) else f"{budget:g}" for budget in budgets]
        axis.set_xticks(range(len(budgets)), ticks)
        axis.set(xlabel="labelled sequences", ylabel="held-out R² of log F")
        axis.legend()
        return save_figure(figure, path)


def _accuracy(
    axis: Any,
    results: Sequence[Result],
    budgets: Sequence[float],
    label: str,
    look: Mapping[str, Any],
) -> None:
    """Draw the means of one model and arm as a line and its seeds as dots."""
    points = [(budgets.index(_budget(x)), x.value("r2_log")) for x in results]
    known = pd.DataFrame(points, columns=["place", "r2"]).dropna()
    if known.empty:
        return
    means = known.groupby("place")["r2"].mean()
    axis.plot(means.index, means, ms=5, markevery=[], label=label, **look)
    axis.plot(known["place"], known["r2"], ms=5, **{**look, "linestyle": "none"})


def magnitudes(forces: Sequence[Result], out: Path, path: Path) -> Path | None:
    """Draw predicted against true magnitude on held-out sequences, one panel per model."""
    known = _with_file(forces, out, "predictions")
    shown = [*_showcase(known), *_controls(known, *NEAREST, "ceiling")]
    if not shown:
        return None
    with _grid(len(shown), 4, 3.1, 3.2, sharex=True, sharey=True) as (figure, axes):
        for axis, result in zip(axes, shown, strict=False):
            table = _predictions(result, out).subsample(0, 3000)
            positive = table.force_predicted > 0
            points = table.force[positive], table.force_predicted[positive]
            axis.loglog(*points, ".", ms=2, alpha=0.4, color=COLOURS[0], rasterized=True)
            ends = table.force.min(), table.force.max()
            axis.loglog(ends, ends, "-", color=TRUTH, lw=0.8)
            r2 = result.value("r2_log")
            axis.set_title(f"{_title(result)}, R² {'-' if r2 is None else f'{r2:.3f}'}")
        figure.supxlabel("true F (solar mass AU / year²)")
        figure.supylabel("predicted F")
        return save_figure(figure, path)


def loss_curves(results: Sequence[Result], out: Path, path: Path) -> Path | None:
    """Draw losses of training (thin) and validation (thick): world models, then heads by budget."""
    trained = [result for result in _with_file(results, out, "curves") if result.ok]
    if not trained:
        return None
    heads = sorted((x for x in trained if x.case.kind == "forces"), key=_budget)
    world_models = [result for result in trained if result.case.kind == "world model"]
    panels = {"pre-training: nats per row": world_models}
    for result in heads:
        panels.setdefault(f"force head, {_labels(result)}", []).append(result)
    models = list(dict.fromkeys(result.case.variant for result in trained))
    with _grid(len(panels), 3, 4.2, 3.4) as (figure, axes):
        for axis, (title, members) in zip(axes, panels.items(), strict=False):
            _losses(axis, members, out, models)
            axis.set(title=title, xlabel="step")
        legend(figure)
        return save_figure(figure, path)


def _losses(axis: Any, results: Sequence[Result], out: Path, models: Sequence[str]) -> None:
    lowest, seen = math.inf, set()
    for result in results:
        arm = result.case.arm
        look = _look(models.index(result.case.variant), arm)
        # Pre-training and fine-tuning look alike.
        label = f"{result.case.variant}, {'pretrained' if arm == 'pretraining' else arm}"
        file = folder.file(out, result, "curves")
        assert file is not None
        curves = pd.read_csv(file)
        training, validation = (
            curves.reindex(columns=["step", name]).dropna() for name in ("train_loss", "val_loss")
        )
        axis.plot(*training.to_numpy().T, lw=0.5, alpha=0.4, **{**look, "marker": None})
        some = -(-len(validation) // 8) or None
        shown = None if label in seen else label
        axis.plot(*validation.to_numpy().T, lw=1.4, ms=4, markevery=some, label=shown, **look)
        seen.add(label)
        lowest = min([lowest, *validation["val_loss"]])
    axis.set_yscale("log")
    if math.isfinite(lowest):
        axis.set_ylim(bottom=lowest / 3)  # memorised labels go to zero and say nothing more


def _look(number: int, arm: str) -> dict[str, Any]:
    """Return the look of a curve of one of the models, as arguments of matplotlib."""
    colour = COLOURS[number % len(COLOURS)]
    elsewhere = arm not in ("pretraining", *ARMS)
    return {
        "color": colour,
        "linestyle": LINES[2] if elsewhere else ARMS.get(arm, "-"),
        "marker": MARKERS[number % len(MARKERS)],
        "markerfacecolor": "white" if arm == "scratch" else colour,
        "fillstyle": "left" if elsewhere else "full",
    }


@contextlib.contextmanager
def _grid(
    panels: int, columns: int, width: float, height: float, **subplots: Any
) -> Iterator[tuple[Any, Any]]:
    """Yield a figure and the axes of so many panels, each of a width and height in inches."""
    across = min(columns, panels)
    down = -(-panels // across)
    size = width * across, height * down
    with canvas(*size, nrows=down, ncols=across, squeeze=False, **subplots) as (figure, axes):
        for axis in axes.flat[panels:]:
            axis.set_visible(False)
        yield figure, axes.flat


def _with_file(results: Iterable[Result], out: Path, role: str) -> list[Result]:
    return [result for result in results if folder.file(out, result, role)]


def _predictions(result: Result, out: Path) -> predictions.Predictions:
    file = folder.file(out, result, "predictions")
    assert file is not None
    return predictions.read(file, str(result.case.law))


def _showcase(forces: Iterable[Result]) -> list[Result]:
    """Return, for each model and trained arm, the first seed at its largest label budget."""
    trained = [result for result in forces if result.case.arm in ARMS]
    best: dict[tuple[str, str], Result] = {}
    for result in sorted(trained, key=lambda x: (-_budget(x), x.case.seed or 0)):
        best.setdefault((result.case.arm, result.case.variant), result)
    return [best[name] for name in sorted(best, key=lambda name: name[0])]


def _controls(forces: Iterable[Result], *names: str) -> list[Result]:
    """Return the named controls, each at its largest label budget, of the first seed."""
    ordered = sorted(forces, key=lambda x: (_budget(x), -(x.case.seed or 0)))
    return list({x.case.variant: x for x in ordered if x.case.variant in names}.values())


def _budget(result: Result) -> float:
    labels = result.case.get("labels")
    return math.inf if labels == "unlimited" else float(labels or 0)


def _labels(result: Result) -> str:
    labels = result.case.get("labels")
    return "no labels" if labels is None else f"{labels} labels"


def _title(result: Result) -> str:
    return f"{result.case.variant}\n{result.case.arm}, {_labels(result)}"


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
