"""Results of runs that must have gone well."""

from pathlib import Path

from orbits.runs import folder
from orbits.runs.result import Result


def finished(out: Path) -> list[Result]:
    """Return the results of a run, none of which may have failed or been skipped."""
    results, _ = folder.load(out)
    assert all(result.ok for result in results), [result.error for result in results]
    return results
