"""Tables, figures and sentences on residuals that were exchanged between worlds."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.worlds.names import EXCHANGE, MIXTURE, TOLD
from benchmarks.worlds.scores import ARMS
from orbits.runs.result import Result
from orbits.runs.table import NOTHING, Column, Table, Value, interval
from worldmodel.probes.donors import (
    CONTROLS,
    FIRST,
    LAST_STEP,
    NO_DONOR,
    OTHER_LAW,
    SAME_LAW,
    WHOLE,
)
from worldmodel.probes.implied.names import in_words
from worldmodel.probes.implied.words import shown, together
from worldmodel.probes.same_state import words

DONORS = (OTHER_LAW, SAME_LAW, *CONTROLS)
TITLE = "The law exchanged inside the model"
CAPTION = (
    "Change of the exponent of continuations, in units of the world's own change, once the "
    "residual stream at the end of a prompt is that of a donor: a system of another law in the "
    "same state; one of the own law whose masses pull as hard; another system of the own law; a "
    "step of the same length in a random direction. First row: the donor's own prompt is shown. "
    "Beyond: what the other law does more than the same law does, which alone is about the law."
)


def sentences(results: Sequence[Result]) -> list[str]:
    """Return a sentence for each model on the mixture and each law; nothing without an exchange."""
    found = [x for x in _of(results) if x.case.arm == MIXTURE]
    said = [
        line
        for name in dict.fromkeys(x.case.variant for x in found)
        for line in words.of_model(name, [x for x in found if x.case.variant == name])
    ]
    return [*said, *_told(results), words.UNIT] if said else []


def _told(results: Sequence[Result]) -> list[str]:
    """Return what goes over in a model that is told the law, where it must be seen."""
    found = [x for x in _of(results) if x.case.arm == TOLD]
    said = []
    for law in dict.fromkeys(str(x.case.setting["law"]) for x in found):
        parts: dict[str, list[Result]] = {}
        stages = [str(x.case.setting["after"]) for x in found if x.case.setting["rows"] == FIRST]
        for result in found:
            setting = result.case.setting
            place = setting["rows"], setting["after"]
            # The last step's input is the donor's already, and nothing reads the first row's end.
            moot = place in ((LAST_STEP, "embedding"), (FIRST, stages[-1]))
            if (str(setting["law"]), setting["donor"]) != (law, OTHER_LAW) or moot:
                continue
            if setting["rows"] in (FIRST, LAST_STEP):
                given = f"given its {setting['rows']}'s residual after {setting['after']}"
                parts.setdefault(given, []).append(result)
            elif setting["after"] == WHOLE:
                parts.setdefault("shown that law's own prompt", []).append(result)
        shares = "; ".join(f"{given} {shown(x, 'share_law')}" for given, x in parts.items())
        said.append(
            f"{found[0].case.variant}, told the law, takes of the exponent's change to "
            f"{in_words(law)}, beyond the strength's: {shares}."
        )
    return said


def table(results: Sequence[Result]) -> Table:
    """Return what each donor changes, by model, law and place."""
    groups: dict[tuple[str, ...], dict[str, list[Result]]] = {}
    for result in _of(results):
        case, setting = result.case, result.case.setting
        who = f"{case.variant}, {case.arm}" if case.arm in ARMS else case.variant
        place = tuple(str(setting[x]) for x in ("law", "after", "rows"))
        groups.setdefault((who, *place), {}).setdefault(setting["donor"], []).append(result)
    rows = []
    for (who, law, after, at), donors in groups.items():
        where = "shown" if after == WHOLE else f"after {after}, {at}"
        boxes = [_box(donors.get(donor, []), "share_exponent") for donor in DONORS]
        beyond = _box(donors.get(OTHER_LAW, []), "share_law")
        rows.append([Value(who, kind="name"), Value(f"{in_words(law)}, {where}"), *boxes, beyond])
    headings = ("who", "given", *DONORS, "beyond")
    return Table(TITLE, [Column(x) for x in headings], rows, CAPTION)


def _of(results: Sequence[Result]) -> list[Result]:
    there = [x for x in results if x.ok and x.case.kind == EXCHANGE]
    return [x for x in there if x.case.setting["donor"] != NO_DONOR]


def _box(found: Sequence[Result], metric: str) -> Value:
    return interval(together(found, metric), ".2f") if found else NOTHING
