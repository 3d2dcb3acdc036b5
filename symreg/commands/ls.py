"""``python -m symreg ls``: list engines and laws."""

from __future__ import annotations

import argparse
import dataclasses
import json

from orbits import laws
from symreg import engines


def main(options: argparse.Namespace) -> None:
    """List engines, with their state, and laws."""
    if options.json:
        state = {name: dataclasses.asdict(engines.get(name).status()) for name in engines.names()}
        known = [*map(laws.get, laws.names()), *laws.families()]
        broken = [*engines.broken().values(), *laws.broken().values()]
        formulas = {law.name: law.expression for law in known}
        print(json.dumps({"engines": state, "laws": formulas, "broken": broken}))
        return
    print("engines")
    width = max(map(len, (*engines.names(), *laws.names())))
    for name in engines.names():
        status = engines.get(name).status()
        print(f"  {name:<{width}}  {status.state:<12}  {status.reason}")
    for line in engines.broken().values():
        print(f"no engine: {line}")
    print("laws")
    for name in laws.names():
        print(f"  {name:<{width}}  {laws.get(name).expression}")
    for family in laws.families():
        print(f"  {family.name:<{width}}  {family.expression}")
    for line in laws.broken().values():
        print(f"no law: {line}")
