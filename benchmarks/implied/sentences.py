"""Sentences: by which law models go on, inside the training box and outside, beside a table."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean

from benchmarks.implied import pairs
from benchmarks.implied.names import MIDDLE
from benchmarks.implied.scores import (
    Place,
    Row,
    bins,
    is_off,
    keeps,
    laws_of,
    models,
    rows,
    table_of,
)
from benchmarks.worlds.sentences import LITTLE, NEARLY_ALL
from orbits import laws, shifts
from orbits.runs.result import Result
from orbits.runs.study import Study
from orbits.runs.table import mean_over_seeds
from orbits.runs.verdict import MOST_NAMED
from worldmodel.probes.implied.names import in_words

OFF = ("first_error", "last_error", "own_law_error")


def sentences(study: Study, results: Sequence[Result]) -> list[str]:
    """Return the sentences of a run: verdict, matrix, orbits outside the box, pairs."""
    found = rows(results)
    named = models(found)
    said = _verdict(named, found)
    for name, mine in named.items():
        powers = [row for row in mine if _is_power(row.world)]
        if powers:
            said.append(f"{_inside(name, powers, found)} {_outside(mine, found)}".rstrip())
    for name, mine in named.items():
        said += _errors(name, mine, found)
    for law in [law for law in laws_of(found) if not _is_power(law)]:
        said += _no_power(law, named, found)
    return said + pairs.sentences(found)


def _verdict(named: dict[str, list[Row]], found: Sequence[Row]) -> list[str]:
    """Say in two sentences whose law continuations obey, and whether they keep it outside."""
    powers = {name: [x for x in mine if _is_power(x.world)] for name, mine in named.items()}
    shares = {
        name: [fmean(s) for x in mine if (s := x.follows(bins(found)))]
        for name, mine in powers.items()
    }
    shares = {name: each for name, each in shares.items() if each}
    if not shares:
        return []
    every = [share for each in shares.values() for share in each]
    does = "by one power of the distance, whatever law rules the prompt"
    if max(every) <= LITTLE and min(every) <= -LITTLE:
        does = "by laws that change little, or against those of their prompts"
    elif max(every) > LITTLE:
        does = "by the law of their prompts" + " in part" * (min(every) < NEARLY_ALL)
    each = "; ".join(f"{name} {_ends(values)}" for name, values in shares.items())
    if len(shares) > MOST_NAMED:
        each = f"{_ends(every)} in {len(shares)} models"
    said = f"Models continue orbits {does}; of a change of that law they follow: {each}"
    tables = {x.world: x for mine in powers.values() for x in mine}
    pasted = [
        fmean(s) for w in tables if (t := table_of(found, w)) and (s := t.follows(bins(found)))
    ]
    said += f"; a table of training orbits {_ends(pasted)}." if pasted else "."
    return [said + _kept([x for mine in named.values() for x in mine], found)]


def _kept(mine: Sequence[Row], found: Sequence[Row]) -> str:
    """Say how many models keep their law where no training orbit lay, and how many tables.

    And of how many the interval leaves the truth out: a mean of few trainings may be off by chance.
    """
    outer = [(x, place) for x in mine for place in x.found if place[1] and place[0] == x.world]
    if not outer:
        return ""
    kept = [keeps(found, row, place) for row, place in outer].count(True)
    off = [is_off(found, row, place) for row, place in outer].count(True)
    tables = {place: t for row, place in outer if (t := table_of(found, row.world))}
    pasted = [keeps(found, table, place) for place, table in tables.items()].count(True)
    beside = f" (tables of training orbits: {pasted} of {len(tables)})" * bool(tables)
    return (
        f" Outside the training box {kept} of {len(outer)} world models keep their law{beside}; "
        f"shown to miss it: {off}."
    )


def _ends(values: Sequence[float], form: str = "z.2f") -> str:
    return " to ".join(dict.fromkeys((f"{min(values):{form}}", f"{max(values):{form}}")))


def _inside(name: str, mine: Sequence[Row], found: Sequence[Row]) -> str:
    """Say by which power each world's models go on, whatever the prompts, and the tables too."""
    worlds = ", ".join(row.trained_in for row in mine)
    tables = [table for row in mine if (table := table_of(found, row.world))]
    said = (
        f"{name}, trained in the world{'s' * (len(mine) > 1)} of {worlds} ({_trainings(mine)}), "
        f"continues orbits of every power of r by {_over_prompts(mine)}"
    )
    shares = _shares(mine, found)
    if shares:
        said += f" and follows {shares} of the difference between their laws"
    if tables:
        said += f"; a table of training orbits goes on by {_over_prompts(tables)}"
        if shares := _shares(tables, found):
            said += f" and follows {shares}"
    return f"{said}."


