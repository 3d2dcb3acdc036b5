"""The leaderboard of prediction files, a study: its cells and its report.

The forces of every file are measured once, and ``seeds`` symbolic searches per engine look for a
formula in them. The controls of :mod:`symreg.controls` stand beside them on the same points, once
for each set of points; they have fewer searches than the true force, which shows what the engine
can do.
"""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from threadpoolctl import threadpool_limits

from orbits import laws
from orbits.runs import artefact
from orbits.runs.cell import Cell
from orbits.runs.digests import digest
from orbits.runs.result import Case, Result
from orbits.runs.study import Study
from symreg import controls, engines, predictions
from symreg.leaderboard import cells as compute
from symreg.leaderboard import quantities
from symreg.leaderboard.row import CONTROLS, FORCES, SEARCH
from symreg.leaderboard.settings import LeaderboardSettings
from symreg.points import NAMES
from symreg.predictions import Predictions

if TYPE_CHECKING:
    from orbits.runs.page import Report

CONTROL_SEEDS = 3


def one_thread() -> None:
    """Give each worker one thread, as cells run side by side."""
    threadpool_limits(limits=1)


class Leaderboard(Study):
    """Study that ranks prediction files beside their controls."""

    name = "leaderboard"
    about = "What law do the predictions contain?"
    Settings = LeaderboardSettings
    metrics = {**quantities.FORCES, **quantities.SEARCH}  # noqa: RUF012
    words = "files"
    once = ("files",)
    prepare = staticmethod(one_thread)

    def resolve(self, settings: LeaderboardSettings) -> LeaderboardSettings:
        """Return settings with every file once and the engine that ``auto`` stands for."""
        engine = engines.resolve(settings.engine)[0].name
        return dataclasses.replace(super().resolve(settings), engine=engine)

    def out(self, settings: LeaderboardSettings, preset: str) -> Path:
        """Return ``runs/leaderboard``."""
        return Path("runs") / self.name

    def config(self, settings: LeaderboardSettings, preset: str) -> dict[str, Any]:
        """Return the data that determine the results: files count by name and checksum.

        A FileNotFoundError tells which file there is not.
        """
        if missing := [file for file in settings.files if not Path(file).exists()]:
            raise FileNotFoundError(f"{missing[0]}: no such file")
        files = [[Path(file).name, digest(file)] for file in settings.files]
        return {**super().config(settings, preset), "files": files}

    def cells(self, settings: LeaderboardSettings) -> list[Cell]:
        """Return every cell, the contestants' before the controls'.

        A ValueError tells that a file is not a prediction file, that two hold the same row, or that
        a file made elsewhere calls itself a control.
        """
        if not settings.files:
            raise ValueError("no prediction file is given")
        searches = settings.searches()  # refuses a law, an engine or a setting that there is not
        tables = [(Path(file), predictions.read(file, settings.law)) for file in settings.files]
        rows: dict[str, Path] = {}
        for path, data in tables:
            if data.row["arm"] in CONTROLS and not data.manifest:
                raise ValueError(f"{path}: the arm {data.row['arm']!r} is reserved for controls")
            _check_varies(path, data)
            key = artefact.key(data.row)
            if key in rows:
                by_file = data.row["model"] == path.stem
                hint = "rename one" if by_file else "name one by a column model"
                raise ValueError(
                    f"{rows[key]} and {path} hold the same row: {_label(data.row)}; {hint}"
                )
            rows[key] = path
        contestants = [
            cell
            for path, data in tables
            for cell in _row_cells(settings, searches, path, None, data.row, settings.seeds)
        ]
        of_controls = list(_controls(settings, searches, tables))
        names = {cell.case.variant for cell in of_controls}
        for path, data in tables:
            if data.row["arm"] in CONTROLS and data.row["model"] in names:
                name = data.row["model"]
                raise ValueError(f"{path}: the model is called like a control, {name!r}")
        return [*contestants, *of_controls]

    def report(self, results: Sequence[Result], config: Mapping[str, Any], out: Path) -> Report:
        """Return rows, figures, published results and every formula."""
        from symreg.leaderboard.sections import report

        return report(results)


def _check_varies(path: Path, data: Predictions) -> None:
    """Refuse points that determine no exponent of a variable, which no row could show."""
    for name, column in zip(NAMES, data.X.T, strict=True):
        if len(data) and float(np.ptp(column)) == 0:
            raise ValueError(
                f"{path}: {name} is {column[0]:g} at every point, which leaves its exponent open; "
                f"add systems with another {name}. python -m symreg score compares a formula on it"
            )


def _controls(
    settings: LeaderboardSettings,
    searches: Sequence[dict[str, Any]],
    tables: list[tuple[Path, Predictions]],
) -> Iterator[Cell]:
    """Yield the controls: those without a model once for each set of points in a protocol."""
    few = min(settings.seeds, CONTROL_SEEDS)
    sets: dict[str, set[str]] = {}
    for path, data in tables:
        row = {"protocol": data.row["protocol"], "arm": "control", "labels": "-", "seed": None}
        points = hashlib.sha256(data.X.tobytes() + data.force.tobytes()).hexdigest()
        others = sets.setdefault(row["protocol"], set())
        if points not in others:
            suffix = f" on the points of {_label(data.row)}" if others else ""
            others.add(points)
            for name in controls.names(settings.law):
                seeds = settings.seeds if name == controls.TRUTH else few
                identity = {**row, "model": name + suffix}
                yield from _row_cells(settings, searches, path, name, identity, seeds)
        identity = {**row, "model": f"{controls.NOISE} {_label(data.row)}"}
        yield from _row_cells(settings, searches, path, controls.NOISE, identity, settings.seeds)


def _row_cells(
    settings: LeaderboardSettings,
    searches: Sequence[dict[str, Any]],
    path: Path,
    control: str | None,
    row: Mapping[str, Any],
    seeds: int,
) -> Iterator[Cell]:
    """Yield the measuring cell of a row and its searches."""
    law = laws.get(settings.law)
    definition = {
        "law": {"expression": law.expression, "parameters": dict(law.parameters)},
        "control": None if control is None else controls.definition(control),
    }
    shared = {"law": settings.law, "control": control}
    inputs = {"predictions": path}
    case = Case(
        Leaderboard.name,
        FORCES,
        row["model"],
        row["arm"],
        row["seed"],
        settings.law,
        row["protocol"],
        {"labels": row["labels"]},
    )
    yield Cell(compute.forces, case, {**shared, "definition": definition}, inputs=inputs)
    for config in searches:
        for seed in range(seeds):
            setting = {**case.setting, "engine": config["engine_version"], "search": seed}
            yield Cell(
                compute.search,
                dataclasses.replace(case, kind=SEARCH, setting=setting),
                {
                    **shared,
                    "engine": config["engine"],
                    "engine_args": config["arguments"],
                    "seed": seed,
                    "points": config["points"],
                    "rule": config["rule"],
                    "definition": {**config, **definition},
                },
                inputs=inputs,
            )


def _label(row: Mapping[str, Any]) -> str:
    """Return a row's name, without parts that are not stated."""
    parts = [row["model"]] + ([row["arm"]] if row["arm"] != "-" else [])
    parts += [f"{row['labels']} labels"] if row["labels"] != "-" else []
    parts += [f"seed {row['seed']}"] if row["seed"] is not None else []
    return ", ".join(parts)


STUDY = Leaderboard()
