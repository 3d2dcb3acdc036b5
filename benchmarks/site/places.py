"""Results folders below some places, and a folder that may become a site; imports nothing heavy."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from orbits.runs import folder

INDEX, GLOSSARY, COVERAGE, CLAIM = "index.html", "glossary.html", "coverage.html", "site.json"
"""Files of a site that are no pages of results; the last names its pages."""


def check(out: Path, places: Sequence[Path]) -> None:
    """Refuse a folder of other files as a site, and places without results.

    Raises:
        FileExistsError: ``out`` is a file, or holds files and is no site.
        PermissionError: ``out`` cannot be written.
        ValueError: There are no results below a place.
    """
    if out.exists() and not (out / CLAIM).is_file() and (not out.is_dir() or any(out.iterdir())):
        raise FileExistsError(f"{out} {_holding(out)}; choose another folder")
    folder.check_writable(out)
    for place in places:
        runs_below(place)


def runs_below(place: Path) -> list[Path]:
    """Return the results folders below a place, itself among them.

    Raises:
        ValueError: There is none.
    """
    runs = sorted(path.parent for path in place.rglob(folder.CLAIM))
    if not runs:
        raise ValueError(f"{place} holds no results; name a folder that a run has written")
    return runs


def find(places: Sequence[Path]) -> dict[str, Path]:
    """Return the results folders in some places by the name of their page.

    Raises:
        ValueError: There are none, or none below one of the places.
    """
    found: dict[str, Path] = {}
    for place in places:
        for run in runs_below(place):
            if run.resolve() in {path.resolve() for path in found.values()}:
                continue
            parts = run.relative_to(place).parts or (run.resolve().name,)
            own = name = re.sub(r"[^A-Za-z0-9._-]", "-", "-".join(parts))
            number = 2
            while name in (*found, *(Path(page).stem for page in (INDEX, GLOSSARY, COVERAGE))):
                name, number = f"{own}-{number}", number + 1
            found[name] = run
    if not found:
        raise ValueError("no results to show; name results folders")
    return found


def _holding(out: Path) -> str:
    return "holds other files" if out.is_dir() else "is a file"
