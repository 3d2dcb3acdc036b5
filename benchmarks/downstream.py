"""Evaluate a language model on downstream tasks: lm-evaluation-harness and SummScreen.

The harness (PyPI lm_eval) is imported when it is needed. A task whose data cannot be reached is
reported as skipped, with the reason.
"""

from __future__ import annotations

import difflib
import importlib.util
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks import downstream_tasks, hub, summscreen
from benchmarks.text_scorer import TextScorer

if TYPE_CHECKING:
    from lm_eval.tasks import TaskManager

BOOTSTRAP = 1000
"""Resamples for the standard error of a perplexity."""


def evaluate(
    checkpoint: str | Path,
    tasks: Sequence[str],
    limit: int | None = None,
    batch_size: int = 16,
    max_length: int | None = None,
    device: str | None = None,
    include_path: str | Path | None = None,
    scrolls: str | Path | None = None,
) -> dict[str, Any]:
    """Return the zero-shot metrics of a checkpoint, as plain data.

    Args:
        checkpoint: Of a :class:`worldmodel.text_task.TextTask`.
        tasks: Names of tasks or groups of lm-evaluation-harness, or ``summscreen``.
        limit: Most samples per task (and per task of a group); None for all.
        batch_size: Rows per forward pass.
        max_length: Most tokens that the model reads; None for the length of its training windows.
        device: For example ``cuda:0``; None for a GPU if there is one.
        include_path: A folder of further tasks of the harness, as YAML files.
        scrolls: A ``validation.jsonl`` of SummScreen; None for the hub's.

    Returns:
        ``max_length`` and ``tasks``: by name, ``status`` ``ok`` with ``version``, ``n`` samples,
        ``metrics`` (each ``value``, ``stderr`` or None, ``n``, and ``direction`` ``higher`` or
        ``lower``), ``requests`` and how many of them were ``truncated``; or ``skipped`` with the
        ``reason``. Multiple-choice tasks have the ``baseline`` of their ``acc_n`` too.

    Raises:
        FileNotFoundError: There is no such checkpoint or file.
        ValueError: An unknown task, a bad size, no language model, or a package is missing.
    """
    if not tasks:
        raise ValueError("no task is asked; name some")
    if limit is not None and limit < 1:
        raise ValueError(f"limit must be at least 1 sample, got {limit}")
    ours = downstream_tasks.SUMMSCREEN
    theirs = [name for name in tasks if name != ours]
    for package in [*(["lm_eval"] if theirs else []), *(["rouge_score"] if ours in tasks else [])]:
        if importlib.util.find_spec(package) is None:
            raise ValueError(f"these tasks need the package {package}: pip install 'orrery[eval]'")
    episodes = summscreen.read_episodes(scrolls) if scrolls is not None else None
    scorer = TextScorer.load(checkpoint, max_length, batch_size, device)
    with hub.offline_if_unreachable():
        found = _harness(scorer, theirs, limit, include_path)
        if ours in tasks:
            found[ours] = _summscreen(scorer, episodes, limit)
    return {"max_length": scorer.max_length, "tasks": {name: found[name] for name in tasks}}


def _summscreen(
    scorer: TextScorer, episodes: list[summscreen.Episode] | None, limit: int | None
) -> dict[str, Any]:
    try:
        chosen = (episodes or summscreen.read_episodes())[:limit]
    except ConnectionError as error:
        return _skipped(error)
    found = summscreen.summarise(scorer, chosen)
    n = len(found.rouge1)
    stderr = float(np.std(found.rouge1, ddof=1) / np.sqrt(n)) if n > 1 else None
    return {
        "status": "ok",
        "version": str(summscreen.VERSION),
        "n": n,
        "metrics": {"rouge1": _metric(float(np.mean(found.rouge1)), stderr, n, True)},
        "requests": n,
        "truncated": found.truncated,
        "max_length": found.max_length,
    }


def _harness(
    scorer: TextScorer, names: Sequence[str], limit: int | None, include_path: str | Path | None
) -> dict[str, dict[str, Any]]:
    """Return the records of tasks of the harness."""
    if not names:
        return {}
    from lm_eval import simple_evaluate

    from benchmarks.lm_eval_adapter import OrreryLM

    manager = _manager(names, include_path)
    loaded: dict[str, Any] = {}
    records: dict[str, dict[str, Any]] = {}
    for name in names:
        try:
            tree = manager.load(name)
        except OSError as error:
            records[name] = _skipped(error)
        else:
            loaded[name] = tree.get("groups", {}).get(name) or tree["tasks"][name]
    if loaded:
        # The harness would bootstrap in a pool of forked processes, which a GPU does not survive.
        os.environ.setdefault("DISABLE_MULTIPROC", "1")
        model = OrreryLM(scorer)
        results = simple_evaluate(
            model,
            tasks=list(loaded.values()),
            limit=limit,
            bootstrap_iters=BOOTSTRAP,
            task_manager=manager,
        )
        assert results is not None
        records |= {name: _record(name, dict(results), model) for name in loaded}
    return records


def _manager(names: Sequence[str], include_path: str | Path | None) -> TaskManager:
    """Return an index of tasks that has all names.

    Raises:
        FileNotFoundError: There is no such folder.
        ValueError: A name is unknown.
    """
    from lm_eval.tasks import TaskManager

    manager = None
    if include_path is not None:
        if not Path(include_path).is_dir():
            raise FileNotFoundError(f"{include_path}: no such folder of tasks")
        manager = TaskManager(include_path=include_path, include_defaults=False)
    # Reading the harness's own tasks takes ten seconds, which local ones need not wait for.
    if manager is None or not _known(manager).issuperset(names):
        manager = TaskManager(include_path=include_path)
    for name in names:
        if name not in _known(manager):
            near = difflib.get_close_matches(name, _known(manager), n=3)
            hint = f"; did you mean {' or '.join(near)}?" if near else ""
            raise ValueError(f"unknown task {name!r} of lm-evaluation-harness{hint}")
    return manager


def _known(manager: TaskManager) -> set[str]:
    return {*manager.all_subtasks, *manager.all_groups}


def _record(name: str, results: Mapping[str, Any], model: Any) -> dict[str, Any]:
    """Return the record of a task, or of a group with the sums over its tasks."""
    leaves = list(_leaves(name, results["group_subtasks"]))
    n = sum(results["n-samples"][leaf]["effective"] for leaf in leaves)
    higher = results["higher_is_better"][name]
    metrics = {}
    for key, value in results["results"][name].items():
        metric, _, filtered = key.partition(",")
        if not filtered or metric.endswith("_stderr"):
            continue
        stderr = results["results"][name].get(f"{metric}_stderr,{filtered}")
        label = metric if filtered == "none" else f"{metric} ({filtered})"
        metrics[label] = _metric(
            float(value), None if isinstance(stderr, str) else stderr, n, higher[metric]
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
        record["baseline"] = downstream_tasks.baseline_accuracy(
            downstream_tasks.get(name).baseline,
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
    value = downstream_tasks.chance_adjusted(accuracy["value"], baseline)
    stderr = accuracy["stderr"]
    scaled = None if stderr is None else stderr / (1 - baseline)
    return {"acc_n": _metric(value, scaled, accuracy["n"], True)}


def _metric(value: float, stderr: float | None, n: int, higher: bool) -> dict[str, Any]:
    return {
        "value": value,
        "stderr": stderr,
        "n": n,
        "direction": "higher" if higher else "lower",
    }


def _skipped(error: Exception) -> dict[str, str]:
    return {"status": "skipped", "reason": str(error).splitlines()[0]}
