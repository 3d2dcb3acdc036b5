"""Tables: the matrix, orbits outside the training box, near and far orbits, errors, trainings."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.implied import pairs
from benchmarks.implied.names import FITTED, MIDDLE
from benchmarks.implied.scores import KEPT, MODEL, TWIN, Row, bins, laws_of, places, rows
from orbits import laws
from orbits.runs.result import Result
from orbits.runs.study import Study
from orbits.runs.table import Column, Table, Value, mean_over_seeds, seed_table
from worldmodel.controls.names import BELIEVER
from worldmodel.probes.implied.names import in_words

MATRIX = "By which power of the distance orbits go on"
MATRIX_CAPTION = (
    "Exponent of r along each continued orbit, by the path's own second differences; columns: law "
    "of the prompts. Models go on by likeliest bins. The orbits of a power of r have its exponent "
    "wherever they are pasted: among powers this table tells no law from a memory of orbits."
)
SHARE = (
    "slope of the exponents over those of prompts of powers of r, over that of the truth in bins: "
    "0 imposes one law, 1 goes on by the prompt's"
)
OUTSIDE = "The same outside the training box"
OUTSIDE_CAPTION = (
    "Orbits of the training's own law that are not like those of the training. Errors: distance in "
    "AU from the truth one step after the prompt and at the end. A power has no scale, so that a "
    "training orbit obeys it wherever it is pasted in another size; softened has one, so that only "
    "there the exponent tells a table from a law. A law is kept within "
    f"{KEPT} of one truth: by a model of the truth in bins, which is all that its tokens show, by "
    "a table, in no bins, of the true orbit."
)
NEAR = "Near and far orbits"
NEAR_CAPTION = (
    f"The exponent of orbits whose median distance in the prompt is below {MIDDLE:g} AU, and of "
    "the others. A power has one exponent; another law has another one near than far."
)
ERRORS = "How far off continuations are"
ERRORS_CAPTION = (
    "Distance in AU from the truth one step after the prompt and at the end; and at the end from "
    f"the orbit of the training's law that fits the prompt best (first {FITTED} sequences), which "
    "is where an observer who believes this law would expect the bodies."
)
TRAININGS = "World models"


def tables(study: Study, results: Sequence[Result]) -> list[Table]:
    """Return the tables of a report."""
    found = rows(results)
    made = [_matrix(found), _outside(found), pairs.table(found), _near(found), _errors(found)]
    trained = [x for x in results if x.case.kind == "world model"]
    made.append(seed_table(TRAININGS, trained, ("variant", "law"), ("val_nll",)))
    return made


def _matrix(found: Sequence[Row]) -> Table:
    prompts = laws_of(found)
    columns = [Column("who"), Column("trained in"), *(Column(in_words(law)) for law in prompts)]
    columns.append(Column("S", SHARE))
    truth = bins(found)
    asked = [row for row in found if any((law, None) in row.found for law in prompts)]
    body = [
        [*_names(row), *(row.box((law, None)) for law in prompts), _share(row, truth)]
        for row in asked
    ]
    front = [place for place, row in enumerate(asked) if row.arm != TWIN]
    return Table(MATRIX, columns, body, MATRIX_CAPTION, front=front)


def _share(row: Row, truth: Row | None) -> Value:
    shares = row.follows(truth)
    return mean_over_seeds(shares, ".2f") if row.arm == MODEL else _plain(shares)


def _plain(values: Sequence[float]) -> Value:
    return Value(f"{values[0]:z.2f}", order=values[0]) if len(values) == 1 else Value("-")


def _outside(found: Sequence[Row]) -> Table:
    columns = [
        Column("prompts"),
        Column("shift"),
        Column("who"),
        Column("r along the path"),
        Column("off after a step, AU"),
        Column("at the end, AU"),
    ]
    body = []
    for place in places(found):
        law, shift = place
        if shift is None:
            continue
        for row in found:
            if place in row.found and row.world in (law, None):
                names = (in_words(law), shift.replace("_", " "), row.who)
                boxes = [row.box(place), row.box(place, "first_error", ".3f")]
                boxes.append(row.box(place, "last_error"))
                body.append([*(Value(name, kind="name") for name in names), *boxes])
    return Table(OUTSIDE, columns, body, OUTSIDE_CAPTION)


def _near(found: Sequence[Row]) -> Table:
    """Return the exponents near and far, where a law that is no power takes part."""
    columns = [Column(x) for x in ("who", "trained in", "prompts", "near", "far")]
    body = [
        [*_names(row), _law(law), row.box(place, "exponent_near"), row.box(place, "exponent_far")]
        for row in found
        for place in row.found
        if place[1] is None
        for law in [place[0]]
        if _is_no_power(law) or _is_no_power(row.world)
    ]
    return Table(NEAR, columns, body, NEAR_CAPTION, folded=True)


def _errors(found: Sequence[Row]) -> Table:
    headings = ("who", "trained in", "prompts", "after a step", "at the end", "from its own law")
    body = [
        [
            *_names(row),
            _law(law),
            row.box((law, None), "first_error", ".3f"),
            row.box((law, None), "last_error"),
            row.box((law, None), "own_law_error"),
        ]
        for row in found
        for law in laws_of([row])
        if row.arm in (MODEL, "control")
    ]
    return Table(ERRORS, [Column(x) for x in headings], body, ERRORS_CAPTION, folded=True)


def _names(row: Row) -> list[Value]:
    who = f"{row.who} (first {FITTED})" if row.variant == BELIEVER else row.who
    return [Value(who, kind="name"), Value(row.trained_in, kind="name")]


def _law(law: str) -> Value:
    return Value(in_words(law), kind="name")


def _is_no_power(law: str | None) -> bool:
    return law is not None and laws.get(law).exponents is None
