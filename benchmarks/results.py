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

CLAIM, LINES = "run.json", "results.jsonl"


def claim(out: Path, config: Mapping[str, Any], *, resume: bool, overwrite: bool) -> None:
    """Take a folder for a configuration, before any work is done.

    The same configuration continues. Another one is refused unless ``resume`` (keep the cells
    the two share) or ``overwrite`` (start again) is set.

    Raises:
        ValueError: The folder holds another configuration, or files that are not results.
    """
    if not (out / CLAIM).exists():
        if out.exists() and (not out.is_dir() or any(out.iterdir())):
            raise ValueError(f"{out} holds files that are not results; choose another --out")
    else:
        held = artefacts.load_record(out / CLAIM)["config"]
        if held != json.loads(json.dumps(config)):
            changed = ", ".join(_differences(held, config)) or "nothing visible"
            if not (resume or overwrite):
                raise ValueError(
                    f"{out} holds another configuration (differs in {changed}); use --resume to "
                    "continue with this one, --overwrite to start again, or another --out"
                )
        if overwrite:
            shutil.rmtree(out / "cells", ignore_errors=True)
    for stale in (LINES, f"{LINES}.json"):
        (out / stale).unlink(missing_ok=True)
    artefacts.save_record(
        out / CLAIM, {"config": dict(config), "manifest": manifest(config, seed=None)}
    )


def save(out: Path, lines: Iterable[Mapping[str, Any]]) -> Path:
    """Write the result lines, in one step and with their checksum."""
    text = "".join(json.dumps(line, sort_keys=True) + "\n" for line in lines)
    record = artefacts.load_record(out / CLAIM)
    artefacts.save_file(out / LINES, text.encode(), record["manifest"])
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
    data, record = artefacts.load_file(out / LINES)
    return [json.loads(line) for line in data.decode().splitlines()], record


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
