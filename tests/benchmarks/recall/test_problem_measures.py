import numpy as np
import pytest
import torch
from torchmetrics.classification import MulticlassAccuracy

from benchmarks.recall.measures import (
    IGNORE,
    batch_macro_accuracy,
    macro_accuracy,
    micro_accuracy,
    right_by_row,
    whole_by_row,
)

TARGETS = np.array([[0, IGNORE, 0, 0], [IGNORE, 1, 1, IGNORE], [IGNORE] * 4])
ANSWERS = np.array([[0, 5, 0, 2], [1, 1, 1, 1], [3, 3, 3, 3]])


def test_by_hand():
    # Row 0 has 2 of 3 right, row 1 both; row 2 asks for nothing.
    assert micro_accuracy(ANSWERS, TARGETS) == pytest.approx(4 / 5)
    assert right_by_row(ANSWERS, TARGETS) == pytest.approx([2 / 3, 1])
    assert whole_by_row(ANSWERS, TARGETS).tolist() == [0, 1]
    # Class 0 has 2 of 3, class 1 both; class 2 was answered and never asked for: 0.
    assert macro_accuracy(ANSWERS, TARGETS) == pytest.approx((2 / 3 + 1 + 0) / 3)


def test_shares_of_right_answers_by_row():
    rng = np.random.default_rng(0)
    targets = np.where(rng.random((9, 7)) < 0.5, rng.integers(4, size=(9, 7)), IGNORE)
    targets[3] = IGNORE  # asks for nothing
    given = rng.integers(4, size=(9, 7))
    expected = []
    for row, asked in zip(given, targets, strict=True):
        marks = [a == t for a, t in zip(row, asked, strict=True) if t != IGNORE]
        if marks:
            expected.append(sum(marks) / len(marks))
    assert right_by_row(given, targets) == pytest.approx(expected)
    assert len(expected) == 8


@pytest.mark.parametrize(("n_classes", "used"), [(5, 5), (9, 4), (300, 40)])
def test_macro_and_micro_are_those_of_torchmetrics(n_classes, used):
    rng = np.random.default_rng(n_classes)
    targets = rng.integers(used, size=(20, 30))
    answers = np.where(rng.random((20, 30)) < 0.5, targets, rng.integers(n_classes, size=(20, 30)))
    targets[rng.random((20, 30)) < 0.3] = IGNORE
    for average, ours in (("macro", macro_accuracy), ("micro", micro_accuracy)):
        theirs = MulticlassAccuracy(n_classes, average=average, ignore_index=IGNORE)
        theirs.update(torch.from_numpy(answers), torch.from_numpy(targets))
        assert ours(answers, targets) == pytest.approx(float(theirs.compute()), abs=1e-6)


def test_the_mean_over_batches_is_what_is_logged_batch_by_batch():
    rng = np.random.default_rng(0)
    targets = rng.integers(6, size=(300, 8))
    answers = np.where(rng.random((300, 8)) < 0.9, targets, rng.integers(40, size=(300, 8)))
    theirs = MulticlassAccuracy(40, average="macro", ignore_index=IGNORE)
    logged = [
        (float(theirs(torch.from_numpy(answers[rows]), torch.from_numpy(targets[rows]))), n)
        for rows, n in ((slice(128), 128), (slice(128, 256), 128), (slice(256, 300), 44))
    ]
    expected = sum(value * n for value, n in logged) / 300
    assert batch_macro_accuracy(answers, targets) == pytest.approx(expected, abs=1e-6)
    assert batch_macro_accuracy(answers, targets, 300) == macro_accuracy(answers, targets)
    assert batch_macro_accuracy(answers, targets) > macro_accuracy(answers, targets) + 0.01


def test_bad_input():
    with pytest.raises(ValueError, match=r"\(1, 2\) and targets \(3, 4\) differ in shape"):
        right_by_row(np.zeros((1, 2), int), TARGETS)
    for measure in (
        right_by_row,
        whole_by_row,
        micro_accuracy,
        macro_accuracy,
        batch_macro_accuracy,
    ):
        with pytest.raises(ValueError, match="ask for nothing"):
            measure(ANSWERS[2:], TARGETS[2:])
