"""A leaderboard of prediction files: which cells it consists of, and how each is computed.

Every file gets one predictor cell, which measures the exponents, and ``seeds`` searches per
engine. The controls of :mod:`symreg.controls` stand beside them on the same points, once for each
set of points; they have fewer searches than the true force, which shows what the engine can do.
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from orbits import artefacts, laws, locks
from orbits.manifest import manifest
from symreg import controls, leaderboard, predictions, results
from symreg.cells import Cell, Progress
from symreg.cells import run as run_cells
from symreg.measure import POINTS, predictor_metrics, search_config, search_line
from symreg.predictions import Predictions
from symreg.result_rows import CONTROLS

BASELINE = "powerlaw"
"""The closed-form engine that every row has beside the search: a bound, never a discovery."""
CONTROL_SEEDS = 3


@dataclass(frozen=True)
class Options:
    """What one leaderboard measures; it determines every cell.

    Attributes:
        files: The prediction files.
        law: The true law.
        engine: The engine that searches, ready to run.
        arguments: Changes to its settings.
        seeds: Searches per file: each draws its own points and seeds the engine.
        points: Points per search.
        rule: How a formula is chosen from a front; None for the engine's own rule.
    """

    files: tuple[Path, ...]
    law: str = "newton"
    engine: str = "operon"
    arguments: Mapping[str, Any] = field(default_factory=dict)
    seeds: int = 10
    points: int = POINTS
    rule: str | None = None

    def __post_init__(self) -> None:
        self.searches()  # refuses a law, an engine or a setting that there is not
        if not self.files:
            raise ValueError("no prediction file is given")
        if self.seeds < 1:
            raise ValueError(f"seeds must be at least 1, got {self.seeds}")

    def searches(self) -> list[dict[str, Any]]:
        """Return what determines a search, for the engine and for the baseline beside it."""
        chosen = search_config(self.law, self.engine, self.arguments, self.points, self.rule)
        if chosen["engine"] == BASELINE:
            return [chosen]
        return [chosen, search_config(self.law, BASELINE, {}, self.points, self.rule)]

    def config(self) -> dict[str, Any]:
        """Return plain data for the results folder's claim."""
        return {
            "benchmark": "leaderboard",
            "files": [[path.name, artefacts.sha256(path)] for path in self.files],
            "law": self.law,
            "engine": self.engine,
            "arguments": dict(self.arguments),
            "seeds": self.seeds,
            "points": self.points,
            "rule": self.rule,
        }


def cells(options: Options) -> list[Cell]:
    """Return every cell, the contestants' before the controls'.

    Raises:
        FileNotFoundError: A file is not there.
        ValueError: A file is not a prediction file, two hold the same row, or a file made
            elsewhere calls itself a control.
    """
    tables = [(path, predictions.read(path, options.law)) for path in options.files]
    rows: dict[str, Path] = {}
    for path, data in tables:
        if data.row["arm"] in CONTROLS and not data.manifest:
            raise ValueError(f"{path}: the arm {data.row['arm']!r} is reserved for controls")
        key = artefacts.key(data.row)
        if key in rows:
            raise ValueError(f"{rows[key]} and {path} hold the same row: {_label(data.row)}")
        rows[key] = path
    found = [*_contestants(options, tables), *_controls(options, tables)]
    names = {cell.config["row"]["model"] for cell in found if cell.config["control"]}
    for path, data in tables:
        if data.row["arm"] in CONTROLS and data.row["model"] in names:
            raise ValueError(f"{path}: the model is called like a control, {data.row['model']!r}")
    return found


def _contestants(options: Options, tables: list[tuple[Path, Predictions]]) -> Iterator[Cell]:
    for path, data in tables:
        yield from _row_cells(options, path, data, None, data.row, options.seeds)


def _controls(options: Options, tables: list[tuple[Path, Predictions]]) -> Iterator[Cell]:
    """Yield the controls: those without a model once for each set of points in a protocol."""
    few = min(options.seeds, CONTROL_SEEDS)
    seen: dict[str, set[str]] = {}
    for path, data in tables:
        row = {"protocol": data.row["protocol"], "arm": "control", "labels": "-", "seed": None}
        points = hashlib.sha256(data.X.tobytes() + data.force.tobytes()).hexdigest()
        known = seen.setdefault(row["protocol"], set())
        if points not in known:
            suffix = f" on the points of {_label(data.row)}" if known else ""
            known.add(points)
            for name in controls.names(options.law):
                seeds = options.seeds if name == controls.TRUTH else few
                named = {**row, "model": name + suffix}
                yield from _row_cells(options, path, data, name, named, seeds)
        named = {**row, "model": f"{controls.NOISE} {_label(data.row)}"}
        yield from _row_cells(options, path, data, controls.NOISE, named, options.seeds)