def _outside(mine: Sequence[Row], found: Sequence[Row]) -> str:
    """Describe the laws outside the training box, where model and table may differ."""
    parts = []
    for shift in dict.fromkeys(x for row in mine for _, x in row.found if x is not None):
        asked = [(row, (str(row.world), shift)) for row in mine]
        said = [_beside(row, place, found) for row, place in asked if place in row.found]
        kept = [keeps(found, row, place) for row, place in asked]
        counts = f"There the models keep the law of {kept.count(True)} of {len(kept)} worlds"
        tables = [(t, place) for row, place in asked if (t := table_of(found, row.world))]
        if tables:
            also = [keeps(found, table, place) for table, place in tables].count(True)
            counts += f", the table that of {also}"
        off = [is_off(found, row, place) for row, place in asked].count(True)
        counts += f"; in {off} the models' interval leaves the truth out"
        about = shifts.get(shift).about
        parts.append(f"Outside the training box ({about}): {'; '.join(said)}. {counts}.")
    return " ".join(parts)


def _beside(row: Row, place: Place, found: Sequence[Row]) -> str:
    """Return the exponents of one world's models, beside the truth's and the table's."""
    box = row.box(place)
    others = {"truth in bins": bins(found), "table": table_of(found, row.world)}
    known = {name: x for name, other in others.items() if other and (x := other.box(place))}
    beside = ", ".join(f"{name} {x.text}" for name, x in known.items())
    return f"{row.trained_in} by {box.words}" + f" ({beside})" * bool(beside)


def _errors(name: str, mine: Sequence[Row], found: Sequence[Row]) -> list[str]:
    """Say how far off continuations are in the worlds of the trainings and in others."""
    tables = [table for row in mine if (table := table_of(found, row.world))]
    said = []
    for at_home, where in ((True, "in its own world, is"), (False, "in another world,")):
        first, last, own = (_off(mine, metric, at_home) for metric in OFF)
        if first is None or last is None:
            continue
        words = f"{where} {first:.3f} AU off after a step and {last:.2f} AU at the end"
        if own is not None and not at_home:
            words += f", {own:.2f} AU from the best orbit of the training's law"
        first, last, _ = (_off(tables, metric, at_home) for metric in OFF)
        if first is not None and last is not None:
            words += f" (table: {first:.3f} and {last:.2f})"
        said.append(words)
    return [f"{name}, prompted {'; '.join(said)}."] if said else []


def _off(mine: Sequence[Row], metric: str, at_home: bool) -> float | None:
    """Return the mean of an error over prompts of the training's world, or of the others."""
    values = [
        row.mean((law, None), metric)
        for row in mine
        for law in laws_of([row])
        if (law == row.world) is at_home
    ]
    known = [value for value in values if value is not None]
    return fmean(known) if known else None


def _no_power(law: str, named: dict[str, list[Row]], found: Sequence[Row]) -> list[str]:
    """Describe a law that is no power of the distance, near and far."""
    said = []
    place = (law, None)
    truth = bins(found)
    for name, mine in named.items():
        parts = [
            f"of the world of {row.trained_in} by {_near_far(row, place)}"
            for row in mine
            if row.mean(place, "exponent_near") is not None
        ]
        if parts:
            beside = f"; truth in bins {_near_far(truth, place)}" if truth else ""
            said.append(
                f"{name} continues prompts of {law} that are near (within {MIDDLE:g} AU) and far: "
                f"{', '.join(parts)}{beside}."
            )
        for row in (row for row in mine if row.world == law):
            prompts = [x for x in laws_of([row]) if x != law]
            own = [f"{in_words(x)} by {_near_far(row, (x, None))}" for x in prompts]
            said.append(f"{name} of the world of {law} continues prompts of {', '.join(own)}.")
    return said


def _over_prompts(mine: Sequence[Row]) -> str:
    """Return the exponents of rows, each from its smallest to its largest over the prompts."""
    parts = []
    for row in mine:
        means = [row.mean((law, None)) for law in laws_of([row]) if _is_power(law)]
        asked = [mean for mean in means if mean is not None]
        ends = dict.fromkeys((f"{max(asked):.2f}", f"{min(asked):.2f}")) if asked else ("?",)
        parts.append(f"r^{' to '.join(ends)}")
    return ", ".join(parts)


def _shares(mine: Sequence[Row], found: Sequence[Row]) -> str:
    truth = bins(found)
    each = [row.follows(truth) for row in mine]
    boxes = [mean_over_seeds(x, ".2f") if len(x) > 1 else None for x in each]
    texts = [box.words if box else f"{x[0]:z.2f}" for box, x in zip(boxes, each, strict=True) if x]
    return ", ".join(texts)


def _near_far(row: Row, place: Place) -> str:
    values = [row.mean(place, f"exponent_{name}") for name in ("near", "far")]
    return " and ".join("?" if value is None else f"{value:.2f}" for value in values)


def _trainings(mine: Sequence[Row]) -> str:
    counts = sorted({row.seeds for row in mine})
    words = " or ".join(map(str, counts))
    return f"{words} training{'s' * (counts != [1])}{' each' * (len(mine) > 1)}"


def _is_power(law: str | None) -> bool:
    return law is not None and laws.get(law).exponents is not None
