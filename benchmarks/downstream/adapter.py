"""A language model of this repository as lm-evaluation-harness wants it (PyPI lm_eval)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from lm_eval.api.instance import Instance
from lm_eval.api.model import LM

from benchmarks.text_scorer import Ids, Prompt, TextScorer

MAX_GEN_TOKS = 256
"""New tokens where a task does not say how many, as in the harness."""


class OrreryLM(LM):
    """Answer the harness's three kinds of requests from a text scorer.

    Texts are tokenised as by the harness's own Hugging Face adapter: spaces that end a context
    belong to the continuation, and the continuation's tokens are those of the joint text that
    follow the tokens of the context. No token is put in front, unless there is no context: then
    it is end-of-text.

    Args:
        scorer: The model, with its largest length, batch size and device.

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
