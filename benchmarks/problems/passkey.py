"""Passkey retrieval: a number hidden in filler, asked for at the end.

Two forms. :func:`prompts` makes the text that language models are tested with, at an exact number
of tokens. :class:`Passkey` is a short form of it in bytes, to train small models on: without
training, tiny language models answer no prompt at all.

Source: Mohtashami and Jaggi, "Landmark Attention" (arXiv:2305.16300); epfml/landmark-attention
d963e50, llama/run_test.py. There Python's global generator, unseeded, draws the trials.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from benchmarks.problems.examples import IGNORE, Examples, Integers, collect, generators

TASK = (
    "There is an important info hidden inside a lot of irrelevant text. Find it and memorize them. "
    "I will quiz you about the important information there."
)
GARBAGE = (
    "The grass is green. The sky is blue. The sun is yellow. Here we go. There and back again."
)
QUESTION = "What is the pass key? The pass key is"
MAX_KEY = 50_000
MAX_NEW_TOKENS = 10
"""Tokens that a model may answer with."""


class Tokenizer(Protocol):
    """What is needed of a tokeniser; those of :mod:`worldmodel.tokenizer` and others have it."""

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

    Args:
        key: The number.
        before: Characters of filler in front of it.
        after: Characters of filler behind it.
    """
    information = f"The pass key is {key}. Remember it. {key} is the pass key."
    return "\n".join([TASK, _filler(before), information, _filler(after), QUESTION])


def _filler(n_characters: int) -> str:
    sentence = GARBAGE + " "
    return (sentence * (n_characters // len(sentence) + 1))[:n_characters]


def prompts(
    tokenizer: Tokenizer, n_tokens: int, n_trials: int = 100, seed: int = 0
) -> list[Prompt]:
    """Return trials whose texts have exactly ``n_tokens`` tokens each.

    The key is uniform on 1 .. 50,000 and its depth uniform on the filler, whose amount is tuned in
    characters. Trial i has the same key and depth at every length, for every tokeniser.

    Args:
        tokenizer: What the model reads with; tokens that it puts in front count too.
        n_tokens: Length of every prompt.
        n_trials: How many, at least 1.
        seed: 0 <= seed < 2^64.

    Raises:
        ValueError: The prompts without filler are longer, no filler gives the exact length, no
            trial is asked for, or the seed is out of range.
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
    """Tell whether the first integer of an answer is the key.

    Args:
        answer: What a model says after the prompt, in ``MAX_NEW_TOKENS`` tokens.
        key: The number of the prompt.
    """
    number = re.search(r"\d+", answer)
    return number is not None and int(number.group()) == key


@dataclass(frozen=True)
class Passkey:
    """Answer with the digits of the pass key, one by one: the short form in bytes.

    Four lines: filler, ``The pass key is <key>.``, filler, ``The pass key is <key>``. The filler is
    that of the long prompt; its part before the key is uniform on 0 .. all of it. The key has
    ``n_digits`` digits, each uniform on 0 .. 9, zeros in front included. Only the digits of the
    last line are asked for, each at the token before it; its last digit is not read. A reader
    answers all; a model that answers digits without reading gets one in ten.

    Measures: :func:`benchmarks.problems.right_by_row` per digit, ``whole_by_row`` per key.

        >>> rows = Passkey(seq_len=70, n_digits=3).examples("test", 0, np.arange(1))
        >>> print(bytes(rows.tokens[0].tolist()).decode())
        The grass is green. The sky
        The pass key is 829.
        Th
        The pass key is 82
        >>> bytes(rows.targets[0][-3:].tolist())
        b'829'

    Attributes:
        seq_len: L; the same problem at a larger L tests extrapolation.
        n_digits: Digits of the key.

    Raises:
        ValueError: The lines do not fit; the message names the least ``seq_len``.
    """

    seq_len: int = 128
    n_digits: int = 5

    def __post_init__(self) -> None:
        if self.n_digits < 1:
            raise ValueError(f"n_digits must be at least 1, got {self.n_digits}")
        if self._n_garbage < 0:
            raise ValueError(
                f"seq_len must be at least {self.seq_len - self._n_garbage} for {self.n_digits} "
                f"digits, got {self.seq_len}"
            )

    @property
    def vocab_size(self) -> int:
        """The bytes."""
        return 256

    @property
    def _n_garbage(self) -> int:
        return self.seq_len + 1 - len(self._text("0" * self.n_digits, 0, 0))

    def _text(self, key: str, before: int, after: int) -> str:
        statement = f"The pass key is {key}"
        return "\n".join([_filler(before), f"{statement}.", _filler(after), statement])

    def examples(self, split: str, seed: int, indices: Integers) -> Examples:
        """Return one row per index; see :class:`benchmarks.problems.Problem`."""

        def row(rng: np.random.Generator) -> tuple[Integers, Integers]:
            key = "".join(map(str, rng.integers(10, size=self.n_digits)))
            before = int(rng.integers(self._n_garbage + 1))
            text = self._text(key, before, self._n_garbage - before)
            codes = np.frombuffer(text.encode(), np.uint8).astype(np.int64)
            targets = np.full(self.seq_len, IGNORE)
            targets[-self.n_digits :] = codes[-self.n_digits :]
            return codes[:-1], targets

        return collect(generators("passkey", split, seed, indices), row, self.seq_len)
