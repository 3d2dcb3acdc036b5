"""Settings and grids of the flagship for its tests."""

from benchmarks.newton.grid import Grid
from benchmarks.newton.newton import STUDY


def settings(preset="small", **changes):
    return STUDY.settings(preset, **changes)


def cells(preset="small", **changes):
    return Grid(settings(preset, **changes)).cells()


def jobs(preset="small", **changes):
    """Return the cells that train, with their jobs."""
    return [(c, c.arguments["job"]) for c in cells(preset, **changes) if "job" in c.arguments]


def function(cell):
    return cell.function.__name__


def row(cell):
    return cell.case.variant, cell.case.arm, cell.case.get("labels")
