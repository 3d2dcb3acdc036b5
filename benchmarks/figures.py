"""The figures of a run, each made from its result lines and the files they name."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure

from orbits import laws, pictures
from symreg import predictions, results
from symreg.leaderboard import Row
from worldmodel.legend import legend
from worldmodel.palette import COLOURS, MARKERS, SUN, TRUTH

Line = Mapping[str, Any]
ARM_STYLE = {"pretrained": "-", "scratch": "--"}
MOST_PANELS = 8


def draw_all(out: Path, lines: Sequence[Line], rows: list[Row], law: str) -> dict[str, Path]:
    """Draw every figure into ``out/figures`` and return the paths by name, in reading order."""
    folder = out / "figures"
    predictors = [x for x in lines if x["kind"] == "predictor" and x["status"] == "ok"]
    drawings: dict[str, Callable[[], Figure | None]] = {
        "force_vectors": lambda: force_vectors(out, predictors),
        "exponents": lambda: exponents(rows, law),
        "label_efficiency": lambda: label_efficiency(predictors),
        "magnitudes": lambda: magnitudes(out, predictors),
        "loss_curves": lambda: loss_curves(out, lines),
    }
    paths = {}
    for name, draw in drawings.items():
        figure = draw()
        if figure is not None:
            paths[name] = pictures.save(figure, folder / f"{name}.png")
    return paths


def force_vectors(out: Path, predictors: list[Line]) -> Figure | None:
    """True and predicted forces along one held-out orbit (LSSAR paper, Fig. 1).

    One panel per model at its largest label budget; without the scratch arm where that would be
    more than eight. All panels show the same orbit, the one whose answered steps go furthest
    around at a moderate eccentricity.
    """
    answered = _with_file(out, predictors, "predictions")
    shown = [*_showcase(answered), *_controls(answered, "k-NN oracle")]
    if len(shown) > MOST_PANELS:
        shown = [line for line in shown if line["row"]["arm"] != "scratch"]
    if not shown:
        return None
    tables = [predictions.read(out / line["files"]["predictions"], line["task"]) for line in shown]
    sequence = _widest_orbit(tables[0])
    chosen = [table.sequence_id == sequence for table in tables]
    position = tables[0].vectors["position"][chosen[0]]
    true = tables[0].vectors["force_vector"][chosen[0]]
    longest = np.linalg.norm(true, axis=1).max()
    panels: list[tuple[str, np.ndarray]] = [("true force", true)]
    for line, table, rows in zip(shown, tables, chosen, strict=True):
        title = f"{line['row']['model']}\n{line['row']['arm']}, {_labels(line)}"
        panels.append((title, table.vectors["force_vector_predicted"][rows]))
    columns = min(4, len(panels))
    height = -(-len(panels) // columns)
    figure, axes = plt.subplots(
        height, columns, figsize=(3.1 * columns, 3.6 * height), squeeze=False, layout="constrained"
    )
    span = np.abs(position).max()
    for axis in axes.flat[len(panels) :]:
        axis.set_visible(False)
    for axis, (title, force) in zip(axes.flat, panels, strict=False):
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
        axis.set_title(title, fontsize=9)
        axis.set_xlim(-1.25 * span, 1.25 * span)
        axis.set_ylim(-1.25 * span, 1.25 * span)
        axis.set_aspect("equal")
        axis.tick_params(labelsize=7)
    figure.supxlabel("position relative to the star (AU)", fontsize=9)
    return figure


def exponents(rows: list[Row], law: str) -> Figure | None:
    """Fitted exponents and constant of every row with their 95% intervals."""
    rows = [row for row in rows if row.exponents and row.constant]
    truth = laws.get(law)
    if not rows or truth.exponents is None:
        return None
    rows = rows[::-1]
    names = [f"{row.model}, {row.arm}" + _budget(row.labels) for row in rows]
    panels = [
        (name, truth.exponents[name], [r.exponents[name] for r in rows])
        for name in ("m1", "m2", "r")
    ]
    constants = [row.constant for row in rows if row.constant is not None]
    panels.append(("constant", next(iter(truth.parameters.values())), constants))
    figure, axes = plt.subplots(
        1, 4, figsize=(12.5, 1.2 + 0.26 * len(rows)), sharey=True, layout="constrained"
    )
    for axis, (name, value, intervals) in zip(axes, panels, strict=True):
        axis.axvline(value, color=TRUTH, lw=1, ls=":")
        for height, (row, (mean, low, high)) in enumerate(zip(rows, intervals, strict=True)):
            colour = "#888888" if row.is_control else COLOURS[0]
            axis.plot([low, high], [height, height], color=colour, lw=2)
            axis.plot(mean, height, "o", color=colour, ms=4)
        axis.set_title(f"exponent of {name}" if name != "constant" else name, fontsize=9)
        axis.grid(axis="x", alpha=0.3)
        axis.tick_params(labelsize=8)
    axes[0].set_yticks(range(len(rows)), names, fontsize=8)
    figure.supxlabel(
        "dotted: the true law; bars: envelope of the seeds' 95% bootstrap intervals over sequences",
        fontsize=9,
    )
    return figure


def label_efficiency(predictors: list[Line]) -> Figure | None:
    """R2 of log force against the number of labelled sequences, pre-trained and scratch."""
    budgets = sorted({_order(x) for x in predictors if x["row"]["arm"] in ARM_STYLE})
    if len(budgets) < 2:
        return None
    figure, axis = plt.subplots(figsize=(6.4, 4), layout="constrained")
    models = list(
        dict.fromkeys(x["row"]["model"] for x in predictors if x["row"]["arm"] in ARM_STYLE)
    )
    for number, model in enumerate(models):
        for arm in ARM_STYLE:
            mine = [x for x in predictors if (x["row"]["model"], x["row"]["arm"]) == (model, arm)]
            by_budget = [
                [x["metrics"]["r2_log"] for x in mine if _order(x) == budget] for budget in budgets
            ]
            places = [i for i, values in enumerate(by_budget) if values]
            if not places:
                continue
            means = [np.mean(by_budget[i]) for i in places]
            look = _look(number, arm)
            axis.plot(places, means, ms=5, markevery=[], label=f"{model}, {arm}", **look)
            for i in places:
                dots = {**look, "linestyle": "none"}
                axis.plot([i] * len(by_budget[i]), by_budget[i], ms=5, **dots)
    ticks = ["unlimited" if np.isinf(b) else f"{b:g}" for b in budgets]
    axis.set_xticks(range(len(budgets)), ticks)
    axis.set_xlabel("labelled sequences")
    axis.set_ylabel("held-out R² of log F")
    axis.legend(fontsize=8)
    axis.grid(alpha=0.3)
    return figure


def magnitudes(out: Path, predictors: list[Line]) -> Figure | None:
    """Predicted against true magnitude on held-out sequences, one panel per model."""
    answered = _with_file(out, predictors, "predictions")
    shown = [*_showcase(answered), *_controls(answered, "k-NN oracle", "ceiling")]
    if not shown:
        return None
    columns = min(4, len(shown))
    height = -(-len(shown) // columns)
    figure, axes = plt.subplots(
        height,
        columns,
        figsize=(3.1 * columns, 3.2 * height),
        squeeze=False,
        sharex=True,
        sharey=True,
        layout="constrained",
    )
    for axis in axes.flat[len(shown) :]:
        axis.set_visible(False)
    for axis, line in zip(axes.flat, shown, strict=False):
        table = predictions.read(out / line["files"]["predictions"], line["task"]).subsample(
            0, 3000
        )
        positive = table.force_predicted > 0
        axis.loglog(
            table.force[positive],
            table.force_predicted[positive],
            ".",
            ms=2,
            alpha=0.4,
            color=COLOURS[0],
            rasterized=True,
        )
        ends = np.percentile(table.force, [0, 100])
        axis.loglog(ends, ends, "-", color=TRUTH, lw=0.8)
        r2 = line["metrics"]["r2_log"]
        title = f"{line['row']['model']}\n{line['row']['arm']}, {_labels(line)}"
        axis.set_title(f"{title}, R² {'-' if r2 is None else f'{r2:.3f}'}", fontsize=8)
        axis.tick_params(labelsize=7)
    figure.supxlabel("true F (solar mass AU / year²)", fontsize=9)
    figure.supylabel("predicted F", fontsize=9)
    return figure


def loss_curves(out: Path, lines: Sequence[Line]) -> Figure | None:
    """Training (thin) and validation (thick) losses: pre-training, then one panel per budget."""
    trained = _with_file(out, lines, "curves")
    pretraining = [x for x in trained if x["kind"] == "pretraining"]
    forces = sorted((x for x in trained if x["kind"] == "predictor"), key=_order)
    panels = {"pre-training: nats per row": pretraining}
    for line in forces:
        panels.setdefault(f"force head, {_labels(line)}", []).append(line)
    if not trained:
        return None
    columns = min(3, len(panels))
    height = -(-len(panels) // columns)
    figure, axes = plt.subplots(
        height, columns, figsize=(4.2 * columns, 3.4 * height), squeeze=False, layout="constrained"
    )
    for axis in axes.flat[len(panels) :]:
        axis.set_visible(False)
    models = list(dict.fromkeys(line["row"]["model"] for line in trained))
    for axis, (title, members) in zip(axes.flat, panels.items(), strict=False):
        _loss_panel(axis, out, members, models)
        axis.set_title(title, fontsize=9)
        axis.set_xlabel("step", fontsize=8)
        axis.grid(alpha=0.3)
    legend(figure)
    return figure


def _loss_panel(axis: Any, out: Path, lines: Sequence[Line], models: list[str]) -> None:
    lowest, seen = np.inf, set()
    for line in lines:
        row = line["row"]
        look = _look(models.index(row["model"]), row["arm"])
        arm = "pretrained" if row["arm"] == "pretraining" else row["arm"]  # they look alike
        label = f"{row['model']}, {arm}"
        curves = _curves(out / line["files"]["curves"])
        axis.plot(*curves["train_loss"], lw=0.5, alpha=0.4, **{**look, "marker": None})
        shown = None if label in seen else label
        some = -(-len(curves["val_loss"][0]) // 8) or None
        axis.plot(*curves["val_loss"], lw=1.4, ms=4, markevery=some, label=shown, **look)
        seen.add(label)
        lowest = min([lowest, *curves["val_loss"][1]])
    axis.set_yscale("log")
    if np.isfinite(lowest):
        axis.set_ylim(bottom=lowest / 3)  # memorised labels go to zero and say nothing more
    axis.tick_params(labelsize=7, which="both")


def _look(number: int, arm: str) -> dict[str, Any]:
    """Return the look of a curve of one of the models, as arguments of matplotlib."""
    colour = COLOURS[number % len(COLOURS)]
    elsewhere = arm not in ("pretraining", *ARM_STYLE)
    return {
        "color": colour,
        "linestyle": ":" if elsewhere else ARM_STYLE.get(arm, "-"),
        "marker": MARKERS[number % len(MARKERS)],
        "markerfacecolor": "white" if arm == "scratch" else colour,
        "fillstyle": "left" if elsewhere else "full",
    }


def _with_file(out: Path, lines: Iterable[Line], role: str) -> list[Line]:
    return [line for line in lines if results.file(out, line, role)]


def _showcase(predictors: Iterable[Line]) -> list[Line]:
    """Return, for each model and trained arm, the first seed at its largest label budget."""
    trained = [x for x in predictors if x["row"]["arm"] in ARM_STYLE]
    best: dict[tuple[str, str], Line] = {}
    for line in sorted(trained, key=lambda x: (-_order(x), x["row"]["seed"])):
        best.setdefault((line["row"]["arm"], line["row"]["model"]), line)
    return [best[name] for name in sorted(best, key=lambda name: name[0])]


def _controls(predictors: Iterable[Line], *models: str) -> list[Line]:
    """Return the named controls, each at its largest label budget."""
    best: dict[str, Line] = {}
    for line in sorted(predictors, key=_order):
        if line["row"]["model"] in models:
            best[line["row"]["model"]] = line
    return list(best.values())


def _order(line: Line) -> float:
    labels = line["row"]["labels"]
    return float("inf") if labels == "unlimited" else float(labels or 0)


def _labels(line: Line) -> str:
    labels = line["row"]["labels"]
    return f"{labels} labels" if labels is not None else "no labels"


def _budget(labels: str) -> str:
    return "" if labels in ("-", "None", "") else f", {labels}"


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


def _curves(path: Path) -> dict[str, tuple[list[int], list[float]]]:
    curves: dict[str, tuple[list[int], list[float]]] = {
        "train_loss": ([], []),
        "val_loss": ([], []),
    }
    with path.open(newline="") as file:
        for entry in csv.DictReader(file):
            for name, (steps, values) in curves.items():
                if entry.get(name):
                    steps.append(int(entry["step"]))
                    values.append(float(entry[name]))
    return curves
