"""Sentences on a run of the implied-law probe, which are computed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean

from orbits import laws, shifts
from orbits.runs.result import Result, grouped
from orbits.runs.statistics import MINIMUM_SEEDS, Interval
from worldmodel.controls.names import IN_BINS, TABLE
from worldmodel.probes import looks
from worldmodel.probes.implied.followed import followed
from worldmodel.probes.implied.names import (
    ONE_STEP,
    ROLLOUT,
    SHIFT,
    STEPS_OF,
    TOKEN_OF,
    WORLDS,
    in_words,
)
from worldmodel.probes.looks import own_setting, trained_models, trained_on

EXPONENT = "exponent_within"
NO_EVIDENCE = (
    "The exponents of the masses (of single steps) are no evidence of a law: F = m a gives one of "
    "them, the visible past the other, and cubic extrapolation has both."
)


def answers(results: Sequence[Result]) -> list[str]:
    """Return by which law each model continues orbits, and what that does and does not show."""
    own = [result for result in results if is_own(result)]
    in_bins = [x for x in results if x.case.variant == IN_BINS]
    bins = by_prompt(filter(is_own, in_bins))
    models = trained_models(results)
    sentences = [
        _continues(name, [x for x in mine if is_own(x)], bins) for name, mine in models.items()
    ]
    for name, mine in models.items():
        sentences += _outside(name, mine, results)
        sentences += [_follows(name, mine, bins, own), *_moved(name, mine, in_bins)]
    return [*sentences, *_table(own), *_masses(own), NO_EVIDENCE]


def _masses(own: Sequence[Result]) -> list[str]:
    """Say of worlds whose law is no product of the masses what continuations cannot tell."""
    return [
        f"Along an orbit the masses stand still: continuations do not tell {law} from a law of "
        f"other masses that changes with the distance alike."
        for law in dict.fromkeys(map(trained_on, own))
        if (powers := laws.get(law).exponents) and (powers["m1"], powers["m2"]) != (1, 1)
    ]


def is_own(result: Result) -> bool:
    """Return whether a result is of rollouts from prompts as their world observes them."""
    setting = own_setting(result)
    return setting["asked"] == ROLLOUT and set(setting) == {"asked", "prompt"}


def is_home(result: Result) -> bool:
    """Return whether prompts are of the world of the training."""
    return bool(result.case.setting["prompt"] == trained_on(result))


def by_prompt(results: Iterable[Result]) -> dict[str, list[Result]]:
    """Return results by the law of their prompts."""
    return grouped(results, lambda result: result.case.setting["prompt"])


def together(results: Sequence[Result], metric: str = EXPONENT) -> Interval:
    """Return a metric over trainings, of one over its sequences."""
    return looks.together(results, metric)


def are_two(results: Sequence[Result], metric: str = EXPONENT) -> bool:
    """Return whether a metric is of two trainings that differ, which have no interval."""
    different = {result.metrics[metric].value for result in results}
    return len(results) < MINIMUM_SEEDS and len(different) > 1


def shown(results: Sequence[Result], metric: str = EXPONENT) -> str:
    """Return a metric with its interval; two trainings stand one by one."""
    value, low, high = together(results, metric)
    ends = f"{low:z.2f}, {high:z.2f}"
    return f"{value:z.2f} ({ends})" if are_two(results, metric) else f"{value:z.2f} [{ends}]"


def _continues(name: str, results: Sequence[Result], bins: Mapping[str, Sequence[Result]]) -> str:
    law, n = trained_on(results[0]), len({x.case.seed for x in results})
    found = by_prompt(results)
    parts = [f"of {in_words(prompt)} by r^{shown(mine)}" for prompt, mine in found.items()]
    truth = [f"{together(bins[prompt]).value:.2f}" for prompt in found]
    trainings = f"{n} training{'s' if n > 1 else ''} in the world of {in_words(law)}"
    return (
        f"{name} ({trainings}) continues orbits {', '.join(parts)}; truth in bins "
        f"{', '.join(truth)}."
    )


def _outside(name: str, mine: Sequence[Result], results: Sequence[Result]) -> list[str]:
    """Return by which law orbits go on that lie outside the training box."""
    law = trained_on(mine[0])

    def of(shift: str, some: Iterable[Result]) -> list[Result]:
        return [x for x in some if x.case.setting.get(SHIFT) == shift]

    parts = []
    for shift in dict.fromkeys(x.case.setting[SHIFT] for x in mine if SHIFT in x.case.setting):
        same = [x for x in of(shift, results) if x.case.setting["prompt"] == law]
        bins, table = ([x for x in same if x.case.variant == v] for v in (IN_BINS, TABLE))
        pasted = f", nearest training orbit {together(table).value:.2f}" if table else ""
        about = shifts.get(shift).about
        parts.append(
            f"by r^{shown(of(shift, mine))} ({about}; truth in bins {together(bins).value:.2f}"
            f"{pasted})"
        )
    return [f"{name} outside its training box: {', '.join(parts)}."] if parts else []


def _follows(
    name: str,
    results: Sequence[Result],
    bins: Mapping[str, Sequence[Result]],
    own: Sequence[Result],
) -> str:
    """Return the share of the prompt's law that is followed, and the steps in its own world."""
    mine = by_prompt(x for x in results if is_own(x))
    values, truth = (
        {law: fmean(x.metrics[EXPONENT].value for x in of[law]) for law in WORLDS if law in of}
        for of in (mine, bins)
    )
    share = followed(values, truth)
    assert share is not None  # the prompts of a probe are of several worlds
    words = f"{name} follows {share:.2f} of the difference between the laws of prompts."
    steps = [x for x in results if x.case.setting["asked"] == ONE_STEP and is_home(x)]
    return (
        f"{words} {_off(mine, own)}One step at a time it misses {shown(steps, 'missed')} of the "
        f"kick in its own world, with an exponent along orbits of {shown(steps)}."
    )


