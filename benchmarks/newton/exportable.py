"""The studies whose models are exported; imports nothing heavy."""

from __future__ import annotations

from pathlib import Path

from orbits.runs import folder

STUDIES = ("newton", "implied", "worlds", "worlds_scaling", "kepler_or_newton")
"""All train world models of orbits; heads are exported of the first alone."""


def check(run: Path) -> None:
    """Refuse a folder that holds no run of such a study.

    Raises:
        FileNotFoundError: It holds no results.
        ValueError: They are of another study.
    """
    if (name := folder.study_name(run)) not in STUDIES:
        known = f"{', '.join(STUDIES[:-1])} or {STUDIES[-1]}"
        raise ValueError(f"{run}: models are exported of a run of {known}, got {name!r}")
