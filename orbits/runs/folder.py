"""The results folder: one rule to claim, continue, overwrite and read it.

``run.json`` says which study and settings the folder belongs to, ``cells`` holds the cells, and
``results.jsonl`` (with a checksum sidecar) one record per result, written when every cell is
done. Tables and figures are made from these records and the files that they name.
"""

from __future__ import annotations

import contextlib
import gc
import json
import os
import shutil
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from orbits.runs import artefact
from orbits.runs.cell import CELLS
from orbits.runs.manifest import manifest
from orbits.runs.result import SCHEMA, Result

CLAIM, LINES = "run.json", "results.jsonl"
MARKDOWN, PAGE, FIGURES = "report.md", "report.html", "figures"


@dataclass(frozen=True)
class Existing:
    """Treatment of results that are in the folder already; the same settings always continue.

    Attributes:
        resume: Whether a folder of other settings is continued, with the cells that the two share;
            one of the same settings always is.
        overwrite: Discard the folder's results.
    """

    resume: bool = False
    overwrite: bool = False


def check(out: Path, config: Mapping[str, Any], existing: Existing) -> None:
    """Refuse a folder that is not for these settings; nothing is written.

    Args:
        out: The folder.
        config: Settings as plain data, with the name of the study under ``study``.
        existing: Treatment of results that are there already.

    Raises:
        ValueError: The folder holds other settings, another study, kept results, results of
            another schema, or files that are no results.
        CorruptArtefact: Its claim was edited or damaged, and it is not to be overwritten.
    """
    if out.exists() and not out.is_dir():
        raise ValueError(f"{out} is a file; choose another --out")
    if not (out / CLAIM).exists():
        # A killed run may leave names with a dot behind at its very start.
        if out.exists() and any(not path.name.startswith(".") for path in out.iterdir()):
            raise ValueError(f"{out} holds files that are not results; choose another --out")
        return
    if existing.overwrite:
        return
    claimed = _claim(out)
    if (out / LINES).is_file() and not (out / CELLS).is_dir():
        raise ValueError(
            f"{out} holds kept results, lines without the cells that made them; choose another "
            "--out and take them there by --reuse, or --overwrite to discard them"
        )
    if claimed.get("study") != config["study"]:
        raise ValueError(
            f"{out} holds results of another study ({claimed.get('study')}); "
            "use --overwrite to start again, or another --out"
        )
    if not existing.resume and (changed := ", ".join(_differences(claimed, config))):
        raise ValueError(
            f"{out} holds other settings (different: {changed}); use --resume to continue "
            "with these, --overwrite to start again, or another --out"
        )


def check_writable(out: Path) -> None:
    """Refuse a file or folder that cannot be written, or be made where it is not there.

    Raises:
        PermissionError: It is one.
    """
    there = next(path for path in (out.absolute(), *out.absolute().parents) if path.exists())
    if there != out.absolute() and not there.is_dir():
        raise PermissionError(f"{there} is a file; choose a folder of another name")
    if not os.access(there, os.W_OK):
        raise PermissionError(f"{there} cannot be written to; choose another folder")


def claim(out: Path, config: Mapping[str, Any], existing: Existing) -> None:
    """Take a folder for these settings before any work is done; old records and reports go.

    Raises:
        ValueError: As :func:`check`.
    """
    check(out, config, existing)
    if existing.overwrite:
        shutil.rmtree(out / CELLS, ignore_errors=True)
    for stale in (LINES, f"{LINES}.json", MARKDOWN, PAGE):
        (out / stale).unlink(missing_ok=True)
    about = manifest(config, seed=None, device=None)
    record = {"schema": SCHEMA, "config": dict(config), "manifest": about}
    artefact.save_record(out / CLAIM, record)


def save(out: Path, results: Iterable[Result]) -> Path:
    """Write the records in one step and with their checksum; return their path."""
    record = artefact.load_record(out / CLAIM)
    artefact.save_lines(out / LINES, (x.to_json() for x in results), record["manifest"])
    return out / LINES


def load(out: Path) -> tuple[list[Result], dict[str, Any]]:
    """Return the results of a finished run and its manifest, whose ``config`` are the settings.

    Raises:
        FileNotFoundError: The folder holds no finished run.
        ValueError: Its records are of another schema, or one is not valid.
        CorruptArtefact: The records were edited or damaged, or name a file outside the folder.
    """
    _claim(out)
    if not (out / LINES).is_file():
        raise FileNotFoundError(f"{out} is not finished (no {LINES}); run it again to resume")
    with _without_collection():
        lines, record = artefact.load_lines(out / LINES)
        results = []
        for number, line in enumerate(lines, start=1):
            try:
                results.append(Result.from_json(line))
            except ValueError as problem:
                raise ValueError(f"{out / LINES}, line {number}: {problem}") from None
            for name in results[-1].files.values():
                artefact.below(out, name)
    return results, record


@contextlib.contextmanager
def _without_collection() -> Iterator[None]:
    """Pause the search for cycles, which plain data has none of: half the time of a large file."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def file(out: Path, result: Result, role: str) -> Path | None:
    """Return a file that a result names; None if it is not there, as in kept results."""
    if not (name := result.files.get(role)):
        return None
    path = artefact.below(out, name)
    return path if path.is_file() else None


def study_name(out: Path) -> str:
    """Return the name of the study whose results a folder holds.

    Raises:
        FileNotFoundError: The folder holds no results.
        ValueError: They are of another schema.
    """
    return str(_claim(out).get("study"))


def _claim(out: Path) -> dict[str, Any]:
    """Return the settings that a folder was claimed for."""
    if not (out / CLAIM).is_file():
        raise FileNotFoundError(f"{out} is not a results folder (no {CLAIM})")
    record = artefact.load_record(out / CLAIM)
    if (schema := record.get("schema")) != SCHEMA:
        raise ValueError(
            f"{out} holds results of schema {schema}, and this version reads schema {SCHEMA}; "
            "run it again in a new folder"
        )
    config: dict[str, Any] = record["config"]
    return config


def _differences(
    claimed: Mapping[str, Any], config: Mapping[str, Any], prefix: str = ""
) -> Iterable[str]:
    config = json.loads(json.dumps(config))
    for name in sorted({*claimed, *config}):
        one, other = claimed.get(name), config.get(name)
        if isinstance(one, dict) and isinstance(other, dict):
            yield from _differences(one, other, f"{prefix}{name}.")
        elif one != other:
            yield f"{prefix}{name}"
