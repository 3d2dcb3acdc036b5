"""Accuracies by row, by answer and by class."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

IGNORE = -100
"""Target where no answer is asked for; the default ``ignore_index`` of torch's cross-entropy."""

Integers = npt.NDArray[np.int64]
Reals = npt.NDArray[np.float64]


def right_by_row(answers: Integers, targets: Integers) -> Reals:
    """Return the share of right answers of each row with targets.

    Args:
        answers: Greedy answers, [N, L].
        targets: Right answers, [N, L], ``IGNORE`` where nothing is asked.

    Raises:
        ValueError: Shapes differ, or nothing is asked.
    """
    asked = _asked(answers, targets)
    right = ((answers == targets) & asked).sum(axis=1)
    questions = asked.sum(axis=1)
    some = questions > 0
    return np.asarray(right[some] / questions[some])


def whole_by_row(answers: Integers, targets: Integers) -> Reals:
    """Return 1 for each row all of whose answers are right, else 0; see :func:`right_by_row`."""
    return np.where(right_by_row(answers, targets) == 1, 1.0, 0.0)


def micro_accuracy(answers: Integers, targets: Integers) -> float:
    """Return the share of right answers among all targets; see :func:`right_by_row`."""
    asked = _asked(answers, targets)
    return float(np.mean(answers[asked] == targets[asked]))


def macro_accuracy(answers: Integers, targets: Integers) -> float:
    """Return the mean over classes of the recall of a class (MAD).

    This is torchmetrics' MulticlassAccuracy with its default ``average="macro"``. A class that is
    neither asked for nor answered is left out of the mean. A class that is answered but never
    asked for stays in it, as a zero: answering outside the range of the targets costs twice.
    See :func:`right_by_row` for arguments and errors.
    """
    asked = _asked(answers, targets)
    given, wanted = answers[asked], targets[asked]
    n_classes = 1 + int(max(given.max(), wanted.max()))
    support = np.bincount(wanted, minlength=n_classes)
    right = np.bincount(wanted[given == wanted], minlength=n_classes)
    occurs = support + np.bincount(given, minlength=n_classes) > 0
    return float(np.mean(right[occurs] / np.maximum(support[occurs], 1)))


def batch_macro_accuracy(answers: Integers, targets: Integers, batch_size: int = 128) -> float:
    """Return the mean over batches of rows of each batch's macro accuracy.

    What mad-lab logs and published tables of MAD hold (athms/mad-lab 0f49a45,
    mad/model/pl_model_wrapper.py). Batches are of rows that follow one another and count by their
    rows. A class that is answered but never asked for is a zero in the batches that answer it
    alone, where :func:`macro_accuracy` of all rows counts it once for all. See
    :func:`right_by_row` for arguments and errors.
    """
    _asked(answers, targets)
    starts = range(0, len(targets), batch_size)
    batches = [(answers[i : i + batch_size], targets[i : i + batch_size]) for i in starts]
    values = [macro_accuracy(*batch) for batch in batches]
    return float(np.average(values, weights=[len(given) for given, _ in batches]))


def _asked(answers: Integers, targets: Integers) -> npt.NDArray[np.bool_]:
    if answers.shape != targets.shape:
        raise ValueError(f"answers {answers.shape} and targets {targets.shape} differ in shape")
    asked = targets != IGNORE
    if not asked.any():
        raise ValueError("the targets ask for nothing: every one of them is IGNORE")
    return asked
