"""The results folder of a run: what it claims to hold, and its result lines.

``run.json`` says which configuration the folder belongs to, ``results.jsonl`` (with a checksum
sidecar) holds one line per cell, written when every cell is done. Tables and figures are made
from these and from the files that the lines name.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from orbits import artefacts
from orbits.manifest import manifest
from symreg.result_rows import SCHEMA

CLAIM, LINES = "run.json", "results.jsonl"
TABLES = ("leaderboard.md", "leaderboard.html", "report.md", "report.html", "rates.md")
"""What the runs make from the lines, as far as it lies in the folder itself."""


def check(out: Path, config: Mapping[str, Any], *, resume: bool, overwrite: bool) -> None:
    """Refuse a folder that is not for this configuration; nothing is written.

    The same configuration continues. Another one is refused unless ``resume`` (keep the cells
    the two share) or ``overwrite`` (start again) is set; that of another benchmark has no cell
    to keep, so it is refused with ``resume`` too. So are kept results: lines whose cells are gone
    would be discarded and nothing continued.

    Raises:
        ValueError: The folder holds another configuration, or files that are not results.
        CorruptArtefact: Its claim was edited or damaged, and ``overwrite`` is not set.
    """
    if out.exists() and not out.is_dir():
        raise ValueError(f"{out} is a file; choose another --out")
    if not (out / CLAIM).exists():
        # Names with a dot are what a killed run may leave behind at its very start.
        if out.exists() and any(not path.name.startswith(".") for path in out.iterdir()):
            raise ValueError(f"{out} holds files that are not results; choose another --out")
        return
    if overwrite:
        return
    record = artefacts.load_record(out / CLAIM)
    if (held := record.get("schema", SCHEMA)) != SCHEMA:
        raise ValueError(
            f"{out} holds results of schema {held}, and this version writes schema {SCHEMA}; "
            "use --overwrite to start again, or another --out"
        )
    if (out / LINES).is_file() and not (out / "cells").is_dir():
        raise ValueError(
            f"{out} holds kept results, lines without the cells that made them; choose another "
            "--out (a benchmark takes them there by --reuse), or --overwrite to discard them"
        )
    held = record["config"]
    if held.get("benchmark") != config.get("benchmark"):
        raise ValueError(
            f"{out} holds results of another benchmark ({held.get('benchmark')}); "
            "use --overwrite to start again, or another --out"
        )
    if not resume and (changed := ", ".join(_differences(held, config))):
        raise ValueError(
            f"{out} holds another configuration (differs in {changed}); use --resume to "
            "continue with this one, --overwrite to start again, or another --out"
        )


def claim(out: Path, config: Mapping[str, Any], *, resume: bool, overwrite: bool) -> None:
    """Take a folder for a configuration, before any work is done; old lines and tables go.

    Raises:
        ValueError: As :func:`check`.
    """
    check(out, config, resume=resume, overwrite=overwrite)
    if overwrite:
        shutil.rmtree(out / "cells", ignore_errors=True)
    for stale in (LINES, f"{LINES}.json", *TABLES):
        (out / stale).unlink(missing_ok=True)
    artefacts.save_record(
        out / CLAIM,
        {"schema": SCHEMA, "config": dict(config), "manifest": manifest(config, seed=None)},
    )


def save(out: Path, lines: Iterable[Mapping[str, Any]]) -> Path:
    """Write the result lines, in one step and with their checksum."""
    record = artefacts.load_record(out / CLAIM)
    artefacts.save_lines(out / LINES, lines, record["manifest"])
    return out / LINES


def load(out: Path) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Return the result lines of a finished run and its manifest.

    Raises:
        FileNotFoundError: The folder holds no finished run.
        CorruptArtefact: The lines were edited or damaged.
    """
    if not (out / CLAIM).is_file():
        raise FileNotFoundError(f"{out} is not a results folder (no {CLAIM})")
    if not (out / LINES).is_file():
        raise FileNotFoundError(f"{out} is not finished (no {LINES}); run it again to resume")
    return artefacts.load_lines(out / LINES)


def file(out: Path, line: Mapping[str, Any], role: str) -> Path | None:
    """Return a file that a line names, or None: results that are kept have lines alone.

    Raises:
        CorruptArtefact: The name leads out of the folder.
    """
    if not (name := line.get("files", {}).get(role)):
        return None
    path = artefacts.below(out, name)
    return path if path.is_file() else None


def _differences(
    held: Mapping[str, Any], asked: Mapping[str, Any], prefix: str = ""
) -> Iterable[str]:
    asked = json.loads(json.dumps(asked))
    for name in sorted({*held, *asked}):
        one, other = held.get(name), asked.get(name)
        if isinstance(one, dict) and isinstance(other, dict):
            yield from _differences(one, other, f"{prefix}{name}.")
        elif one != other:
            yield f"{prefix}{name}"
