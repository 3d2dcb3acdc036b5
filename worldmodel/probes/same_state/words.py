"""Sentences on exchanges between two worlds, computed from the results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from orbits.runs.result import Result, grouped
from worldmodel.probes.donors import EVERY, LAST_STEP, OTHER_LAW, RANDOM, SAME_LAW, WHOLE
from worldmodel.probes.implied.names import in_words
from worldmodel.probes.implied.words import are_two, shown, together
from worldmodel.probes.looks import own_setting, trained_models

UNIT = (
    "Shares are of the world's own change: what a true path, and its exponent, does from the same "
    "state on under the other law. In parentheses the share of a partner of the same law whose "
    "masses pull as hard; only what exceeds that is about the law."
)


def answers(results: Sequence[Result]) -> list[str]:
    """Return sentences: the models that take a law, each model and law, and the unit of shares."""
    by_model = trained_models(results)
    said = [sentence for name, mine in by_model.items() for sentence in of_model(name, mine)]
    return [_overall(by_model), *said, UNIT] if said else []


def _overall(by_model: Mapping[str, Sequence[Result]]) -> str:
    """Name the models that take a law from a past that obeys another one."""
    found = {
        (name, law): _of(of_law, WHOLE, WHOLE)[OTHER_LAW]
        for name, mine in by_model.items()
        for law, of_law in _by_law(mine).items()
    }
    laws = ", ".join(dict.fromkeys(in_words(law) for _, law in found))
    takers = dict.fromkeys(name for (name, _), each in found.items() if _takes(each))
    values = [together(each, "share_law").value for each in found.values()]
    return (
        f"Shown a past of another law ({laws}) that ends in the same state, "
        f"{', '.join(takers) or 'no model'} of {len(by_model)} is shown to take that law over: "
        f"{min(values):z.2f} to {max(values):z.2f} of the exponent's change beyond the strength's."
    )


def is_past(result: Result) -> bool:
    """Return whether a result is of a whole past of another law, and of no exchange."""
    setting = own_setting(result)
    places = setting["after"], setting["rows"], setting["donor"]
    return places == (WHOLE, WHOLE, OTHER_LAW)


def _by_law(results: Sequence[Result]) -> dict[str, list[Result]]:
    """Return results by the law of the past."""
    return grouped(results, lambda result: str(own_setting(result)["law"]))


def of_model(name: str, results: Sequence[Result]) -> list[str]:
    """Return a sentence for each other law about the results of one model's trainings."""
    said = []
    for law, mine in _by_law(results).items():
        past = _of(mine, WHOLE, WHOLE)
        stages = dict.fromkeys(str(own_setting(x)["after"]) for x in mine)
        inner = [x for x in stages if x not in (WHOLE, "embedding")]
        parts = [
            f"after {stage} {_shares(_of(mine, stage, LAST_STEP))}{_every_row(mine, stage)}"
            for stage in inner
        ]
        said.append(
            f"{name}, shown a past of {in_words(law)} that ends in the same state, follows "
            f"{_shares(past)}. Given the residual of its last step alone: {'; '.join(parts)}. "
            f"{_verdict(past)}"
        )
    return said


def _of(results: Sequence[Result], stage: str, rows: str) -> dict[str, list[Result]]:
    """Return the results of a place by donor."""
    there = [
        x for x in results if (own_setting(x)["after"], own_setting(x)["rows"]) == (stage, rows)
    ]
    return grouped(there, lambda result: own_setting(result)["donor"])


def _shares(found: dict[str, list[Result]]) -> str:
    """Return the shares of path and exponent, each beside that of the same law."""
    parts = [
        f"{shown(found[OTHER_LAW], metric)} of the change of the {what} "
        f"({together(found[SAME_LAW], metric).value:z.2f})"
        for metric, what in (("share_path", "path"), ("share_exponent", "exponent"))
    ]
    return " and ".join(parts)


def _every_row(mine: Sequence[Result], stage: str) -> str:
    """Return what every row's residual brings of the exponent, and a random direction there."""
    found = _of(mine, stage, EVERY)
    if RANDOM not in found:
        return ""
    share, random = (
        f"{together(found[donor], 'share_exponent').value:z.2f}" for donor in (OTHER_LAW, RANDOM)
    )
    return f", with every row {share} of that of the exponent (a random direction {random})"


def _verdict(past: dict[str, list[Result]]) -> str:
    found = past[OTHER_LAW]
    said = f"{shown(found, 'share_law')} of the exponent's change beyond the strength's"
    if _takes(found):
        return f"So it takes some of the law from the past: {said}."
    return f"That it takes a law from the past is not shown: {said}."


def _takes(found: Sequence[Result]) -> bool:
    """Return whether the interval of the law's share lies above zero; two trainings have none."""
    return not are_two(found, "share_law") and together(found, "share_law").low > 0
