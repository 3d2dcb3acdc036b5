"""Probes through the same code as a run, and results as they are kept."""

import dataclasses
from pathlib import Path

from orbits.runs.executors import Execution
from orbits.runs.result import Case, Metric, Result
from orbits.runs.schedule import run
from worldmodel.probes.base import Pieces
from worldmodel.probes.probe import STUDY

HERE = Execution("here")
ROW = {
    "protocol": "identifiable",
    "law": "newton",
    "trained_on": "newton",
    "model": "softmax",
    "arm": "pretrained",
    "size": "n_layer 2, n_bins 512",
    "steps": 100,
    "labels": None,
    "seed": 0,
}


def evaluate(name, path, settings, out):
    """Return the results of one probe on one checkpoint."""
    chosen = dataclasses.replace(settings, checkpoints=(str(path),), probes=(name,))
    results = run(STUDY.cells(chosen), out, HERE, None)
    assert all(result.ok for result in results), [result.error for result in results]
    return [result for result in results if result.case.kind == name]


def find(results, **wanted):
    """Return the one result whose case has these values."""
    alike = [x for x in results if all(x.case.get(k) == v for k, v in wanted.items())]
    assert len(alike) == 1, (wanted, len(alike))
    return alike[0]


def found(outcomes, **wanted):
    """Return the metrics of the one outcome of a setting."""
    (one,) = [x for x in outcomes if wanted.items() <= x.setting.items()]
    return one.metrics


def interval(result, metric):
    """Return value, low and high of a metric."""
    return result.metrics[metric].interval


def pieces(folder: Path, needs=None) -> Pieces:
    """Return a place for the pieces of a probe's work."""
    for name in ("folder", "scratch"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    return Pieces(folder / "folder", folder / "scratch", needs=needs)


def result(
    variant="softmax",
    arm="pretrained",
    of="pretrained",
    metrics=None,
    setting=None,
    files=None,
    kind="counting",
    **row,
):
    """Return a result as a run of probes keeps it; ``of`` is the arm of its checkpoint."""
    checkpoint = {**ROW, "model": variant, "arm": of, **row}
    case = Case(
        study="probe",
        kind=kind,
        variant=variant,
        arm=arm,
        seed=checkpoint["seed"],
        law=checkpoint["law"],
        protocol=checkpoint["protocol"],
        setting={
            "trained_on": checkpoint["trained_on"],
            "size": checkpoint["size"],
            "trained_steps": checkpoint["steps"],
            "trained_labels": checkpoint["labels"],
            **(setting or {}),
        },
    )
    return Result(
        case,
        metrics={name: Metric.of(value) for name, value in (metrics or {}).items()},
        details={"checkpoint": checkpoint, "curves": {}},
        files=files or {},
    )
