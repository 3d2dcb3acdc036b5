"""``python -m symreg ls``: list engines and laws."""

from __future__ import annotations

import argparse
import dataclasses
from typing import Any

from orbits import laws
from orbits.runs import output
from symreg import engines


def main(options: argparse.Namespace) -> None:
    """List engines, with their state, and laws."""
    output.say(options, _text, _record, lambda: "\n".join((*engines.names(), *laws.names())))


def _record() -> dict[str, Any]:
    state = {name: dataclasses.asdict(engines.get(name).status()) for name in engines.names()}
    broken = [*engines.broken().values(), *laws.broken().values()]
    return {"engines": state, "laws": _formulas(), "broken": broken}


def _formulas() -> dict[str, str]:
    formulas = {name: laws.get(name).expression for name in laws.names()}
    return formulas | {family.name: family.expression for family in laws.families()}


def _text() -> str:
    width = max(map(len, (*engines.names(), *laws.names())))
    states = {name: engines.get(name).status() for name in engines.names()}
    return "\n".join(
        [
            "engines",
            *(f"  {name:<{width}}  {x.state:<12}  {x.reason}" for name, x in states.items()),
            *(f"no engine: {line}" for line in engines.broken().values()),
            "laws",
            *(f"  {name:<{width}}  {formula}" for name, formula in _formulas().items()),
            *(f"no law: {line}" for line in laws.broken().values()),
        ]
    )
