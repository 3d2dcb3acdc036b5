"""The cell: one call of a function with plain arguments, kept by its content address.

A cell's key is the hash of the function's name and version, its arguments, its case, the keys of
the cells it needs and the checksums of the files it reads. Its folder is ``OUT/cells/KEY``; it is
done when ``cell.json`` is there and intact. The name in a record is part of an address: nothing
is ever imported from a file.

A function asks for what it uses by the names of its parameters: its arguments; for each needed
cell that cell's folder, and for each input file its path, under the name of the role; ``folder``,
its own folder, empty at the start; ``scratch``, a folder that survives a kill, for checkpoints
and finished pieces; ``progress``, to be called with (step, total).
"""

from __future__ import annotations

import contextlib
import dataclasses
import inspect
import json
import resource
import shutil
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from orbits.runs import artefact, locks, plugins
from orbits.runs.digests import digest
from orbits.runs.manifest import manifest
from orbits.runs.result import Case, Metric, Result

VERSION = 5
"""Version of cells; it rises when cells of older code must not be reused."""

RECORD = "cell.json"
OFFERED = ("folder", "scratch", "progress")
"""Parameters that a function may have beside those its cell names."""
CELLS = "cells"
ORIGIN = ", origin"
"""Ending of the role, in a manifest, of the file from which another was restored."""
REPORT_EVERY = 0.5
"""Seconds between two progress messages of a cell."""

Progress = Callable[[int, int], None]


class Skipped(Exception):
    """A cell is left out, say since a download failed; the next run tries again."""


def leave_out(why: str) -> Outcome:
    """Skip a cell that cannot be computed here; called from its function."""
    raise Skipped(why)


@dataclass(frozen=True)
class Outcome:
    """The measurements that the function of a cell returns.

    Attributes:
        metrics: Numbers by name: a number, (value, low, high), or a :class:`Metric`.
        details: Plain data that is no single number.
        files: Names of files in the cell's folder, by role.
        variant: The variant, in place of the case's; None keeps the case's.
        arm: The arm, in place of the case's.
        seed: The seed, in place of the case's; ``-1`` stands for None: nothing was trained.
        setting: Entries added to the case's setting.
        device: The device of the computation, for the manifest.
        inputs: Checksums of further files that were read, by role.
        manifest: Further entries of the manifest.
    """

    metrics: Mapping[str, float | Sequence[float] | Metric] = field(default_factory=dict)
    details: Mapping[str, Any] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)
    variant: str | None = None
    arm: str | None = None
    seed: int | None = None
    setting: Mapping[str, Any] = field(default_factory=dict)
    device: str = "cpu"
    inputs: Mapping[str, str] = field(default_factory=dict)
    manifest: Mapping[str, Any] = field(default_factory=dict)


Function = Callable[..., Outcome | Sequence[Outcome]]


@dataclass(frozen=True)
class Cell:
    """One unit of work.

    Attributes:
        function: A function of a module, see the module's docstring for its parameters.
        case: The subject of the result.
        arguments: Plain data.
        needs: Cells whose folders the function reads, by parameter.
        inputs: Files and folders of files that it reads, by parameter; their contents are part of
            the address, where they lie is not.
        version: Of the function; raised whenever the same arguments would give other numbers. The
            cells of a study's own have at least that of the study.
    """

    function: Function
    case: Case
    arguments: Mapping[str, Any] = field(default_factory=dict)
    needs: Mapping[str, Cell] = field(default_factory=dict)
    inputs: Mapping[str, Path] = field(default_factory=dict)
    version: int = 1

    def __post_init__(self) -> None:
        for name in (*self.arguments, *self.needs, *self.inputs):
            if name in OFFERED:
                raise ValueError(f"{name} is what a cell gives its function; name it otherwise")

    @property
    def label(self) -> str:
        """The cell in words."""
        return self.case.label

    @cached_property
    def key(self) -> str:
        """The content address: 16 hex digits."""
        return artefact.key(
            {
                "version": VERSION,
                "function": f"{self.function.__module__}.{self.function.__qualname__}",
                "function_version": self.version,
                "arguments": dict(self.arguments),
                "case": self.case.to_json(),
                "needs": {role: cell.key for role, cell in self.needs.items()},
                "inputs": {role: digest(path) for role, path in self.inputs.items()},
                **({"plugins": found} if (found := plugins.addresses()) else {}),
            }
        )

    def folder(self, out: Path) -> Path:
        """Return the folder of the cell's files."""
        return out / CELLS / self.key

    def results(self, out: Path) -> list[Result] | None:
        """Return the results of a finished cell; None where it is unfinished or a file damaged."""
        record = self.record(out)
        return None if record is None else [Result.from_json(x) for x in record["results"]]

    def record(self, out: Path) -> dict[str, Any] | None:
        """Return the finished record; None if there is none or a file is damaged."""
        folder = self.folder(out)
        try:
            record = artefact.load_record(folder / RECORD)
            intact = all(
                artefact.sha256(artefact.below(folder, name)) == digest
                for name, digest in record["sha256"].items()
            )
        except (FileNotFoundError, IsADirectoryError, NotADirectoryError, artefact.CorruptArtefact):
            return None
        return record if intact else None


