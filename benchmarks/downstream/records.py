"""What an evaluation says of a task, as plain data."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from benchmarks.downstream import catalogue
from benchmarks.downstream.chance import baseline_accuracy, chance_adjusted

if TYPE_CHECKING:
    from benchmarks.downstream.adapter import OrreryLM


def metric(value: float, stderr: float | None, n: int, higher: bool) -> dict[str, Any]:
    """Return a mean over n samples, with its standard error and whether higher is better."""
    direction = "higher" if higher else "lower"
    return {"value": value, "stderr": stderr, "n": n, "direction": direction}


def skipped(error: Exception) -> dict[str, str]:
    """Return the record of a task whose data cannot be reached."""
    return {"status": "skipped", "reason": str(error).splitlines()[0]}


def of_harness(name: str, results: Mapping[str, Any], model: OrreryLM) -> dict[str, Any]:
    """Return the record of a task, or of a group with the sums over its tasks.

    Args:
        name: The task or group.
        results: Of the harness's ``simple_evaluate``.
        model: The model that answered.
    """
    leaves = list(_leaves(name, results["group_subtasks"]))
    n = sum(results["n-samples"][leaf]["effective"] for leaf in leaves)
    higher = results["higher_is_better"][name]
    metrics = {}
    for key, value in results["results"][name].items():
        measured, _, filtered = key.partition(",")
        if not filtered or measured.endswith("_stderr"):
            continue
        stderr = results["results"][name].get(f"{measured}_stderr,{filtered}")
        label = measured if filtered == "none" else f"{measured} ({filtered})"
        metrics[label] = metric(
            float(value), None if isinstance(stderr, str) else stderr, n, higher[measured]
        )
    record = {
        "status": "ok",
        "version": str(results["versions"][name]),
        "n": n,
        "metrics": metrics,
        "requests": sum(model.requests[leaf] for leaf in leaves),
        "truncated": sum(model.truncated[leaf] for leaf in leaves),
    }
    kinds = {results["configs"][leaf]["output_type"] for leaf in leaves}
    if kinds == {"multiple_choice"} and "acc" in metrics:
        samples = [sample for leaf in leaves for sample in results["samples"][leaf]]
        record["baseline"] = baseline_accuracy(
            catalogue.get(name).baseline,
            [len(sample["arguments"]) for sample in samples],
            [str(sample["target"]) for sample in samples],
        )
        metrics |= _chance_adjusted(metrics["acc"], record["baseline"])
    return record


def _leaves(name: str, children: Mapping[str, Sequence[str]]) -> Iterator[str]:
    if name not in children:
        yield name
    for child in children.get(name, ()):
        yield from _leaves(child, children)


def _chance_adjusted(accuracy: Mapping[str, Any], baseline: float) -> dict[str, dict[str, Any]]:
    if baseline == 1:  # a few samples of one class: nothing can be better
        return {}
    value = chance_adjusted(accuracy["value"], baseline)
    stderr = accuracy["stderr"]
    scaled = None if stderr is None else stderr / (1 - baseline)
    return {"acc_n": metric(value, scaled, accuracy["n"], True)}
