"""Ratios of time and memory between results of the same case."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from orbits.runs.deferred import deferred
from orbits.runs.result import Quantity, Result
from orbits.runs.table import Column, Table, Value, interval, number

has_gpu = deferred("torch.cuda:is_available")
Bases = Callable[[Result, Sequence[Result]], Mapping[str, Result]]
"""Function of a result and all results of a run: the ones it is divided by, by column name."""

METRICS = {
    "seconds": Quantity("lower", "s", "median seconds of a call"),
    "seconds_20": Quantity("lower", "s", "its 20% quantile"),
    "seconds_80": Quantity("lower", "s", "its 80% quantile"),
}
"""Units and directions of the metrics of :func:`benchmarks.cost.timing.times`."""


def check_device(device: str) -> None:
    """Refuse an unknown or missing device."""
    if device not in ("cpu", "cuda"):
        raise ValueError(f"device must be cpu | cuda, got {device!r}")
    if device == "cuda" and not has_gpu():
        raise ValueError("device cuda needs 1 CUDA device, found 0; use --preset small")


def same_but(result: Result, results: Sequence[Result], **changes: Any) -> Result | None:
    """Return the result of the same case on the same device, but for some fields; None if none."""
    wanted = {**_fields(result), **changes}
    same = (x for x in results if x.ok and _fields(x) == wanted)
    return next((x for x in same if x.manifest["device"] == result.manifest["device"]), None)


def ratio(result: Result, base: Result | None, metric: str) -> float | None:
    """Return a metric divided by that of another result; None where either has none or zero."""
    below = base.value(metric) if base else None
    above = result.value(metric)
    return above / below if above is not None and below else None


def table(
    title: str,
    results: Sequence[Result],
    keys: Sequence[str],
    bases: Bases,
    over: Sequence[str],
    more: Mapping[str, tuple[str, str]],
    caption: str = "",
) -> Table:
    """Return time and memory of results and their ratios to the bases.

    Args:
        title: Heading of the table.
        results: Results of a run; those without metrics are left out.
        keys: Fields of the case that head the first columns.
        bases: Results that a result is divided by.
        over: Names of the bases, a column of time and one of memory each.
        more: Further columns: their metric and its format.
        caption: Caption above the table.
    """
    measured = [result for result in results if result.ok]
    rows = []
    for result in measured:
        divided = bases(result, measured)
        ratios = {
            metric: [number(ratio(result, divided.get(name), metric), ".2f") for name in over]
            for metric in ("seconds", "bytes")
        }
        rows.append(
            [
                *(Value(str(result.case.get(key)), kind="name") for key in keys),
                interval([1e3 * result.metrics[name].value for name in METRICS], ".3f"),
                *ratios["seconds"],
                number(result.metrics["bytes"].value / 2**20, ".1f"),
                *ratios["bytes"],
                *(number(result.value(metric), form) for metric, form in more.values()),
            ]
        )
    times = "times those of this column's name in the same case"
    columns = [
        *map(Column, keys),
        Column("ms", "median of a call in milliseconds, with its 20% and 80% quantiles", "time"),
        *(Column(f"x {name}", times, "time") for name in over),
        Column("MiB", "2^20 bytes", "memory"),
        *(Column(f"MiB x {name}", times, "memory") for name in over),
        *map(Column, more),
    ]
    return Table(title, columns, rows, caption)


def _fields(result: Result) -> dict[str, Any]:
    return {**result.case.setting, "variant": result.case.variant}