@dataclass(frozen=True)
class Adopted:
    """A cell's results and files as another run has them.

    Attributes:
        results: The cell's results.
        serves: Parameters of functions that the written files suffice for.
        write: Function that writes the files to the cell's folder; None for no files.
        origins: The sha256, by name, of the files of the other run that these stand for: the same
            content in other bytes.
    """

    results: Sequence[Result]
    serves: Set[str] = frozenset()
    write: Callable[[Path], None] | None = None
    origins: Mapping[str, str] = field(default_factory=dict)


def succeeded(record: Mapping[str, Any]) -> bool:
    """Return whether a finished cell has a result."""
    return all(result["status"] == "ok" for result in record["results"])


def compute(cell: Cell, out: Path) -> dict[str, Any]:
    """Compute a cell, unless another process just did, and return its record."""
    with locks.cell_lock(out, cell.key):
        record = cell.record(out)
        if record is not None and succeeded(record):
            return record
        return _compute(cell, out)


def fail(cell: Cell, out: Path, error: str, status: str = "failed") -> dict[str, Any]:
    """Record a cell as failed, or as skipped, without calling its function."""
    cell.folder(out).mkdir(parents=True, exist_ok=True)
    return _finish(cell, out, [Outcome()], status, error, 0.0)


def adopt(cell: Cell, found: Adopted, out: Path) -> None:
    """Record a cell as done by results that were computed elsewhere."""
    folder = cell.folder(out)
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    if found.write is not None:
        found.write(folder)
    _save(cell, out, found.results, found)


def progress_file(out: Path, key: str) -> Path:
    """Return the file in which a running cell reports its progress."""
    return out / CELLS / f"{key}.progress"


def _compute(cell: Cell, out: Path) -> dict[str, Any]:
    folder = cell.folder(out)
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    start = _cpu_seconds()
    outcomes: list[Outcome] = [Outcome()]
    status, error = "ok", None
    try:
        _check_inputs(cell)
        with _scratch(cell, out) as scratch, _progress(cell, out) as progress:
            found = cell.function(**_keywords(cell, out, folder, scratch, progress))
            several = [found] if isinstance(found, Outcome) else list(found)
        outcomes = [_typed(outcome) for outcome in several]
    except Skipped as reason:
        status, error = "skipped", str(reason)
    except Exception as problem:
        (folder / "error.txt").write_bytes(traceback.format_exc().encode(errors="replace"))
        status, error = "failed", f"{type(problem).__name__}: {problem}"
    return _finish(cell, out, outcomes, status, error, _cpu_seconds() - start)


def _typed(outcome: Outcome) -> Outcome:
    """Return an outcome whose metrics have their type, or fail the cell that returned it."""
    json.dumps([outcome.details, outcome.setting, outcome.manifest])  # refuses what is not plain
    metrics = {name: Metric.of(value) for name, value in outcome.metrics.items()}
    return dataclasses.replace(outcome, metrics=metrics)


def _check_inputs(cell: Cell) -> None:
    """Refuse to compute a cell whose files are no longer those of its address."""
    if not (cell.inputs or plugins.addresses()):
        return
    if dataclasses.replace(cell).key != cell.key:  # a copy computes its key anew
        names = ", ".join([*map(str, cell.inputs.values()), *plugins.addresses()])
        raise ValueError(f"{names}: changed since this run began; run it again")