def _row_cells(
    options: Options,
    path: Path,
    data: Predictions,
    control: str | None,
    row: Mapping[str, Any],
    seeds: int,
) -> Iterator[Cell]:
    """Yield the measuring cell of a row and its searches."""
    law = laws.get(options.law)
    shared = {
        "task": options.law,
        "law": {"expression": law.expression, "parameters": dict(law.parameters)},
        "row": dict(row),
        "predictions": data.sha256,
        "control": control,
        "definition": None if control is None else controls.definition(control),
    }
    inputs = {"predictions": path}
    yield Cell(
        "predictor",
        {**shared, "line_kind": "predictor", "seed": row["seed"]},
        inputs=inputs,
        label=f"measure {row['model']}",
    )
    for config in options.searches():
        for seed in range(seeds):
            label = f"{config['engine']} {seed}: {row['model']}"
            search = {**shared, **config, "line_kind": "law", "seed": seed}
            yield Cell("law", search, inputs=inputs, label=label)


def _label(row: Mapping[str, Any]) -> str:
    """Return a row's name, without what is not stated."""
    parts = [row["model"]] + ([row["arm"]] if row["arm"] != "-" else [])
    parts += [f"{row['labels']} labels"] if row["labels"] != "-" else []
    parts += [f"seed {row['seed']}"] if row["seed"] is not None else []
    return ", ".join(parts)


def measure(
    config: dict[str, Any], folder: Path, given: dict[str, Path], progress: Progress
) -> dict[str, Any]:
    """Compute a ``predictor`` cell."""
    data = _points(config, given["predictions"])
    return {
        "metrics": predictor_metrics(data, config["task"]),
        "manifest": manifest(config, seed=config["seed"], inputs={"predictions": data.sha256}),
    }


def search(
    config: dict[str, Any], folder: Path, given: dict[str, Path], progress: Progress
) -> dict[str, Any]:
    """Compute a ``law`` cell."""
    data = _points(config, given["predictions"])
    line = search_line(
        data,
        law=config["task"],
        engine=config["engine"],
        arguments=config["arguments"],
        seed=config["seed"],
        n=config["points"],
        rule=config["rule"],
    )
    inputs = {"predictions": data.sha256}
    return {**line, "manifest": manifest(config, seed=config["seed"], inputs=inputs)}


COMPUTE = {"predictor": measure, "law": search}


def initialise() -> None:
    """Prepare a worker: cells run side by side, so each has one thread."""
    from threadpoolctl import threadpool_limits

    threadpool_limits(limits=1)


def _points(config: Mapping[str, Any], path: Path) -> Predictions:
    return _answers(path, config["predictions"], config["task"], config["control"])


@functools.lru_cache(maxsize=4)  # a worker's next cell is mostly of the same row
def _answers(path: Path, sha256: str, law: str, control: str | None) -> Predictions:
    data = predictions.read(path, law)
    if data.sha256 != sha256:
        raise ValueError(f"{path} changed while the leaderboard ran")
    return data if control is None else controls.answer(control, data)


def run(
    options: Options,
    out: Path,
    *,
    jobs: int,
    partition: str | None = None,
    resume: bool = False,
    overwrite: bool = False,
    wanted: Sequence[Cell] = (),
) -> Path:
    """Compute what is not done yet, and write the lines and the leaderboard into ``out``.

    Args:
        options: What is measured.
        out: The results folder; the same options continue what is there.
        jobs: Worker processes on this machine.
        partition: The Slurm partition that computes instead.
        resume: Continue a folder of other options, keeping the cells that the two share.
        overwrite: Start a folder again.
        wanted: The result of :func:`cells`, if it was called before.

    Returns:
        The HTML leaderboard; ``leaderboard.md`` and the lines lie beside it.

    Raises:
        ValueError: A file is refused, or the folder holds something else.
        FileNotFoundError: A prediction file is not there.
        RuntimeError: A Slurm job died; what was done stays done.
    """
    wanted = wanted or cells(options)
    config = options.config()
    results.check(out, config, resume=resume, overwrite=overwrite)
    with locks.lock(out):
        results.claim(out, config, resume=resume, overwrite=overwrite)
        lines = run_cells(
            wanted, out, COMPUTE, jobs=jobs, initialise=initialise, partition=partition
        )
        results.save(out, lines)
        table = leaderboard.rows(lines, options.law)
        markdown = leaderboard.to_markdown(table, options.law, lines)
        artefacts.write_bytes(out / "leaderboard.md", markdown.encode())
        _, record = results.load(out)
        html = leaderboard.to_html(lines, table, options.law, record)
        artefacts.write_bytes(out / "leaderboard.html", html.encode())
    return out / "leaderboard.html"
