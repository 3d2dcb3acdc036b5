"""lm-evaluation-harness (PyPI lm_eval): its tasks, and a model's scores on one of them."""

from __future__ import annotations

import contextlib
import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from lm_eval import simple_evaluate
from lm_eval.api.instance import Instance
from lm_eval.api.model import LM
from lm_eval.tasks import TaskManager

from benchmarks.language.scorer import Ids, Prompt, TextScorer
from benchmarks.language.zero_shot import catalogue
from benchmarks.language.zero_shot.catalogue import Scores, baseline_accuracy, chance_adjusted
from orbits.runs.choices import did_you_mean
from orbits.runs.result import Metric

BOOTSTRAP = 1000
"""Resamples for the standard error of a perplexity."""
ONE_PROCESS = "DISABLE_MULTIPROC"
"""The harness's variable against its pool of processes."""
MAX_GEN_TOKS = 256
"""New tokens where a task does not say how many, as in the harness."""


def index(names: Sequence[str], include_path: str | Path | None = None) -> TaskManager:
    """Return an index of tasks that has all names; no task's data is read."""
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
            hint = did_you_mean(name, _known(manager))
            raise ValueError(f"unknown task {name!r} of lm-evaluation-harness{hint}")
    return manager


def evaluate(scorer: TextScorer, name: str, manager: TaskManager, limit: int | None) -> Scores:
    """Return the scores of a model on a task, or on a group with the sums over its tasks."""
    try:
        tree = manager.load(name)
    except OSError as error:
        raise ConnectionError(str(error).splitlines()[0]) from None
    model = OrreryLM(scorer)
    with _one_process():
        results = simple_evaluate(
            model,
            tasks=[tree.get("groups", {}).get(name) or tree["tasks"][name]],
            limit=limit,
            bootstrap_iters=BOOTSTRAP,
            task_manager=manager,
        )
    assert results is not None
    return _scores(name, dict(results), model)


class OrreryLM(LM):
    """Answer the harness's three kinds of requests from a text scorer.

    Texts are tokenised as by the harness's own Hugging Face adapter: spaces that end a context
    belong to the continuation, and the continuation's tokens are those of the joint text that
    follow the tokens of the context. No token is put in front, unless there is no context: then
    it is end-of-text.

    Attributes:
        requests: Number of requests answered, by task.
        truncated: Number of those whose context lost its oldest tokens to fit, by task.
    """

    def __init__(self, scorer: TextScorer) -> None:
        super().__init__()
        self.scorer = scorer
        self._device = scorer.device
        self.requests: Counter[str | None] = Counter()
        self.truncated: Counter[str | None] = Counter()

    def loglikelihood(self, requests: list[Instance]) -> list[tuple[float, bool]]:
        """Return (log-likelihood in nats, whether greedy) of each (context, continuation).

        Raises:
            ValueError: A continuation without a token, for example an empty answer: it would
                always win.
        """
        scores = self.scorer.score([self._pair(*request.args) for request in requests])
        for request, score in zip(requests, scores, strict=True):
            self._count(request, score.truncated)
        return [(score.loglikelihood, score.greedy) for score in scores]

    def loglikelihood_rolling(self, requests: list[Instance]) -> list[float]:
        """Return the log-likelihood of whole texts, each after an end-of-text token, in nats."""
        texts = [self._encode(request.args[0]) for request in requests]
        for request in requests:
            self._count(request, False)
        return [score.loglikelihood for score in self.scorer.score([([], text) for text in texts])]

    def generate_until(self, requests: list[Instance]) -> list[str]:
        """Return greedy continuations of contexts.

        Raises:
            ValueError: A task asks for sampling, or for more new tokens than the model has room.
        """
        return self.scorer.generate([self._prompt(request) for request in requests])

    def _encode(self, text: str) -> Ids:
        return self.scorer.tokenizer.encode(text).tolist()

    def _pair(self, context: str, continuation: str) -> tuple[Ids, Ids]:
        stripped = context.rstrip()
        before = self._encode(stripped)
        after = self._encode(context + continuation)[len(before) :]
        if not after:
            raise ValueError(
                f"the continuation {continuation!r} of {context[-40:]!r} has no token of its own"
            )
        return before, after

    def _prompt(self, request: Instance) -> Prompt:
        context, options = request.args
        if options.get("do_sample"):
            raise ValueError("decoding is greedy: set do_sample to false in the task")
        max_new_tokens = int(options.get("max_gen_toks", MAX_GEN_TOKS))
        room = self.scorer.max_length - max_new_tokens
        if room < 1:
            raise ValueError(
                f"max_gen_toks {max_new_tokens} leaves no room for a context in max_length "
                f"{self.scorer.max_length}; raise max_length"
            )
        tokens = self._encode(context)
        self._count(request, len(tokens) > room)
        return Prompt(tuple(tokens[-room:]), max_new_tokens, _until(options))

    def _count(self, request: Instance, truncated: bool) -> None:
        self.requests[request.task_name] += 1
        self.truncated[request.task_name] += truncated