def _off(mine: Mapping[str, Sequence[Result]], own: Sequence[Result]) -> str:
    """Return how far off continuations are, beside those of the table of the same world."""
    law = trained_on(next(iter(mine.values()))[0])
    table = by_prompt(x for x in own if x.case.variant == TABLE and trained_on(x) == law)
    if not table:
        return ""

    def errors(of: Mapping[str, Sequence[Result]], is_home: bool) -> str:
        """Return the errors of prompts of the training world, or of the others, in words."""
        asked = [of[prompt] for prompt in of if (prompt == law) == is_home]
        first, last = (
            fmean(together(x, metric).value for x in asked)
            for metric in ("first_error", "last_error")
        )
        return f"{first:.3f} AU off one step after a prompt and {last:.2f} AU at the end"

    return (
        f"In its own world it is {errors(mine, True)} (the nearest training orbit: "
        f"{errors(table, True)}), in the others {errors(mine, False)} (the nearest training orbit: "
        f"{errors(table, False)}). "
    )


def _moved(name: str, results: Sequence[Result], bins: Sequence[Result]) -> list[str]:
    """Return by how much the time steps of other worlds move the answers."""
    steps, token = (_largest_move(results, key) for key in (STEPS_OF, TOKEN_OF))
    if steps is None or token is None:
        return []
    truth = _largest_move(bins, STEPS_OF)
    return [
        f"{name} at the time steps of the other worlds: its exponents move by at most {steps:.2f} "
        f"(those of the truth in bins by {truth:.2f}); by the tokens of these steps alone, told "
        f"with places that are not theirs, by at most {token:.2f}."
    ]


def _largest_move(results: Sequence[Result], key: str) -> float | None:
    """Return how far at most the exponents of prompts move where a setting has a key."""
    own = {law: together(mine).value for law, mine in by_prompt(filter(is_own, results)).items()}
    moved = []
    for law, mine in by_prompt(x for x in results if key in x.case.setting).items():
        for other in dict.fromkeys(x.case.setting[key] for x in mine):
            alike = [x for x in mine if x.case.setting[key] == other]
            moved.append(abs(together(alike).value - own[law]))
    return max(moved, default=None)


def _table(own: Sequence[Result]) -> list[str]:
    """Return what the table of training orbits does with the prompts of other worlds."""
    sentences = []
    table = [x for x in own if x.case.variant == TABLE]
    for law, of_law in grouped(table, trained_on).items():
        found = {prompt: together(mine).value for prompt, mine in by_prompt(of_law).items()}
        values = ", ".join(f"{value:.2f}" for value in found.values())
        away = [abs(value - found[law]) for value in found.values()]
        verdict = (
            "So the exponent of continuations does not tell a law from a table of orbits"
            if max(away) < 0.1
            else "So a table of orbits does not continue all prompts by one law"
        )
        sentences.append(
            f"The nearest training orbit of the world of {in_words(law)}, pasted, goes on by "
            f"{values}. {verdict}."
        )
    return sentences
