"""The problems by name."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

from benchmarks.problems import Problem
from benchmarks.problems.mad.compression import Compression
from benchmarks.problems.mad.copying import SelectiveCopy
from benchmarks.problems.mad.fuzzy import FuzzyRecall
from benchmarks.problems.mad.memorization import Memorization
from benchmarks.problems.mad.recall import InContextRecall
from benchmarks.problems.mixture import MQARMixture
from benchmarks.problems.mqar import MQAR
from benchmarks.problems.passkey import Passkey
from benchmarks.problems.regbench import RegBench

PROBLEMS: dict[str, Callable[..., Problem]] = {
    "compression": Compression,
    "fuzzy_recall": FuzzyRecall,
    "in_context_recall": InContextRecall,
    "memorization": Memorization,
    "mqar": MQAR,
    "mqar_mixture": MQARMixture,
    "passkey": Passkey,
    "regbench": RegBench,
    "selective_copy": SelectiveCopy,
}


def get(name: str, **settings: Any) -> Problem:
    """Return a problem with some settings.

    Raises:
        ValueError: There is no such problem, or it refuses a setting.
    """
    if name not in PROBLEMS:
        raise ValueError(f"unknown problem {name!r}; choose from {', '.join(PROBLEMS)}")
    known = {field.name for field in dataclasses.fields(PROBLEMS[name])}  # type: ignore[arg-type]
    if unknown := sorted(set(settings) - known):
        raise ValueError(
            f"{name} has no setting {unknown[0]!r}; choose from {', '.join(sorted(known))}"
        )
    return PROBLEMS[name](**settings)
