"""The worlds of a run: its protocol at its size, under the law of the run or another one."""

from __future__ import annotations

import math
from typing import Any

from benchmarks.newton.settings import NewtonSettings
from orbits import protocols
from orbits import shifts as catalogue
from orbits.motion import NEWTON
from orbits.runs.choices import check_choice
from orbits.shifts import Shift
from orbits.visible import check_shifted

UNLIMITED = "unlimited"
"""The label budget without a bound."""


def as_number(budget: int | str | None) -> float:
    """Return a label budget as a number to sort by: infinite where every step has new labels."""
    return math.inf if budget == UNLIMITED else float(budget or 0)


def world_arguments(
    settings: NewtonSettings, law: str | None = None, population: str = "pretrain"
) -> dict[str, Any]:
    """Return the overrides of the protocol, in the world of a law; None for the law here.

    Labels leak into the population ``force`` alone: world models see none.
    """
    law = law or settings.law
    arguments = dict(settings.protocol_args.get(settings.protocol, {}))
    if law != NEWTON:
        arguments["law"] = law
    if settings.label_leak and population == "force":
        arguments["label_leak"] = settings.label_leak
    return arguments


def world(
    settings: NewtonSettings, law: str | None = None, population: str = "pretrain"
) -> protocols.Protocol:
    """Return the world of a law; None for the law that rules here."""
    return protocols.get(settings.protocol, world_arguments(settings, law, population))


def shifts(settings: NewtonSettings) -> dict[str, dict[str, Any]]:
    """Return the shifts of the exam as plain data, by name."""

    def check(shift: Shift) -> None:
        arguments = world_arguments(settings, population="force")
        there = protocols.get(settings.protocol, {**arguments, "shift": shift.as_plain()})
        check_shifted(there)

    def can_make(shift: Shift) -> bool:
        try:
            check(shift)
        except ValueError:
            return False
        return True

    known = catalogue.catalogue(settings.shift_file)
    if "all" in settings.shifts:
        own = [shift for name, shift in known.items() if name not in catalogue.names()]
        for shift in own:  # a file is written to be used
            check(shift)
        return {name: shift.as_plain() for name, shift in known.items() if can_make(shift)}
    for name in settings.shifts:
        check_choice("shift", name, known, also=", or all")
        check(known[name])
    return {name: known[name].as_plain() for name in settings.shifts}
