"""The study of training choices that make a world model Newtonian or Keplerian.

Liu et al. (2026, arXiv:2602.06923) find that a transformer holds the shape of an orbit where it
sees all of it, and the force where its context is short, once it predicts places by regression and
is trained with noise on its context. Here the three knobs are turned one at a time around a centre;
attention is a fourth. A model is asked what can be read from its states, and which law its own
continuations obey, which no read-out tells: what is there to be read need not be used.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from benchmarks.kepler_or_newton.points import RANDOM
from benchmarks.kepler_or_newton.settings import LISTS, KeplerOrNewton
from benchmarks.newton.quantities import QUANTITIES
from benchmarks.newton.recipe import RecipeStudy
from benchmarks.published.compare import Verdict
from orbits.runs.deferred import deferred
from orbits.runs.folder import FIGURES
from orbits.runs.page import Report
from orbits.runs.result import Quantity, Result
from worldmodel.probes.quantities import QUANTITIES as PROBES

MEASURED = ("exponent_within", "first_error", "last_error")


class KeplerOrNewtonStudy(RecipeStudy):
    """Read-outs and implied laws of world models by head, noise, context and attention."""

    name = "kepler_or_newton"
    about = "When does a world model become Newtonian?"
    Settings = KeplerOrNewton
    once = LISTS
    untrained = (RANDOM,)
    metrics: ClassVar[Mapping[str, Quantity]] = {
        **QUANTITIES,
        **{name: PROBES[name] for name in MEASURED},
        **{name: value for name, value in PROBES.items() if name.startswith("r2_")},
        "rollout_error": Quantity("lower", "AU", "error of a rollout, mean over its rows"),
    }
    cells = deferred("benchmarks.kepler_or_newton.grid:cells")
    tables = deferred("benchmarks.kepler_or_newton.tables:tables")
    figures = deferred("benchmarks.kepler_or_newton.figure:figures")
    sentences = deferred("benchmarks.kepler_or_newton.sentences:sentences")
    all_at_once = deferred("benchmarks.kepler_or_newton.scores:all_at_once")

    def report(self, results: Sequence[Result], config: Mapping[str, Any], out: Path) -> Report:
        """Return the report with the published numbers at its end."""
        from benchmarks.kepler_or_newton import exam
        from benchmarks.kepler_or_newton.beside import with_published

        report = super().report(results, config, out)
        examined = exam.section(results, out / FIGURES)
        report = dataclasses.replace(report, sections=[*report.sections, *examined])
        return with_published(report, results, self.setting(config))

    def verdicts(
        self, results: Sequence[Result], config: Mapping[str, Any]
    ) -> dict[str, list[Verdict]]:
        """Return the verdicts of results on each published number, by table."""
        from benchmarks.kepler_or_newton.beside import CONTEXT, NOISE, verdicts

        there = [result for result in results if result.ok]
        return {table: verdicts(there, table) for table in (CONTEXT, NOISE)}


STUDY = KeplerOrNewtonStudy()