def _keywords(
    cell: Cell, out: Path, folder: Path, scratch: Path, progress: Progress
) -> dict[str, Any]:
    """Return the arguments of the function, with those that it asks for by name."""
    offered = dict(zip(OFFERED, (folder, scratch, progress), strict=True))
    asked = inspect.signature(cell.function).parameters
    return {
        **cell.arguments,
        **{role: need.folder(out) for role, need in cell.needs.items()},
        **cell.inputs,
        **{name: value for name, value in offered.items() if name in asked},
    }


@contextlib.contextmanager
def _scratch(cell: Cell, out: Path) -> Iterator[Path]:
    """Yield the folder that survives a kill or a failure; it goes when the function returns."""
    scratch = out / CELLS / f"{cell.key}.scratch"
    scratch.mkdir(exist_ok=True)
    for path in (progress_file(out, cell.key), scratch, *scratch.rglob("*")):
        if path.is_symlink():
            raise ValueError(f"{path} is a link; delete it")
    yield scratch
    shutil.rmtree(scratch)


@contextlib.contextmanager
def _progress(cell: Cell, out: Path) -> Iterator[Progress]:
    """Yield a function that writes now and then how far the cell is."""
    path, last = progress_file(out, cell.key), 0.0

    def progress(step: int, total: int) -> None:
        nonlocal last
        if time.monotonic() - last > REPORT_EVERY:
            last = time.monotonic()
            path.write_text(f"{step} {total}")

    try:
        yield progress
    finally:
        path.unlink(missing_ok=True)


def _cpu_seconds() -> float:
    """Return the CPU time of this process and of its children that have ended."""
    used = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(usage.ru_utime + usage.ru_stime for usage in used)


def _finish(
    cell: Cell,
    out: Path,
    outcomes: Sequence[Outcome],
    status: str,
    error: str | None,
    cpu_s: float,
) -> dict[str, Any]:
    inputs = {role: digest(path) for role, path in cell.inputs.items() if status == "ok"}
    results = [
        Result(
            case=_case(cell.case, outcome),
            status=status,
            error=error,
            metrics=outcome.metrics,  # type: ignore[arg-type]
            details=outcome.details,
            files={role: f"{CELLS}/{cell.key}/{name}" for role, name in outcome.files.items()},
            cell=cell.key,
            # Those of the whole cell, once: sums over results stay sums over cells.
            cpu_s=0.0 if number else round(cpu_s, 4),
            manifest={
                **manifest(
                    cell.arguments,
                    seed=cell.case.seed,
                    device=outcome.device,
                    inputs={**inputs, **_needed(cell, out), **outcome.inputs},
                ),
                **outcome.manifest,
            },
        )
        for number, outcome in enumerate(outcomes)
    ]
    return _save(cell, out, results)


def _case(case: Case, outcome: Outcome) -> Case:
    changes: dict[str, Any] = {"setting": {**case.setting, **outcome.setting}}
    changes |= {n: v for n in ("variant", "arm", "seed") if (v := getattr(outcome, n)) is not None}
    if outcome.seed == -1:
        changes["seed"] = None
    return dataclasses.replace(case, **changes)


def _needed(cell: Cell, out: Path) -> dict[str, str]:
    """Return the checksums of the files of the needed cells, by role and name."""
    found: dict[str, str] = {}
    for role, need in cell.needs.items():
        with contextlib.suppress(FileNotFoundError, artefact.CorruptArtefact):
            record = artefact.load_record(need.folder(out) / RECORD)
            found |= {f"{role}/{name}": digest for name, digest in record["sha256"].items()}
            origins = record.get("origins", {})
            found |= {f"{role}/{name}{ORIGIN}": digest for name, digest in origins.items()}
    return found


def _save(
    cell: Cell, out: Path, results: Sequence[Result], adopted: Adopted | None = None
) -> dict[str, Any]:
    folder = cell.folder(out)
    record = {
        "adopted": adopted is not None,
        **({"serves": sorted(adopted.serves), "origins": dict(adopted.origins)} if adopted else {}),
        "function": f"{cell.function.__module__}.{cell.function.__qualname__}",
        "results": [result.to_json() for result in results],
        "sha256": {
            str(path.relative_to(folder)): artefact.sha256(path)
            for path in sorted(folder.rglob("*"))
            if path.is_file() and path != folder / RECORD
        },
    }
    artefact.save_record(folder / RECORD, record)
    return record
