"""Tables: the power laws, the points, and references without training."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean

from benchmarks.scaling.axes import AXES, fixed, named
from benchmarks.scaling.curves import (
    EXAM,
    EXPONENTS,
    FITTED,
    Fit,
    Point,
    controls,
    fits,
    frontier,
    points,
    several_widths,
)
from orbits.implied.within import is_power
from orbits.runs.result import Result, grouped
from orbits.runs.study import Study
from orbits.runs.table import Column, Table, Value, mean_over_seeds, number

MEASURES = {"missed": "missed", "nll": "nats", EXAM: "exam"}
LAWS = "Power laws"
BEST_WIDTHS = "the best of widths"
LAWS_CAPTION = (
    "Least squares of logarithms, seed by seed; exponent: over seeds. Bend: coefficient of the "
    "squared logarithm, 0 for a power law."
)
COMPUTE_CAPTION = (
    " Compute: FLOPs of pre-training, of those widths that no other one undercuts, by means, for "
    "fewer FLOPs."
)
EXAM_CAPTION = " Those of the exam count the training of its head, too."
POINTS = "Points"
POINTS_CAPTION = (
    "Missed: rms error of one step's kick over the rms kick. r: the power of the distance by which "
    "orbits are continued, of the training's world, and closer than any of the training, or how "
    "many trainings follow no power. Exam: of a force head on it."
)
CONTROLS = "Without a training"
CONTROLS_CAPTION = (
    "The law is given to the orbit fit alone. Missed by the fit and by pieces of orbits: over the "
    "first {} sequences."
)


def tables(study: Study, results: Sequence[Result]) -> list[Table]:
    """Return power laws, points and controls."""
    found = points(results)
    return [_laws(found), _points(found), _controls(results)]


def _laws(found: Sequence[Point]) -> Table:
    columns = [Column(x) for x in ("who", "held fixed", "of", "in", "exponent", "bend", "decades")]
    rows = []
    for measure, name in MEASURES.items():
        for axis in AXES:
            for (variant, *places), each in fits(found, axis, measure).items():
                others = [other for other in AXES if other != axis]
                rows.append(_law(variant, fixed(others, places), name, axis, each))
        for variant, each in frontier(found, measure).items():
            if not several_widths(variant, found):
                continue  # compute is its steps then
            rows.append(_law(variant, BEST_WIDTHS, name, "compute", each))
    of_compute = [place for place, row in enumerate(rows) if row[1].text == BEST_WIDTHS]
    caption = LAWS_CAPTION + COMPUTE_CAPTION * bool(of_compute)
    if any(rows[place][2].text == MEASURES[EXAM] for place in of_compute):
        caption += EXAM_CAPTION
    return Table(LAWS, columns, rows, caption, front=of_compute)


def _law(variant: str, held: str, measure: str, axis: str, each: Fit) -> list[Value]:
    words = [Value(text, kind="name") for text in (variant, held, measure, axis)]
    exponent = mean_over_seeds(each.exponents, ".3f")
    bend = mean_over_seeds(each.bends, ".3f") if each.bends else Value("-")
    return [*words, exponent, bend, number(each.span, ".2f")]


def _points(found: Sequence[Point]) -> Table:
    names = ("who", "width", "steps", "sequences", "FLOPs", "missed", "nats", "r", "r, closer")
    has_exam = any("exam" in point.metrics for point in found)
    columns = [Column(x) for x in (*names, *(["exam"] if has_exam else []))]
    groups = grouped(found, lambda x: (x.variant, x.heads, x.steps, x.sequences))
    metrics = ("missed", "nll", *EXPONENTS)
    rows = []
    for (variant, heads, steps, sequences), each in groups.items():
        boxes = [_box(each, name) for name in (*metrics, *(["exam"] if has_exam else []))]
        rows.append(
            [
                Value(variant, kind="name"),
                Value(named("heads", heads), order=heads),
                Value(f"{steps:,}", order=steps),
                Value(f"{sequences:,}" if sequences else "new", order=sequences or 1e18),
                number(fmean(point.metrics["flops"] for point in each), ".2g"),
                *boxes,
            ]
        )
    return Table(POINTS, columns, rows, POINTS_CAPTION)


def _box(each: Sequence[Point], name: str) -> Value:
    values = [point.metrics[name] for point in each if name in point.metrics]
    if name in EXPONENTS and (none := sum(not is_power(x) for x in values)):
        return Value(f"no power in {none} of {len(values)}")
    return mean_over_seeds(values, ".3f") if values else Value("-")


def _controls(results: Sequence[Result]) -> Table:
    columns = [Column(x) for x in ("who", "missed", "r", "r, closer")]
    rows = [
        [
            Value(name, kind="name"),
            *(number(result.value(metric), ".3f") for metric in ("missed", *EXPONENTS)),
        ]
        for name, result in controls(results).items()
    ]
    return Table(CONTROLS, columns, rows, caption=CONTROLS_CAPTION.format(FITTED))