def _until(options: Mapping[str, Any]) -> tuple[str, ...]:
    until = options.get("until") or ()
    return (until,) if isinstance(until, str) else tuple(until)


def _scores(name: str, results: Mapping[str, Any], model: OrreryLM) -> Scores:
    """Return the scores on a task or group from what the harness made of a model's answers."""
    leaves = list(_leaves(name, results["group_subtasks"]))
    n = sum(results["n-samples"][leaf]["effective"] for leaf in leaves)
    higher = results["higher_is_better"][name]
    metrics: dict[str, Metric] = {}
    for key, value in results["results"][name].items():
        measured, _, filtered = key.partition(",")
        if not filtered or measured.endswith("_stderr"):
            continue
        stderr = results["results"][name].get(f"{measured}_stderr,{filtered}")
        label = measured if filtered == "none" else f"{measured} ({filtered})"
        metrics[label] = Metric(
            float(value),
            n=n,
            stderr=None if isinstance(stderr, str) else stderr,
            direction="higher" if higher[measured] else "lower",
        )
    baseline = None
    kinds = {results["configs"][leaf]["output_type"] for leaf in leaves}
    if kinds == {"multiple_choice"} and "acc" in metrics:
        samples = [sample for leaf in leaves for sample in results["samples"][leaf]]
        baseline = baseline_accuracy(
            catalogue.get(name).baseline,
            [len(sample["arguments"]) for sample in samples],
            [str(sample["target"]) for sample in samples],
        )
        if baseline < 1:  # a few samples of one class: nothing can be better
            metrics["acc_n"] = _chance_adjusted(metrics["acc"], baseline)
    return Scores(
        str(results["versions"][name]),
        metrics,
        sum(model.requests[leaf] for leaf in leaves),
        sum(model.truncated[leaf] for leaf in leaves),
        baseline,
    )


def _chance_adjusted(accuracy: Metric, baseline: float) -> Metric:
    value, stderr = chance_adjusted(accuracy.value, baseline), accuracy.stderr
    scaled = None if stderr is None else stderr / (1 - baseline)
    return Metric(value, n=accuracy.n, stderr=scaled, direction="higher")


def _leaves(name: str, children: Mapping[str, Sequence[str]]) -> Iterator[str]:
    if name not in children:
        yield name
    for child in children.get(name, ()):
        yield from _leaves(child, children)


def _known(manager: TaskManager) -> set[str]:
    return {*manager.all_subtasks, *manager.all_groups}


@contextlib.contextmanager
def _one_process() -> Iterator[None]:
    """Bootstrap in this process: a GPU does not survive the harness's fork."""
    before = os.environ.get(ONE_PROCESS)
    os.environ[ONE_PROCESS] = "1"
    try:
        yield
    finally:
        del os.environ[ONE_PROCESS]
        if before is not None:
            os.environ[ONE_PROCESS] = before
