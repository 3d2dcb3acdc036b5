"""Kept world models of mixtures as cells of a later run; see :mod:`benchmarks.newton.restore`."""

from __future__ import annotations

from benchmarks.newton import restore as flagship
from benchmarks.worlds import cells
from orbits.runs.cell import Adopted, Cell
from orbits.runs.reuse import Kept
from worldmodel.models.mixture import MixtureModel

KINDS = {cells.world_model: MixtureModel}


def restore(cell: Cell, kept: Kept) -> Adopted | None:
    """Return a training with its checkpoint; see :meth:`orbits.runs.study.Study.restore`."""
    return flagship.restore(cell, kept, KINDS)
