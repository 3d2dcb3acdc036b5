"""Evaluate a language model on downstream tasks: lm-evaluation-harness and SummScreen.

The harness (PyPI lm_eval) is imported when it is needed. A task whose data cannot be reached is
reported as skipped, with the reason.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.downstream import catalogue, harness, hub, records, summscreen

if TYPE_CHECKING:
    from benchmarks.text_scorer import TextScorer


def check(
    tasks: Sequence[str],
    include_path: str | Path | None = None,
    scrolls: str | Path | None = None,
) -> None:
    """Refuse what :func:`evaluate` would refuse, without a model and without a task's data.

    The papers' tasks are known to be in the harness, whose index takes ten seconds to read.

    Args:
        tasks: As for :func:`evaluate`.
        include_path: As for :func:`evaluate`.
        scrolls: As for :func:`evaluate`.

    Raises:
        FileNotFoundError: There is no such file or folder.
        ValueError: An unknown task, no episodes, or a package is missing.
    """
    _check_packages(tasks)
    if scrolls is not None and catalogue.SUMMSCREEN in tasks:
        summscreen.read_episodes(scrolls)
    if others := [name for name in tasks if name not in catalogue.names()]:
        harness.index(others, include_path)


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
    _check_packages(tasks)
    from benchmarks.text_scorer import TextScorer

    ours = catalogue.SUMMSCREEN
    theirs = [name for name in tasks if name != ours]
    episodes = summscreen.read_episodes(scrolls) if scrolls is not None and ours in tasks else None
    manager = harness.index(theirs, include_path) if theirs else None
    scorer = TextScorer.load(checkpoint, max_length, batch_size, device)
    found: dict[str, dict[str, Any]] = {}
    with hub.offline_if_unreachable():
        if manager is not None:
            found |= harness.evaluate(scorer, theirs, manager, limit)
        if ours in tasks:
            found[ours] = _summscreen(scorer, episodes, limit)
    return {"max_length": scorer.max_length, "tasks": {name: found[name] for name in tasks}}


def _check_packages(tasks: Sequence[str]) -> None:
    needed = {"rouge_score" if name == catalogue.SUMMSCREEN else "lm_eval" for name in tasks}
    for package in sorted(needed):
        if importlib.util.find_spec(package) is None:
            raise ValueError(f"these tasks need the package {package}: pip install 'orrery[eval]'")


def _summscreen(
    scorer: TextScorer, episodes: list[summscreen.Episode] | None, limit: int | None
) -> dict[str, Any]:
    try:
        chosen = (episodes or summscreen.read_episodes())[:limit]
    except ConnectionError as error:
        return records.skipped(error)
    found = summscreen.summarise(scorer, chosen)
    n = len(found.rouge1)
    stderr = float(np.std(found.rouge1, ddof=1) / np.sqrt(n)) if n > 1 else None
    return {
        "status": "ok",
        "version": str(summscreen.VERSION),
        "n": n,
        "metrics": {"rouge1": records.metric(float(np.mean(found.rouge1)), stderr, n, True)},
        "requests": n,
        "truncated": found.truncated,
        "max_length": found.max_length,
    }
