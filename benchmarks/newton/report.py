"""The flagship's report: sentences, leaderboard, world models, figures, formulas."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.newton import exam_report, figures, sentences
from benchmarks.newton.differences import differences
from benchmarks.newton.exam_rows import Exam
from benchmarks.newton.headline import headline, in_the_box
from benchmarks.newton.world_models import continues, world_models
from orbits.motion import NEWTON
from orbits.runs.folder import FIGURES
from orbits.runs.page import Report, Section
from orbits.runs.result import Result
from orbits.runs.study import Study
from orbits.runs.table import Table, seed_table
from symreg.leaderboard import rows, sections, words

TITLE = "Does a model that predicts orbits learn the law behind them?"
ARMS = (
    "Each model seed draws its own training sequences; all share the held-out ones. The scratch "
    "arm takes as many steps as both phases of the pre-trained one. The nearest neighbours on the "
    "true state, the power law and the ceiling are given more than a model sees: true states, true "
    "masses, and a whole sequence with the physics."
)
ALONG = "The exponent of r along orbits and between them"
ALONG_NOTE = (
    "One fit over all points mixes the two. Along an orbit, with a level of its own for each, the "
    "masses stand still. Between orbits a mass that is inferred by another law is wrong by a power "
    "of the orbit's size: an observer who carries that law has its exponent along orbits and "
    "another between them."
)


def report(study: Study, results: Sequence[Result], config: Mapping[str, Any], out: Path) -> Report:
    """Return the report of a run."""
    law = config.get("law", NEWTON)  # results from before there were others
    here = [result for result in results if result.case.law == law]  # not of other worlds
    table = rows(here, law)
    exam = Exam.of(here)
    first = headline(exam.rows, table) if exam.rows else in_the_box(table)
    compared = differences(table, here)
    drawn = figures.pictures(here, out, out / FIGURES)
    asked_for = [
        *sections.leaderboard(table, law),
        _along_and_between(here),
        sections.published(),
        Section("Reading", sentences=[ARMS, *words.READING]),
        *_each([world_models(here), *(x for each in compared for x in (each.at_once, each.table))]),
        *sections.formulas(table),
    ]
    return Report(
        title=TITLE,
        setting=f"{study.setting(config)} Protocol {config['protocol']}, law {law}.",
        sentences=[
            *sentences.verdict(table, exam, law),
            *sentences.hidden_masses(law),
            *exam_report.sentences(exam),
            *continues(here),
            *sentences.answers(table, law),
            *sentences.heads_elsewhere(results),
            *sentences.mixed_backbones(here),
            *(claim for each in compared for claim in each.claims),
        ],
        sections=[
            *_each([first]),
            *exam_report.section(exam, out / FIGURES),
            *_each(each.matrix for each in compared),
            *(Section("Figures", pictures=drawn) for _ in drawn[:1]),
            *(dataclasses.replace(section, folded=True) for section in asked_for),
        ],
        warnings=sentences.leaks(config),
    )


def _each(tables: Iterable[Table | None]) -> list[Section]:
    """Return a section for each table that has rows."""
    return [Section(table.title, [table]) for table in tables if table and table.rows]


def _along_and_between(results: Sequence[Result]) -> Section:
    """Return the exponent of r along each orbit and between orbits, of which one fit is a mixture.

    Along an orbit the masses stand still, so that it tells the law by which a row goes; between
    orbits it also tells how the masses were inferred.
    """
    forces = [result for result in results if result.case.kind == "forces"]
    metrics = ("exponent_r_within", "exponent_r_between", "exponent_r")
    table = seed_table(ALONG, forces, ("variant", "arm", "labels"), metrics)
    return Section(ALONG, [table], [ALONG_NOTE])
