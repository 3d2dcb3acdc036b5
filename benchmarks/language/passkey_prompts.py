"""Passkey prompts: text of an exact number of tokens that hides a number in filler.

Source: Mohtashami and Jaggi, "Landmark Attention" (arXiv:2305.16300); epfml/landmark-attention
d963e50, llama/run_test.py. There Python's global generator, unseeded, draws the trials.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy.typing as npt

from benchmarks.recall.filler import filler
from benchmarks.recall.problem import generators

TASK = (
    "There is an important info hidden inside a lot of irrelevant text. Find it and memorize them. "
    "I will quiz you about the important information there."
)
QUESTION = "What is the pass key? The pass key is"
MAX_KEY = 50_000
MAX_NEW_TOKENS = 10
"""Tokens that a model may answer with."""


class Tokenizer(Protocol):
    """The methods a tokeniser needs here, see :mod:`worldmodel.text.tokenizers`."""

    def encode(self, text: str) -> Sequence[int] | npt.NDArray[Any]: ...  # noqa: D102


@dataclass(frozen=True)
class Prompt:
    """One trial.

    Attributes:
        text: The five lines.
        key: The number to answer with.
        depth: Share of the filler that stands before the key, in [0, 1].
    """

    text: str
    key: int
    depth: float


def prompt(key: int, before: int, after: int) -> str:
    """Return the five lines of the landmark prompt.

    >>> print(prompt(key=71, before=25, after=9))  # doctest: +ELLIPSIS
    There is an important info hidden inside a lot of irrelevant text. ...
    The grass is green. The s
    The pass key is 71. Remember it. 71 is the pass key.
    The grass
    What is the pass key? The pass key is
    """
    information = f"The pass key is {key}. Remember it. {key} is the pass key."
    return "\n".join([TASK, filler(before), information, filler(after), QUESTION])


def prompts(
    tokenizer: Tokenizer, n_tokens: int, n_trials: int = 100, seed: int = 0
) -> list[Prompt]:
    """Return trials whose texts have exactly ``n_tokens`` tokens each.

    The key is uniform on 1 .. 50,000 and its depth uniform on the filler, whose amount is tuned in
    characters. Trial i has the same key and depth at every length, for every tokeniser.

    Args:
        tokenizer: Tokeniser of the model; tokens that it puts in front count too.
        n_tokens: Length of every prompt.
        n_trials: Number of prompts, at least 1.
        seed: 0 <= seed < 2^64.
    """
    if n_trials < 1:
        raise ValueError(f"n_trials must be at least 1, got {n_trials}")
    draws = [
        (int(rng.integers(1, MAX_KEY + 1)), float(rng.random()))
        for rng in generators("passkey.prompts", "test", seed, range(n_trials))
    ]
    shortest = max(len(tokenizer.encode(prompt(key, 0, 0))) for key, _ in draws)
    if n_tokens < shortest:
        raise ValueError(f"n_tokens must be at least {shortest}, the prompt itself, got {n_tokens}")
    return [Prompt(_exactly(n_tokens, tokenizer, key, depth), key, depth) for key, depth in draws]


def _exactly(n_tokens: int, tokenizer: Tokenizer, key: int, depth: float) -> str:
    def text(n_garbage: int) -> str:
        before = int(depth * (n_garbage + 1))
        return prompt(key, before, n_garbage - before)

    def missing(n_garbage: int) -> int:
        return n_tokens - len(tokenizer.encode(text(n_garbage)))

    # The length is nearly a straight line in the number of characters: follow its slope.
    slope = max(missing(0) - missing(n_tokens), 1) / n_tokens
    n_garbage = 0
    for _ in range(8):
        step = round(missing(n_garbage) / slope)
        if step == 0:
            break
        n_garbage = max(0, n_garbage + step)
    # Where words are cut, tokenisers give a token or two more or fewer: look around.
    for distance in range(200):
        for near in (n_garbage - distance, n_garbage + distance):
            if near >= 0 and missing(near) == 0:
                return text(near)
    raise ValueError(f"no amount of filler gives exactly {n_tokens} tokens; choose another length")


def is_right(answer: str, key: int) -> bool:
    """Tell whether the first integer of an answer is the key."""
    number = re.search(r"\d+", answer)
    return number is not None and int(number.group()) == key
