"""``python -m benchmarks coverage``: make the page of reproduced tables from results folders."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from types import ModuleType

from benchmarks.coverage.judge import Source
from benchmarks.coverage.page import Coverage, coverage
from benchmarks.excerpts import KEPT
from benchmarks.site.places import find
from orbits.runs import folder, studies


def of_folders(
    folders: Sequence[Path], packages: Iterable[ModuleType], kept: bool = True
) -> Coverage:
    """Return the page of results folders."""
    places = list(packages)
    sources = []
    for name, path in find([*([KEPT] if kept and KEPT.is_dir() else []), *folders]).items():
        results, manifest = folder.load(path)
        its = studies.get(places, folder.study_name(path))
        sources.append(Source(name, its, manifest["config"], results))
    return coverage(sources)
