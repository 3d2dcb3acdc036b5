"""The 66 settings of MAD: each of six problems at a baseline and at harder settings.

Poli et al., "Mechanistic Design and Scaling of Hybrid Architectures" (arXiv:2403.17844);
athms/mad-lab 0f49a45: mad/data/instances.py for the rules, configs/tasks/*.yml for the settings.

A setting is trained on ``n_train`` rows and tested on ``n_test``, and scored by
:func:`benchmarks.recall.measures.macro_accuracy`; a problem's score is the mean over its settings
of the best score over learning rates 1e-4, 5e-4, 1e-3 and weight decays 0, 0.1. Published tables
are of that macro average, so it is the one to compare; ``micro_accuracy`` is the plain share.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from benchmarks.recall.problem import Problem
from benchmarks.recall.skills.compression import Compression
from benchmarks.recall.skills.fuzzy_recall import FuzzyRecall
from benchmarks.recall.skills.in_context_recall import InContextRecall
from benchmarks.recall.skills.memorization import Memorization
from benchmarks.recall.skills.selective_copy import SelectiveCopy


@dataclass(frozen=True)
class Setting:
    """A problem at one setting.

    Attributes:
        skill: Name of the problem, a key of ``BASELINES``.
        changed: The axis that differs from the baseline, or ``baseline``.
        value: Its value; None for the baseline.
        problem: The problem so set.
        n_train: Rows to train on.
        n_test: Rows to test on.
    """

    skill: str
    changed: str
    value: float | None
    problem: Problem
    n_train: int
    n_test: int = 1280


BASELINES: dict[str, tuple[Any, int]] = {
    "in_context_recall": (InContextRecall(), 12_800),
    "fuzzy_recall": (FuzzyRecall(), 12_800),
    "noisy_recall": (
        InContextRecall(vocab_size=32, noise_vocab_size=16, noise_fraction=0.2),
        12_800,
    ),
    "selective_copy": (SelectiveCopy(), 12_800),
    "compression": (Compression(), 12_800),
    "memorization": (Memorization(), 256),
}
"""Problem and number of training rows of each baseline."""

_FEWER_ROWS = (6400, 3200, 1600, 800)

CHANGES: dict[str, dict[str, tuple[float, ...]]] = {
    "in_context_recall": {
        "vocab_size": (32, 64, 128),
        "seq_len": (256, 512, 1024),
        "n_train": _FEWER_ROWS,
    },
    "fuzzy_recall": {
        "vocab_size": (32, 64, 128),
        "seq_len": (256, 512, 1024),
        "n_train": _FEWER_ROWS,
    },
    "noisy_recall": {
        "vocab_size": (48, 80, 144),
        "seq_len": (256, 512, 1024),
        "n_train": _FEWER_ROWS,
        "noise_fraction": (0.4, 0.6, 0.8),
    },
    "selective_copy": {
        "vocab_size": (32, 64, 128),
        "seq_len": (512, 1024),
        "n_train": _FEWER_ROWS,
        "n_copy": (32, 64, 96),
    },
    "compression": {
        "vocab_size": (32, 64, 128),
        "seq_len": (64, 128, 256),
        "n_train": _FEWER_ROWS,
    },
    "memorization": {"vocab_size": (512, 1024, 2048, 4096, 8192)},
}
"""Axes of difficulty: each value replaces the baseline's, one at a time."""


def settings() -> Iterator[Setting]:
    """Yield the 66 settings: each problem's baseline, then its changes."""
    for skill, (problem, n_train) in BASELINES.items():
        yield Setting(skill, "baseline", None, problem, n_train)
        for axis, values in CHANGES[skill].items():
            for value in values:
                if axis == "n_train":
                    yield Setting(skill, axis, value, problem, int(value))
                else:
                    changed = dataclasses.replace(problem, **{axis: value})
                    yield Setting(skill, axis, value, changed, n_train)
