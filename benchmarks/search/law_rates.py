"""Recovery rates of symbolic searches on synthetic forces with noise, over many seeds.

Every law, noise and engine gets one row, and every seed draws its own points, noise and search.
Forces of other laws stand beside Newton's: a search on them must never be scored as Newton's law.
Written for fresh seeds: whoever tunes an engine does it on others. Formulas of other fields, in any
variables, are searched in the same way (:mod:`benchmarks.search.formulas`).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from benchmarks.search import formula_report, formulas
from benchmarks.search.formula_report import FORMULA
from benchmarks.search.settings import LawRatesSettings
from orbits import laws
from orbits.runs.cell import Cell, Outcome
from orbits.runs.deferred import deferred
from orbits.runs.page import Report
from orbits.runs.result import Case, Quantity, Result
from orbits.runs.statistics import wilson
from orbits.runs.study import Study
from symreg import controls, engines, measure
from symreg.formula.thresholds import TOLERANCE
from symreg.leaderboard import SEARCH, quantities
from symreg.leaderboard.leaderboard import one_thread
from symreg.measure import POINTS, search_config
from symreg.points import NAMES
from symreg.predictions import Predictions

leaderboard_report = deferred("symreg.leaderboard.sections:report")
WRONG = ("1/r", "m1/r^2", "m2/r^2", "Yukawa")
HELD_OUT = 2000
RANGES = {"r": (0.3, 32.0), "m1": (1e-4, 1e-2), "m2": (1e-4, 1e-2)}
"""Uniform, AU and solar masses: two-body systems of Vafa et al. (2025)."""


def synthetic(law: str, noise: float, seed: int, control: str | None = None) -> Predictions:
    """Return the true force of a law, or of a control, times 1 + noise * N(0, 1) at each point."""
    rng, n = np.random.default_rng([seed, 1]), POINTS + HELD_OUT
    X = np.column_stack([rng.uniform(*RANGES[name], n) for name in NAMES])
    force = laws.get(law).magnitude(*X.T)
    data = Predictions(
        sequence_id=np.arange(n),
        step=np.zeros(n, np.int64),
        X=X,
        force=force,
        force_predicted=force,
        vectors={},
        manifest={},
        sha256="",
        row={},
    )
    answer = data if control is None else controls.answer(control, data)
    noisy = answer.force_predicted * (1 + noise * rng.standard_normal(n))
    return controls.replaced(data, noisy)


class LawRates(Study):
    """Recovery rates of force laws."""

    name = "law_rates"
    about = "How often does a symbolic search find a law that is there?"
    Settings = LawRatesSettings
    once = ("law", "formula", "noise")
    metrics: ClassVar = {
        **quantities.SEARCH,
        "found": Quantity("higher", "", "whether a formula is the true one", bounds=(0, 1)),
        "found_strict": Quantity("higher", "", "the same within 0.1%", bounds=(0, 1)),
        "found_in_range": Quantity("higher", "", "the same in the range alone", bounds=(0, 1)),
        "agreed_in_range": Quantity("higher", "", "share of points that agree", bounds=(0, 1)),
        "agreed_outside": Quantity("higher", "", "the same beyond the range", bounds=(0, 1)),
    }
    prepare = staticmethod(one_thread)

    def resolve(self, settings: LawRatesSettings) -> LawRatesSettings:
        """Return settings with every value once and the engine that ``auto`` stands for."""
        named = dict.fromkeys(engines.resolve(name)[0].name for name in settings.engine)
        return dataclasses.replace(super().resolve(settings), engine=tuple(named))

    def config(self, settings: LawRatesSettings, preset: str) -> dict[str, Any]:
        """Return the data that determine the results, numbers of points and rules included."""
        rules = {name: engines.get(name).rule for name in settings.engine if name != "auto"}
        own = {"points": POINTS, "held_out": HELD_OUT, "rules": rules}
        return {**super().config(settings, preset), **own}

    def cells(self, settings: LawRatesSettings) -> Iterator[Cell]:
        """Yield one cell per law, noise, engine and seed, and those of the wrong laws."""
        for seed in range(settings.first_seed, settings.first_seed + settings.seeds):
            few = seed - settings.first_seed < settings.wrong_seeds
            for law, noise, engine in product(settings.law, settings.noise, settings.engine):
                for control in (None, *WRONG) if law == "newton" and few else (None,):
                    yield _cell(law, noise, engine, seed, control)
            asked = formulas.asked(settings.formula)
            for formula, noise, engine in product(asked, settings.noise, settings.engine):
                yield _formula_cell(formula, noise, engine, seed)

    def report(self, results: Sequence[Result], config: Mapping[str, Any], out: Path) -> Report:
        """Return a table of rates for each law, one of formulas, and every answer."""
        made = Report("")
        if any(result.case.kind == SEARCH for result in results):
            made = leaderboard_report(results, drawn=False)
        own = formula_report.section(results)
        sections = [*([own] if own else ()), *made.sections]
        return dataclasses.replace(
            made,
            title=self.about,
            setting=self.setting(config),
            sections=sections,
            sentences=[*_verdict(results), *formula_report.sentences(results)],
        )


def _verdict(results: Sequence[Result]) -> list[str]:
    """Say how often a law is found at each noise, and how often where the law is another."""
    found: dict[tuple[str, str], dict[str, list[bool]]] = {}
    wrong: dict[str, list[bool]] = {}
    for result in results:
        if result.case.kind != SEARCH:
            continue
        is_law = result.ok and result.details.get("verdict") == "law"  # a failed search found none
        if result.case.arm == "control":
            wrong.setdefault(str(result.case.get("engine")), []).append(is_law)
            continue
        law, _, noise = result.case.variant.rpartition(", ")
        of = found.setdefault((law, str(result.case.get("engine"))), {})
        of.setdefault(noise, []).append(is_law)
    said = [
        f"Formulas with exponents within {TOLERANCE} of those of the law {law} are found on its "
        f"true forces by {engine}: "
        f"{', '.join(f'{_rate(each)} at {noise}' for noise, each in of.items())}"
        for (law, engine), of in found.items()
    ]
    # Seeds are asked at every noise and of every other law, so that these are no single trials.
    said += [
        f"On answers of other laws, where it must not be found, {engine} finds it in {sum(each)} "
        f"of {len(each)} searches"
        for engine, each in wrong.items()
    ]
    return [f"{each}." for each in said]


def _rate(found: Sequence[bool]) -> str:
    """Return a rate with its interval."""
    _, low, high = wilson(sum(found), len(found))
    return f"{sum(found)} of {len(found)} [{low:.2f}, {high:.2f}]"


def _cell(law: str, noise: float, engine: str, seed: int, control: str | None) -> Cell:
    config = search_config(law, engine)
    case = Case(
        LawRates.name,
        SEARCH,
        f"{control or law}, {100 * noise:g}% noise",
        "control" if control else "true force",
        law=law,
        protocol="synthetic, uniform",
        setting={"labels": "-", "engine": config["engine_version"], "search": seed},
    )
    definition = {
        **config,
        "control": None if control is None else controls.definition(control),
        "ranges": {name: list(limits) for name, limits in RANGES.items()},
        "held_out": HELD_OUT,
    }
    arguments = {"law": law, "noise": noise, "control": control, "engine": engine, "seed": seed}
    return Cell(search, case, {**arguments, "definition": definition})


def _formula_cell(formula: formulas.Formula, noise: float, engine: str, seed: int) -> Cell:
    config = search_config("newton", engine)
    kept = ("engine", "engine_version", "arguments", "settings", "rule", "rule_settings")
    setting = {"engine": config["engine_version"], "noise": noise}
    case = Case(LawRates.name, FORMULA, formula.name, formula.level, seed=seed, setting=setting)
    definition = {**{name: config[name] for name in kept}, **formula.plain()}
    arguments = {"formula": formula.name, "noise": noise, "engine": engine, "seed": seed}
    return Cell(recover, case, {**arguments, "definition": definition})


def recover(
    formula: str, noise: float, engine: str, seed: int, definition: Mapping[str, Any]
) -> Outcome:
    """Search points of a formula for it.

    Args:
        formula: Name of the formula.
        noise: Standard deviation of the relative noise.
        engine: The engine's name.
        seed: Draws points and noise, and seeds the search.
        definition: Definition of the formula; a part of the cell's address alone.
    """
    true = formulas.catalogue()[formula]
    searcher = engines.get(engine)
    front = searcher.fit(*formulas.drawn(true, noise, seed), true.names, seed)
    text = front.best(searcher.rule).expression
    return Outcome(formulas.agreement(text, true, seed), {"expression": text})


def search(
    law: str,
    noise: float,
    control: str | None,
    engine: str,
    seed: int,
    definition: Mapping[str, Any],
) -> Outcome:
    """Search synthetic forces for a formula.

    Args:
        law: The law of the world.
        noise: Standard deviation of the relative noise.
        control: A wrong law of :mod:`symreg.controls` that makes the answers instead.
        engine: The engine's name.
        seed: Draws points and noise, and seeds the search.
        definition: Definition of the law; a part of the cell's address alone.
    """
    data = synthetic(law, noise, seed, control)
    return measure.search(data, law=law, engine=engine, seed=seed)


STUDY = LawRates()
