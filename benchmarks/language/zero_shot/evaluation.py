"""Evaluate a language model on a zero-shot task: one of lm-evaluation-harness, or SummScreen.

The harness (PyPI lm_eval) is imported when it is needed.
"""

from __future__ import annotations

import contextlib
import importlib.util
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from pathlib import Path

from benchmarks.language.scorer import TextScorer
from benchmarks.language.zero_shot import catalogue, summscreen
from benchmarks.language.zero_shot.catalogue import Scores
from orbits.runs.deferred import deferred

harness_index = deferred("benchmarks.language.zero_shot.harness:index")
harness_evaluate = deferred("benchmarks.language.zero_shot.harness:evaluate")
SECONDS = 10.0
"""Longest wait for the hub's first answer, in seconds."""


def check(
    tasks: Sequence[str],
    include_path: str | Path | None = None,
    scrolls: str | Path | None = None,
) -> None:
    """Refuse bad arguments of :func:`evaluate`, without a model and without a task's data.

    The papers' tasks are known to be in the harness, whose index takes ten seconds to read.
    """
    _check_packages(tasks)
    if scrolls is not None and catalogue.SUMMSCREEN in tasks:
        summscreen.read_episodes(scrolls)
    if others := [name for name in tasks if name not in catalogue.names()]:
        harness_index(others, include_path)


def evaluate(
    scorer: TextScorer,
    task: str,
    limit: int | None = None,
    include_path: str | Path | None = None,
    scrolls: str | Path | None = None,
) -> Scores:
    """Return the zero-shot scores of a model on one task.

    Args:
        scorer: The model.
        task: A task or group of lm-evaluation-harness, or ``summscreen``.
        limit: Most samples of the task, and of each task of a group; None for all.
        include_path: A folder of further tasks of the harness, as YAML files.
        scrolls: A ``validation.jsonl`` of SummScreen; None for the hub's.

    Raises:
        FileNotFoundError: There is no such file or folder.
        ConnectionError: The task's data cannot be reached.
        ValueError: An unknown task, a limit below 1, or a package is missing.
    """
    if limit is not None and limit < 1:
        raise ValueError(f"limit must be at least 1 sample, got {limit}")
    _check_packages([task])
    if task == catalogue.SUMMSCREEN:
        with _offline_if_unreachable():
            return summscreen.evaluate(scorer, summscreen.read_episodes(scrolls)[:limit])
    manager = harness_index([task], include_path)
    with _offline_if_unreachable():
        scores: Scores = harness_evaluate(scorer, task, manager, limit)
        return scores


def reachable(address: str, seconds: float = SECONDS) -> bool:
    """Return whether a web server answers, be it with an error."""
    request = urllib.request.Request(address, method="HEAD")
    try:
        with urllib.request.urlopen(request, timeout=seconds):
            return True
    except urllib.error.HTTPError:
        return True
    except OSError:
        return False


def _check_packages(tasks: Sequence[str]) -> None:
    needed = {"rouge_score" if name == catalogue.SUMMSCREEN else "lm_eval" for name in tasks}
    for package in sorted(needed):
        if importlib.util.find_spec(package) is None:
            raise ValueError(f"these tasks need the package {package}: pip install -e '.[eval]'")


@contextlib.contextmanager
def _offline_if_unreachable() -> Iterator[None]:
    """Restrict the hub's libraries to their caches if the hub does not answer.

    Uncached data then fails at once; by themselves they retry each request for 23 seconds.
    """
    try:
        from datasets import config
        from huggingface_hub import constants
    except ModuleNotFoundError:  # said where they are needed
        yield
        return
    before = constants.HF_HUB_OFFLINE, config.HF_HUB_OFFLINE
    if not any(before) and not reachable(constants.ENDPOINT):
        constants.HF_HUB_OFFLINE = config.HF_HUB_OFFLINE = True
    try:
        yield
    finally:
        constants.HF_HUB_OFFLINE, config.HF_HUB_OFFLINE = before
