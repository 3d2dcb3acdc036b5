"""Recovery rates of symbolic searches on synthetic forces with noise, over many seeds.

Every law, noise and engine gets one row, and every seed draws its own points, noise and search.
Forces of other laws stand beside Newton's: a search on them must never be scored as Newton's law.
Written for fresh seeds: whoever tunes an engine does it on others.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.search.settings import LawRatesSettings
from orbits import laws
from orbits.runs.cell import Cell, Outcome
from orbits.runs.deferred import deferred
from orbits.runs.page import Report
from orbits.runs.result import Case, Result
from orbits.runs.study import Study
from symreg import controls, engines, measure
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
    """Return the true force of a law, or of a control, times 1 + noise * N(0, 1) at each point.

    Args:
        law: A name of :mod:`orbits.laws`.
        noise: Standard deviation of the relative noise.
        seed: Draws points and noise.
        control: A wrong law of :mod:`symreg.controls` that makes the answers instead.
    """
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
    metrics = quantities.SEARCH
    prepare = staticmethod(one_thread)

    def resolve(self, settings: LawRatesSettings) -> LawRatesSettings:
        """Return settings with every value once and the engine that ``auto`` stands for."""
        return dataclasses.replace(
            settings,
            law=tuple(dict.fromkeys(settings.law)),
            noise=tuple(dict.fromkeys(settings.noise)),
            engine=tuple(dict.fromkeys(engines.resolve(name)[0].name for name in settings.engine)),
        )

    def config(self, settings: LawRatesSettings, preset: str) -> dict[str, Any]:
        """Return what determines the results, numbers of points and rules included."""
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

    def report(self, results: Sequence[Result], config: Mapping[str, Any], out: Path) -> Report:
        """Return a table of rates for each law, and every formula."""
        made: Report = leaderboard_report(results, drawn=False)
        return dataclasses.replace(made, title=self.about, setting=self.setting(config))


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
        definition: What the names stand for; a part of the cell's address alone.
    """
    data = synthetic(law, noise, seed, control)
    return measure.search(data, law=law, engine=engine, seed=seed)


STUDY = LawRates()
