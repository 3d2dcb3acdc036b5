"""Sentences on the two further questions: steps in another world, and drawn rows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from orbits import laws
from orbits.runs.result import Result
from orbits.runs.statistics import paired
from worldmodel.controls.names import BELIEVER, FILTER, FIT, IN_BINS, TABLE
from worldmodel.probes.implied.names import DRAWS, GIVEN, ONE_STEP, in_words
from worldmodel.probes.implied.words import (
    EXPONENT,
    by_prompt,
    is_home,
    is_own,
    shown,
    together,
)
from worldmodel.probes.looks import trained_models, trained_on

LIKE = 0.1
"""Distance of exponents up to which an observer's kicks have the exponent of the law he holds."""


def answers(results: Sequence[Result]) -> list[str]:
    """Return what steps in another world and drawn continuations say; nothing if not asked for."""
    return [
        sentence
        for name, mine in trained_models(results).items()
        for sentence in (*_elsewhere(name, mine, results), *_drawn(name, mine))
    ]


def _elsewhere(name: str, mine: Sequence[Result], results: Sequence[Result]) -> list[str]:
    """Return what single steps have in other worlds, and whether that could name a law."""

    def steps(some: Iterable[Result]) -> list[Result]:
        return [x for x in some if x.case.setting["asked"] == ONE_STEP]

    home = [x for x in steps(mine) if is_home(x)]
    sentences = []
    for law, there in by_prompt(x for x in steps(mine) if not is_home(x)).items():
        own = trained_on(there[0])
        held = laws.get(own).exponents
        others = {
            who: shown(found)
            for who in (IN_BINS, FIT, BELIEVER, FILTER, TABLE)
            if (found := _of(who, law, own, steps(results)))
        }
        words = (
            f"One step at a time in the world of {in_words(law)} {name} misses "
            f"{shown(there, 'missed')} of the kick, {shown(home, 'missed')} in its own world, with "
            f"an exponent along orbits of {shown(there)}, {shown(home)} in its own world; "
            f"{', '.join(f'{who} {value}' for who, value in others.items())}."
        )
        believer = _of(BELIEVER, law, own, steps(results))
        if believer and held:
            off = abs(together(believer).value - held["r"])
            words += (
                f" Who holds {in_words(own)} and fits all that he saw has another exponent there, "
                "since his kick holds the misfit of his orbit: one step in another world names no "
                "law; what it shows is the share of the kick that is missed."
                if off > LIKE
                else f" Who holds {in_words(own)} and fits all that he saw has its exponent there, "
                "so that one step may name a law in this world, too."
            )
        sentences.append(words)
    return sentences


def _of(who: str, law: str, home: str, steps: Iterable[Result]) -> list[Result]:
    """Return the results of a reference in the world of a law."""
    wanted = who, law, home
    return [x for x in steps if (x.case.variant, x.case.setting["prompt"], trained_on(x)) == wanted]


def _drawn(name: str, mine: Sequence[Result]) -> list[str]:
    """Return by which power drawn continuations go on, beside the likeliest ones."""
    drawn = [x for x in mine if DRAWS in x.case.setting]
    if not drawn:
        return []
    likeliest = by_prompt(filter(is_own, mine))
    own = by_prompt(x for x in drawn if GIVEN not in x.case.setting)
    given = by_prompt(x for x in drawn if GIVEN in x.case.setting)
    parts = [
        f"of {in_words(law)} by r^{shown(found)} (likeliest rows "
        f"{together(likeliest[law]).value:.2f}; true orbits with the errors of single draws "
        f"{together(given[law]).value:.2f})"
        for law, found in own.items()
    ]
    words = (
        f"{name}, its rows drawn from its distribution ({drawn[0].case.setting[DRAWS]} times), "
        f"continues orbits {', '.join(parts)}."
    )
    law = trained_on(drawn[0])
    values, others = (
        {x.case.seed: x.metrics[EXPONENT].value for x in some[law]} for some in (own, likeliest)
    )
    found = paired(values, others)
    if found is None:
        return [words]
    value, low, high = found.difference
    change = "flatter" if low > 0 else "steeper" if high < 0 else "not shown to be another"
    return [
        f"{words} Less the likeliest in its own world: {value:.2f} [{low:.2f}, {high:.2f}], "
        f"{change}."
    ]
