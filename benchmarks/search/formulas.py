"""Formulas of other fields as a test of symbolic searches: NewtonBench's twelve domains.

A formula that a search returns counts as found if, but for one positive factor, it is the true one
within 1% at 95% of new points, both in the range that was searched and beyond it, where every
log-uniform variable goes twice as far at both ends; strictly, within 0.1%. Both are the same at
every noise. That is agreement of numbers, not of form: where a term hardly shows on these ranges, a
formula without it counts too. A search is asked for the fit alone; choosing experiments, which
NewtonBench asks of its agents, is no part of it.
"""

from __future__ import annotations

import functools
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt
import yaml

from symreg.formula.evaluation import evaluate

Array = npt.NDArray[np.float64]
Ranges = Mapping[str, tuple[float, float]]

FILE = Path(__file__).with_name("newton_bench.yaml")
LEVELS = ("easy", "medium", "hard")
POINTS, NEW = 1000, 2000
TOLERANCE, STRICT, SHARE_AGREED, BEYOND = 1e-2, 1e-3, 0.95, 2.0
FLAT = 0.01
"""Largest relative spread of a truth that is one number and says nothing about a search."""
OUTER = MappingProxyType({"acos": np.arccos, "asin": np.arcsin, "atan": np.arctan})
"""Inverse functions in front of a formula, whose values are then degrees."""


@dataclass(frozen=True)
class Formula:
    """One true formula.

    Attributes:
        name: ``domain_level_version``.
        level: easy, medium or hard.
        text: The formula, in the grammar of :mod:`symreg.formula.grammar`.
        outer: A name of :data:`OUTER`, of whose values these are the arguments; empty for none.
        log: Ranges of the variables that are log-uniform.
        uniform: Ranges of those that are uniform.
    """

    name: str
    level: str
    text: str
    outer: str
    log: Ranges
    uniform: Ranges

    @property
    def names(self) -> tuple[str, ...]:
        """The variables."""
        return (*self.log, *self.uniform)

    def values(self, X: Array) -> Array:
        """Return the truth at points X [n, d], NaN where there is none."""
        values = evaluate(self.text, self.names, X)
        with np.errstate(invalid="ignore"):
            return np.degrees(OUTER[self.outer](values)) if self.outer else values

    def points(self, n: int, rng: np.random.Generator, beyond: float = 1.0) -> tuple[Array, Array]:
        """Return n points [n, d] and the truth there, positive everywhere."""
        ends = {x: (low / beyond, high * beyond) for x, (low, high) in self.log.items()}
        columns = [
            np.exp(rng.uniform(np.log(low), np.log(high), 8 * n)) for low, high in ends.values()
        ]
        columns += [rng.uniform(*limits, 8 * n) for limits in self.uniform.values()]
        X = np.column_stack(columns)
        y = self.values(X)
        there = np.flatnonzero(np.isfinite(y) & (y > 0))[:n]
        return X[there], y[there]

    def plain(self) -> dict[str, Any]:
        """Return all that determines the points and the truth, as plain data."""
        return {
            "formula": self.text,
            "outer": self.outer,
            "log": {x: list(limits) for x, limits in self.log.items()},
            "uniform": {x: list(limits) for x, limits in self.uniform.items()},
            "points": [POINTS, NEW],
            "found": [TOLERANCE, STRICT, SHARE_AGREED, BEYOND],
        }


@functools.cache
def catalogue() -> Mapping[str, Formula]:
    """Return every formula by its name."""
    return MappingProxyType({formula.name: formula for formula in _read()})


def asked(names: Sequence[str]) -> list[Formula]:
    """Return formulas by their names: of one, of a domain, of a version (``v0``), or of ``all``.

    Those of which the truth is one number on its range are left out of groups.
    """
    found: dict[str, Formula] = {}
    known = catalogue()
    for name in names:
        if name in known:
            if is_flat(name):
                raise ValueError(f"formula {name!r} is one number on its range; take another")
            found[name] = known[name]
            continue
        group = [x for x in known if name in ("all", x.rsplit("_", 2)[0], "v" + x[-1])]
        if not group:
            domains = dict.fromkeys(x.rsplit("_", 2)[0] for x in known)
            raise ValueError(
                f"unknown formula {name!r}; choose from all, v0, v1, v2, {', '.join(domains)}, or "
                "one of them, as gravity_easy_0"
            )
        found |= {x: known[x] for x in group if not is_flat(x)}
    return list(found.values())


@functools.cache
def is_flat(name: str) -> bool:
    """Tell whether a formula is one number, within a hundredth, at 95% of its points."""
    _, y = catalogue()[name].points(NEW, np.random.default_rng(0))
    return bool(np.mean(np.abs(y / np.median(y) - 1) <= FLAT) >= SHARE_AGREED)


def drawn(formula: Formula, noise: float, seed: int) -> tuple[Array, Array]:
    """Return the points of a search, and the truth there times 1 + noise N(0, 1)."""
    rng = np.random.default_rng([seed, 2, zlib.crc32(formula.name.encode())])
    X, y = formula.points(POINTS, rng)
    return X, y * (1 + noise * rng.standard_normal(len(y)))


def agreement(text: str, formula: Formula, seed: int) -> dict[str, float]:
    """Return whether a formula is the true one, see the module: metrics of a cell."""
    rng = np.random.default_rng([seed, 3, zlib.crc32(formula.name.encode())])
    ratios = []
    for beyond in (1.0, BEYOND):
        X, y = formula.points(NEW, rng, beyond)
        with np.errstate(all="ignore"):
            ratios.append(evaluate(text, formula.names, X) / y)
    inside = ratios[0][np.isfinite(ratios[0])]
    factor = float(np.median(inside)) if len(inside) else 0.0

    def shares(tolerance: float) -> list[float]:
        if factor <= 0:
            return [0.0, 0.0]
        return [float(np.mean(np.abs(ratio / factor - 1) <= tolerance)) for ratio in ratios]

    inside_share, outside_share = shares(TOLERANCE)
    return {
        "agreed_in_range": inside_share,
        "agreed_outside": outside_share,
        "found_in_range": float(inside_share >= SHARE_AGREED),
        "found": float(min(inside_share, outside_share) >= SHARE_AGREED),
        "found_strict": float(min(shares(STRICT)) >= SHARE_AGREED),
    }


def _read() -> Iterator[Formula]:
    for domain, entry in yaml.safe_load(FILE.read_text(encoding="utf-8")).items():
        log, uniform = (
            {x: (float(low), float(high)) for x, (low, high) in entry.get(kind, {}).items()}
            for kind in ("variables", "uniform")
        )
        for level in LEVELS:
            for version, text in enumerate(entry[level]):
                ((outer, inner),) = text.items() if isinstance(text, dict) else (("", str(text)),)
                yield Formula(f"{domain}_{level}_{version}", level, inner, outer, log, uniform)
