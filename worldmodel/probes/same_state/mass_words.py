"""Sentences on exchanges between systems with two masses, computed from the results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from orbits.runs.result import Result, grouped
from worldmodel.controls.names import FILTER, IN_BINS, TABLE
from worldmodel.probes.donors import ANOTHER_MASS, EVERY, LAST_STEP, RANDOM, WHOLE
from worldmodel.probes.implied.words import are_two, shown, together
from worldmodel.probes.looks import own_setting, trained_models

METRIC = "slope_mass"
UNIT = (
    "Shares are of what the mass changes in the world's own paths, from the same state on, beyond "
    "straight lines through the bodies' last two places."
)


def answers(results: Sequence[Result]) -> list[str]:
    """Return sentences: all models together, each with each mass, and the unit of shares."""
    by_model = trained_models(results)
    said = [
        _sentence(name, changed, some, results)
        for name, mine in by_model.items()
        for changed, some in _by_mass(mine).items()
    ]
    return [_overall(by_model, results), *said, UNIT] if said else []


def _overall(by_model: Mapping[str, Sequence[Result]], results: Sequence[Result]) -> str:
    """Say how much of each mass models follow, beside who knows none."""
    parts = []
    for changed in dict.fromkeys(x for mine in by_model.values() for x in _by_mass(mine)):
        shares = [
            together(_of(_by_mass(mine)[changed], WHOLE, WHOLE), METRIC).value
            for mine in by_model.values()
        ]
        beside = [
            f"{who} {together(found, METRIC).value:z.2f}"
            for who in (FILTER, TABLE)
            if (found := _of([x for x in results if _is(x, who, changed)], WHOLE, WHOLE))
        ]
        parts.append(
            f"{min(shares):z.2f} to {max(shares):z.2f} of what another {changed} changes "
            f"({', '.join(beside)})"
        )
    return f"Shown another past of the same state, models follow {' and '.join(parts)}."


def _by_mass(results: Sequence[Result]) -> dict[str, list[Result]]:
    return grouped(results, lambda result: str(own_setting(result)["changed"]))


def _sentence(name: str, changed: str, mine: Sequence[Result], results: Sequence[Result]) -> str:
    """Return what a model makes of another past, and of its residual alone."""
    past = _of(mine, WHOLE, WHOLE)
    stages = dict.fromkeys(str(own_setting(x)["after"]) for x in mine)
    inner = [x for x in stages if x not in (WHOLE, "embedding")]
    parts = [
        f"{shown(_of(mine, stage, LAST_STEP), METRIC)} after {stage} ({_every_row(mine, stage)})"
        for stage in inner
    ]
    beside = [
        f"{who} {shown(_of(found, WHOLE, WHOLE), METRIC)}"
        for who in (IN_BINS, FILTER)
        if (found := [x for x in results if _is(x, who, changed)])
    ]
    return (
        f"{name}, shown a past with another {changed} that ends in the same state, follows "
        f"{shown(past, METRIC)} of what the mass changes ({', '.join(beside)}). Given the residual "
        f"of its last step alone: {'; '.join(parts)}. {_verdict(mine, inner)}"
    )


def _every_row(mine: Sequence[Result], stage: str) -> str:
    """Return what every row brings, and a random direction there."""
    share, random = (
        f"{together(found, METRIC).value:z.2f}" if found else ""
        for found in (_of(mine, stage, EVERY), _of(mine, stage, EVERY, RANDOM))
    )
    return f"{share} with every row{f', in a random direction {random}' if random else ''}"


def _is(result: Result, who: str, changed: str) -> bool:
    return result.case.variant == who and own_setting(result)["changed"] == changed


def _of(
    results: Sequence[Result], stage: str, rows: str, donor: str = ANOTHER_MASS
) -> list[Result]:
    """Return the results of a place and a donor."""
    wanted = {"after": stage, "rows": rows, "donor": donor}
    return [x for x in results if wanted.items() <= own_setting(x).items()]


def _verdict(mine: Sequence[Result], stages: Sequence[str]) -> str:
    takers = [
        stage
        for stage in stages
        if not are_two(found := _of(mine, stage, LAST_STEP), METRIC)
        and together(found, METRIC).low > 0
    ]
    if takers:
        random = [shown(_of(mine, stage, LAST_STEP, RANDOM), METRIC) for stage in takers]
        return (
            f"So the last step's residual after {' and '.join(takers)} brings some of it (a step "
            f"of the same length in a random direction {' and '.join(random)})."
        )
    return "That the last step's residual brings any of it is not shown."
