"""The zero-shot tasks of the language-model papers, and the metrics that each paper reports.

Metrics have the harness's names; accuracies are shares (the papers print per cent). Three of them
must not be confused:

- ``acc``: the answer of largest log-likelihood is right.
- ``acc_norm``: log-likelihoods are divided by the number of characters of the answer first
  (lm-evaluation-harness; LSSAR, Sect. 3.3).
- ``acc_n``: ``acc`` rescaled so that chance is 0 and perfection 1 (Lazy Attention, Appendix C.3;
  :func:`chance_adjusted`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from orbits.runs.result import Metric

SUMMSCREEN = "summscreen"
"""Our own task (:mod:`benchmarks.language.zero_shot.summscreen`); all others are the harness's."""

Baseline = Literal["chance", "majority"]


@dataclass(frozen=True)
class EvaluationTask:
    """One task.

    Attributes:
        name: Name in lm-evaluation-harness.
        lssar: Metrics in Tables 2, A1 and A2 of the LSSAR paper.
        lazy: Metrics in Table 1 of the Lazy Attention paper.
        baseline: Chance, for ``acc_n``: a ``chance`` guess among the answers, or always the
            ``majority`` class, for a task whose answers are the same classes in every question.
    """

    name: str
    lssar: tuple[str, ...] = ()
    lazy: tuple[str, ...] = ()
    baseline: Baseline = "chance"


@dataclass(frozen=True)
class Scores:
    """The scores of a model on one task.

    Attributes:
        version: Version of the task.
        metrics: Metrics by name, each with its number of samples, standard error and direction.
        requests: Requests that the model answered.
        truncated: Number of requests whose context was cut to fit.
        baseline: Accuracy that ``acc_n`` calls chance; None where nothing is chosen.
    """

    version: str
    metrics: Mapping[str, Metric]
    requests: int
    truncated: int
    baseline: float | None = None


TASKS = (
    EvaluationTask("arc_easy", lssar=("acc_norm",), lazy=("acc",)),
    EvaluationTask("arc_challenge", lssar=("acc_norm",), lazy=("acc_n",)),
    EvaluationTask("hellaswag", lssar=("acc_norm",), lazy=("acc_n",)),
    EvaluationTask("piqa", lssar=("acc_norm",), lazy=("acc",)),
    EvaluationTask("mmlu", lssar=("acc",)),
    EvaluationTask("sciq", lssar=("acc_norm",)),
    EvaluationTask("winogrande", lazy=("acc",)),
    EvaluationTask("social_iqa", lazy=("acc",)),
    EvaluationTask("boolq", lazy=("acc",), baseline="majority"),
    EvaluationTask("lambada_openai", lssar=("acc", "perplexity"), lazy=("perplexity", "acc")),
    EvaluationTask("wikitext", lazy=("word_perplexity",)),
    EvaluationTask(SUMMSCREEN, lssar=("rouge1",)),
)


def names() -> tuple[str, ...]:
    """Return the names of the papers' tasks."""
    return tuple(task.name for task in TASKS)


def get(name: str) -> EvaluationTask:
    """Return a task; one that no paper has gets the defaults."""
    return next((task for task in TASKS if task.name == name), EvaluationTask(name))


def baseline_accuracy(
    kind: Baseline, n_choices: Sequence[int], answers: Sequence[Hashable]
) -> float:
    """Return the accuracy of not reading the questions.

    Args:
        kind: A ``chance`` guess among the answers, or always the ``majority`` class.
        n_choices: Number of answers of each question.
        answers: The right answer's number in each question.
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
    """
    if not 0 <= baseline < 1:
        raise ValueError(f"the baseline must be in [0, 1), got {baseline}")
    return (accuracy - baseline) / (1 - baseline)
