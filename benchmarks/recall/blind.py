"""Scores of answers for which nothing is looked up: the levels that a mixer has to be above."""

from __future__ import annotations

import functools

import numpy as np

from benchmarks.recall.measures import IGNORE, macro_accuracy
from benchmarks.recall.problem import Problem

ROWS = 2000
"""Test rows of a score."""


@functools.cache
def commonest(problem: Problem) -> float:
    """Return the macro accuracy of the answer that a row has shown most often so far, in %.

    Of a row that is to be given back from its last state it is that of the whole row, but for
    places whose answer never changes. Where a row has shown none yet it is one of all answers, and
    so is the least score.
    """
    rows = problem.examples("test", 0, np.arange(ROWS))
    classes = np.unique(rows.targets[rows.targets != IGNORE])
    shown = rows.tokens[:, :, None] == classes
    back = np.array_equal(rows.tokens, rows.targets)  # else the asked place would count, too
    counts = shown.sum(axis=1, keepdims=True) if back else shown.cumsum(axis=1)
    same = back & (rows.targets == rows.targets[0]).all(axis=0)
    answers = np.where(same, rows.targets[0], classes[counts.argmax(axis=2)])
    return 100 * max(macro_accuracy(answers, rows.targets), 1 / len(classes))


@functools.cache
def by_place(problem: Problem) -> float:
    """Return the share of right answers by places alone, in %.

    Each question is answered by what stands at one place of its row, whatever key is asked: the
    place at which half of the rows had the answer to a question there most often. The other half
    tests it.
    """
    rows = problem.examples("test", 0, np.arange(ROWS))
    first, second = np.arange(ROWS) % 2 == 0, np.arange(ROWS) % 2 == 1
    right = asked = 0
    for place in np.flatnonzero((rows.targets != IGNORE).any(axis=0)):
        here = rows.targets[:, place] != IGNORE
        same = rows.tokens[:, : place + 1] == rows.targets[:, place, None]
        best = int(same[first & here].sum(axis=0).argmax())
        right += int(same[second & here, best].sum())
        asked += int((second & here).sum())
    return 100 * right / asked
