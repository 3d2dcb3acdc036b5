"""Checks of names against choices, and types in words, with one form of error."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping

TYPES: Mapping[type, str] = {int: "a whole number", float: "a finite number", bool: "true or false"}
"""Types of values in plain words; YAML reads ``inf`` as a text."""
SHORTENED = 3
"""Fewest letters of a word that may be the beginning of the one that was meant."""


def check_choice(what: str, name: object, choices: Iterable[str], also: str = "") -> None:
    """Refuse a name that is not among the choices, as :func:`unknown` says it."""
    known = list(choices)
    if name not in known:
        raise unknown(what, name, known, also)


def unknown(what: str, name: object, choices: Iterable[str], also: str = "") -> ValueError:
    """Return the error about a name that is none of the choices.

    >>> unknown("law", "newtn", ["newton", "yukawa"])
    ValueError("unknown law 'newtn'; did you mean newton? choose from newton, yukawa")

    Args:
        what: What it names.
        name: The name.
        choices: The names that there are.
        also: What the message ends in.
    """
    known = list(choices)
    hint = did_you_mean(str(name), known) or ";"
    return ValueError(f"unknown {what} {name!r}{hint} choose from {', '.join(known)}{also}")


def did_you_mean(name: str, choices: Iterable[str], cutoff: float = 0.6) -> str:
    """Return ``; did you mean a or b?`` with the choices that a name begins or is :func:`near`."""
    known = list(choices)
    begun = [each for each in known if len(name) >= SHORTENED and each.startswith(name)]
    found = list(dict.fromkeys([*begun, *near(name, known, cutoff)]))[:3]
    return f"; did you mean {' or '.join(found)}?" if found else ""


def near(name: str, choices: Iterable[str], cutoff: float = 0.6) -> list[str]:
    """Return the choices that are spelled alike, at most three, the nearest first.

    Args:
        name: A word that is none of the choices.
        choices: What it may have been meant to be.
        cutoff: How alike they must be, from 0 to 1, as difflib has it.
    """
    spelled = {choice.lower(): choice for choice in choices}
    return [spelled[x] for x in difflib.get_close_matches(name.lower(), spelled, cutoff=cutoff)]
