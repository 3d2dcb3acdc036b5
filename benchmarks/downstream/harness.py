"""Tasks of lm-evaluation-harness (PyPI lm_eval): which there are, and a model's answers."""

from __future__ import annotations

import contextlib
import difflib
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.downstream import records

if TYPE_CHECKING:
    from lm_eval.tasks import TaskManager

    from benchmarks.text_scorer import TextScorer

BOOTSTRAP = 1000
"""Resamples for the standard error of a perplexity."""

ONE_PROCESS = "DISABLE_MULTIPROC"
"""The harness's variable against its pool of processes."""


def index(names: Sequence[str], include_path: str | Path | None = None) -> TaskManager:
    """Return an index of tasks that has all names; no task's data is read.

    Args:
        names: Names of tasks or groups.
        include_path: A folder of further tasks, as YAML files.

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


def evaluate(
    scorer: TextScorer, names: Sequence[str], manager: TaskManager, limit: int | None
) -> dict[str, dict[str, Any]]:
    """Return the record of each task; one whose data cannot be reached is skipped.

    Args:
        scorer: The model.
        names: Names of tasks or groups.
        manager: An index that has them.
        limit: Most samples per task; None for all.
    """
    from lm_eval import simple_evaluate

    from benchmarks.downstream.adapter import OrreryLM

    loaded: dict[str, Any] = {}
    found: dict[str, dict[str, Any]] = {}
    for name in names:
        try:
            tree = manager.load(name)
        except OSError as error:
            found[name] = records.skipped(error)
        else:
            loaded[name] = tree.get("groups", {}).get(name) or tree["tasks"][name]
    if loaded:
        model = OrreryLM(scorer)
        with _one_process():
            results = simple_evaluate(
                model,
                tasks=list(loaded.values()),
                limit=limit,
                bootstrap_iters=BOOTSTRAP,
                task_manager=manager,
            )
        assert results is not None
        found |= {name: records.of_harness(name, dict(results), model) for name in loaded}
    return found


def _known(manager: TaskManager) -> set[str]:
    return {*manager.all_subtasks, *manager.all_groups}


@contextlib.contextmanager
def _one_process() -> Iterator[None]:
    """Let the harness bootstrap in this process: a GPU does not survive that it forks."""
    before = os.environ.get(ONE_PROCESS)
    os.environ[ONE_PROCESS] = "1"
    try:
        yield
    finally:
        del os.environ[ONE_PROCESS]
        if before is not None:
            os.environ[ONE_PROCESS] = before
