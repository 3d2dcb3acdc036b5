"""The zero-shot tasks of the language-model papers, and the metric that each paper reports.

Metrics have the harness's names; accuracies are shares (the papers print per cent). Three of them
must not be confused:

- ``acc``: the answer of largest log-likelihood is right.
- ``acc_norm``: log-likelihoods are divided by the number of characters of the answer first
  (lm-evaluation-harness; LSSAR, Sect. 3.3).
- ``acc_n``: ``acc`` rescaled so that chance is 0 and perfection 1 (Lazy Attention, Appendix C.3;
  :func:`benchmarks.downstream.chance.chance_adjusted`).
"""

from __future__ import annotations

from dataclasses import dataclass

from benchmarks.downstream.chance import BaselineName

SUMMSCREEN = "summscreen"
"""Our own task (:mod:`benchmarks.downstream.summscreen`); all others are the harness's."""


@dataclass(frozen=True)
class EvaluationTask:
    """One task.

    Attributes:
        name: Its name in lm-evaluation-harness.
        lssar: Metrics in Tables 2, A1 and A2 of the LSSAR paper.
        lazy: Metrics in Table 1 of the Lazy Attention paper.
        baseline: What ``acc_n`` calls chance: a ``chance`` guess among the answers, or always the
            ``majority`` class, for a task whose answers are the same classes in every question.
    """

    name: str
    lssar: tuple[str, ...] = ()
    lazy: tuple[str, ...] = ()
    baseline: BaselineName = "chance"


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
