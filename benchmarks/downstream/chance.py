"""Accuracy relative to chance: the metric ``acc_n``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from typing import Literal

BaselineName = Literal["chance", "majority"]


def baseline_accuracy(
    kind: BaselineName, n_choices: Sequence[int], answers: Sequence[Hashable]
) -> float:
    """Return the accuracy of not reading the questions.

    Args:
        kind: A ``chance`` guess among the answers, or always the ``majority`` class.
        n_choices: Number of answers of each question.
        answers: The right answer's number in each question.

    Raises:
        ValueError: There is no question.
    """
    if not n_choices:
        raise ValueError("a baseline needs at least one question, got none")
    if kind == "majority":
        return Counter(answers).most_common(1)[0][1] / len(answers)
    return sum(1 / n for n in n_choices) / len(n_choices)


def chance_adjusted(accuracy: float, baseline: float) -> float:
    """Return ``acc_n``: accuracy rescaled relative to a chance baseline.

    Lazy Attention, Appendix C.3, in words: "compute a chance baseline for each dataset (e.g.,
    majority class or random-chance) and rescale accuracy relative to this baseline". The paper has
    no formula; this is the usual one, (acc - chance) / (1 - chance). Its printed columns "acc_n"
    cannot be this: 26.9 for ARC-c would need an accuracy of 45 per cent from a model of 340M
    parameters. They look like ``acc_norm``, so compare them with both.

    Args:
        accuracy: A share.
        baseline: A share below 1.

    Raises:
        ValueError: The baseline is 1, so that nothing can be better.
    """
    if not 0 <= baseline < 1:
        raise ValueError(f"the baseline must be in [0, 1), got {baseline}")
    return (accuracy - baseline) / (1 - baseline)
