"""Tables and figures that tasks share: values by seed as means with intervals."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np

from benchmarks.task import Line, Table, by_seed, measurements
from orbits import pictures, untrusted
from worldmodel.palette import COLOURS, MARKERS

STYLES = ("-", "--", ":")
CAPTION = (
    "Mean over seeds with its 95% interval by Student's t; with fewer than three seeds the mean "
    "alone and their number."
)


def interval(values: Mapping[int, float]) -> str:
    """Return values by seed as text: mean [low, high], or mean (n seeds)."""
    from worldmodel.intervals import MINIMUM_SEEDS, over_seeds

    found = list(values.values())
    if len(found) >= MINIMUM_SEEDS:
        return mean_with_interval(over_seeds(found), ".3f")
    return f"{fmean(found):z.3f} ({len(found)} seed{'s'[: len(found) > 1]})"


def mean_with_interval(value: Sequence[float], digits: str) -> str:
    """Return [mean, low, high] as text: mean [low, high]; a mean alone stands alone."""
    mean, *ends = (format(x, f"z{digits}") for x in value)
    return f"{mean} [{', '.join(ends)}]" if ends else mean


def markdown(table: Table) -> str:
    """Return a table as a section of Markdown."""
    header, *body = [[untrusted.markdown(cell) for cell in row] for row in table.cells]
    rows = [header, ["---"] * len(header), *body]
    title, caption = untrusted.markdown(table.title), untrusted.markdown(table.caption)
    return "\n".join([f"## {title}", "", caption, "", *(f"| {' | '.join(r)} |" for r in rows), ""])


def interval_table(
    title: str,
    lines: Sequence[Line],
    keys: Sequence[str],
    metrics: Iterable[str],
    caption: str = CAPTION,
) -> Table:
    """Return a table of some metrics with a row per combination of some parts of the row.

    Rows are in the order of the lines; metrics that no line has are left out.
    """
    columns = {metric: by_seed(lines, metric, *keys) for metric in metrics}
    columns = {metric: values for metric, values in columns.items() if values}
    rows = dict.fromkeys(tuple(x["row"].get(k) for k in keys) for x in measurements(lines))
    found = columns.values()
    body = [
        [*(_plain(part) for part in row), *(interval(v[row]) if row in v else "" for v in found)]
        for row in rows
        if any(row in values for values in found)
    ]
    return Table(title, caption, [[*keys, *columns], *body])


def curves(
    lines: Sequence[Line],
    prefix: str,
    path: Path,
    xlabel: str,
    ylabel: str,
) -> Path:
    """Draw metrics named ``prefix`` and a number against that number, a curve per model.

    Curves join means over seeds; bars reach from the smallest to the largest.
    """
    plt = _pyplot()
    models: dict[str, dict[float, list[float]]] = {}
    for line in measurements(lines):
        points = models.setdefault(line["row"]["model"], {})
        for name, found in line["metrics"].items():
            if name.startswith(prefix):
                place = float(name.removeprefix(prefix).removesuffix("x"))
                points.setdefault(place, []).append(found["value"])
    figure, axes = plt.subplots(figsize=(8.2, 4.4), layout="constrained")
    for number, (model, points) in enumerate(models.items()):
        at = sorted(points)
        means = np.array([fmean(points[x]) for x in at])
        ends = np.array([(min(points[x]), max(points[x])) for x in at])
        reach = np.abs(ends - means[:, None]).T
        axes.errorbar(at, means, yerr=reach, label=model, ms=4, elinewidth=1, **_style(number))
    axes.set_xscale("log", base=2)
    axes.set_xticks(sorted({x for points in models.values() for x in points}))
    axes.xaxis.set_major_formatter(plt.FuncFormatter(lambda x, _: f"{x:g}"))
    axes.set_xlabel(xlabel)
    axes.set_ylabel(ylabel)
    axes.spines[["top", "right"]].set_visible(False)
    figure.legend(loc="outside right upper", fontsize=8, frameon=False)
    return pictures.save(figure, path)


def bars(
    values: Mapping[str, Mapping[int, float]],
    path: Path,
    xlabel: str,
    level: float | None = None,
    named: str = "guessing",
) -> Path:
    """Draw a bar per row with a dot per seed, and a dotted line at a level, if it has a name."""
    plt = _pyplot()
    figure, axes = plt.subplots(figsize=(7.4, 0.9 + 0.3 * len(values)), layout="constrained")
    for place, found in enumerate(values.values()):
        axes.barh(place, fmean(found.values()), color=COLOURS[0], alpha=0.55, height=0.7)
        axes.plot(list(found.values()), [place] * len(found), "o", color=COLOURS[0], ms=4)
    if level is not None:
        axes.axvline(level, color="#222222", lw=0.9, ls=":")
        xlabel = f"{xlabel} (dotted line: {named})"
    axes.set_yticks(range(len(values)), list(values), fontsize=8)
    axes.invert_yaxis()
    axes.set_xlabel(f"{xlabel}; dots are seeds")
    axes.spines[["top", "right"]].set_visible(False)
    return pictures.save(figure, path)


def panels(series: Mapping[str, Mapping[str, Sequence[float]]], path: Path, xlabel: str) -> Path:
    """Draw a panel per title, and in each a curve per label over 0, 1, 2, ..."""
    plt = _pyplot()
    figure, axes = plt.subplots(
        1, len(series), figsize=(8.2, 3.6), layout="constrained", squeeze=False
    )
    for place, (title, labelled) in zip(axes[0], series.items(), strict=True):
        for number, values in enumerate(labelled.values()):
            place.plot(values, ms=3, **_style(number))
        place.set_title(title, fontsize=10)
        place.set_xlabel(xlabel)
        place.set_ylim(bottom=0)
        place.spines[["top", "right"]].set_visible(False)
    labels = list(next(iter(series.values())))
    figure.legend(
        axes[0][0].get_lines(), labels, loc="outside right upper", fontsize=8, frameon=False
    )
    return pictures.save(figure, path)


def _style(number: int) -> dict[str, Any]:
    """Return the look of a curve, which differs from those before it."""
    return {
        "color": COLOURS[number % len(COLOURS)],
        "ls": STYLES[number // len(COLOURS) % len(STYLES)],
        "lw": 1.4,
        "marker": MARKERS[number % len(MARKERS)],
    }


def _plain(part: Any) -> str:
    if isinstance(part, bool):
        return "on" if part else "off"
    return "" if part is None else str(part)


def _pyplot() -> Any:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    return plt
