"""Tables: S at each point, the gains for ten times as much, and the references."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.scaling.axes import named
from benchmarks.worlds.names import HELD_OUT, TRAINED
from benchmarks.worlds.scores import Row, prompts, worlds
from benchmarks.worlds_scaling.points import (
    AXES,
    COMPUTE,
    Point,
    fixed,
    gains,
    places,
    points,
    references,
)
from orbits.runs.result import Result
from orbits.runs.study import Study
from orbits.runs.table import NOTHING, Column, Table, Value, mean_over_seeds

POINTS = "Law inferred in context: S"
POINTS_CAPTION = (
    "Share of a change of the prompt's law that continuations follow: 0 imposes one law, 1 follows "
    "each. Half: the longest prompt at half the time step. Nats of a next point and median error "
    "in AU twelve steps after the prompt, over test worlds whose law lies in the training. No law: "
    "continuations obey no power law of an attraction, so S says nothing."
)
GAINS = "Gain of S for ten times as much"
GAINS_CAPTION = (
    "Slope of S, after the longest prompt, over the decimal logarithm, seed by seed. Points "
    "without a law are left out, and so are new sequences at every step on the axis of sequences."
)
COMPUTE_CAPTION = (
    " Compute: FLOPs of the training, at those widths that no other one undercuts, by means, for "
    "fewer FLOPs."
)
HELD = "Laws held out of the training"
HELD_CAPTION = (
    "Bias: exponent of continuations at a law held out, less the line through those at the laws of "
    "the training, after the longest prompt; who interpolates between remembered laws is biased. "
    "Error: median distance in AU of planet - star from the truth, twelve steps after the prompt."
)
REFERENCES = "Without a training on the mixture"


def tables(study: Study, results: Sequence[Result]) -> list[Table]:
    """Return gains, points, what they do at laws held out, and references."""
    found, beside = points(results), references(results)
    return [_gains(found), _points(found), _held_out(found, beside), _references(beside)]


def _gains(found: Sequence[Point]) -> Table:
    headings = ("who", "ten times the", "at", "from", "to", "gain")
    rows = []
    for axis in (*AXES, COMPUTE):
        for gain in gains(found, axis):
            ends = gain.points[0], gain.points[-1]
            first = ends[0]
            rows.append(
                [
                    Value(first.variant, kind="name"),
                    Value(axis, kind="name"),
                    Value(fixed(first, axis), kind="name"),
                    *(
                        Value(text, order=each.at(axis))
                        for text, each in zip(places(ends, axis), ends, strict=True)
                    ),
                    mean_over_seeds(gain.gains, ".2f"),
                ]
            )
    of_compute = any(row[1].text == COMPUTE for row in rows)
    caption = GAINS_CAPTION + COMPUTE_CAPTION * of_compute
    return Table(GAINS, [Column(x) for x in headings], rows, caption)


def _points(found: Sequence[Point]) -> Table:
    lengths = sorted({steps for point in found for steps in prompts([point.row])})
    shares = [f"S, {steps} steps" for steps in _ends(lengths)]
    headings = ("who", "width", "steps", "sequences", "laws", *shares, "half", "nats", "error")
    rows = []
    for point in found:
        rows.append(
            [
                *_named(point),
                *_shares(point.row, lengths, point.has_law),
                point.row.box(f"nll@{TRAINED}", lengths[-1]),
                point.row.box(f"error@{TRAINED}", lengths[-1], form=".3f"),
            ]
        )
    return Table(POINTS, [Column(x) for x in headings], rows, POINTS_CAPTION)


def _named(point: Point) -> list[Value]:
    """Return the boxes that say which point it is."""
    steps, heads, sequences, laws = point.place
    return [
        Value(point.variant, kind="name"),
        Value(named("heads", heads), order=heads),
        Value(f"{steps:,}", order=steps),
        Value(f"{sequences:,}" if sequences else "new", order=sequences or 1e18),
        Value(f"{laws:,}", order=laws),
    ]


def _held_out(found: Sequence[Point], beside: Sequence[Row]) -> Table:
    names = worlds([point.row for point in found], "bias")
    headings = ("who", "width", "steps", "sequences", "laws")
    headings += (*(f"bias at {x}" for x in names), "error")  # type: ignore[assignment]
    placed = [(_named(point), point.row) for point in found if point.has_law]
    placed += [([Value(row.name, kind="name"), *[NOTHING] * 4], row) for row in beside]
    rows = []
    for which, row in placed:
        longest = max(prompts([row]))
        boxes = [row.box(f"bias@{x}", longest) for x in names]
        if any(box != NOTHING for box in boxes):
            rows.append([*which, *boxes, row.box(f"error@{HELD_OUT}", longest, form=".3f")])
    return Table(HELD, [Column(x) for x in headings], rows if found else [], HELD_CAPTION)


def _references(beside: Sequence[Row]) -> Table:
    lengths = prompts(beside)
    shares = [f"S, {steps} steps" for steps in _ends(lengths)]
    headings = ("who", *shares, "half", *(f"error, {kind}" for kind in (TRAINED, HELD_OUT)))
    rows = [
        [
            Value(row.name, kind="name"),
            *_shares(row, lengths, True),
            *(row.box(f"error@{kind}", lengths[-1], form=".3f") for kind in (TRAINED, HELD_OUT)),
        ]
        for row in beside
        if row.metrics("S", lengths[-1])
    ]
    return Table(REFERENCES, [Column(x) for x in headings], rows)


def _ends(lengths: Sequence[int]) -> list[int]:
    return list(dict.fromkeys((*lengths[:1], *lengths[-1:])))


def _shares(row: Row, lengths: Sequence[int], has_law: bool) -> list[Value]:
    if not has_law:
        return [Value("no law"), *[NOTHING] * len(_ends(lengths))]
    shares = [row.box("S", steps) for steps in _ends(lengths)]
    return [*shares, row.box("S", lengths[-1], half=True)]
