"""Log-likelihoods and greedy continuations of token sequences under a trained language model."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence
from tqdm import tqdm

from attention.scalars import check_size
from worldmodel.models.backbone import Cache
from worldmodel.models.text import TextModel

Ids = list[int]


@dataclass(frozen=True)
class Score:
    """The score of a continuation.

    Attributes:
        loglikelihood: Natural logarithm of its probability.
        greedy: Whether every token of it is the model's most likely one.
        truncated: Whether tokens of the context were dropped to make it fit.
    """

    loglikelihood: float
    greedy: bool
    truncated: bool


@dataclass(frozen=True)
class Prompt:
    """A text to continue.

    Attributes:
        tokens: The prompt; an empty one starts with end-of-text.
        max_new_tokens: Most tokens to add.
        until: Texts at which the continuation ends, before the text itself.
    """

    tokens: tuple[int, ...]
    max_new_tokens: int
    until: tuple[str, ...] = ()


class TextScorer:
    """Log-likelihoods and greedy continuations of a language model.

    Rows of different lengths are padded on the right, which a causal model cannot see. Under
    dynamic NTK the rotary base follows the length of the whole row, so there only rows of equal
    length share a batch, and nothing is cached while decoding.

    Args:
        task: The model; it is moved to the device and set to evaluation mode.
        max_length: Most tokens that the model reads at once when it scores.
        batch_size: Rows per forward pass.
        device: For example ``cuda:0``; None for a GPU if there is one.
    """

    def __init__(
        self, task: TextModel, max_length: int, batch_size: int = 16, device: str | None = None
    ) -> None:
        check_size("max_length", max_length)
        check_size("batch_size", batch_size)
        self.n_positions = None if task.positions is None else task.positions.num_embeddings
        if self.n_positions is not None and max_length > self.n_positions:
            raise ValueError(
                f"max_length {max_length} exceeds the model's {self.n_positions} learned positions"
            )
        self.device = torch.device(device or ("cuda" if torch.cuda.is_available() else "cpu"))
        self.task = task.eval().to(self.device)
        self.tokenizer = task.tokenizer
        self.max_length, self.batch_size = max_length, batch_size
        self._follows_length = task.gpt.follows_length

    @torch.inference_mode()
    def score(self, pairs: Sequence[tuple[Ids, Ids]]) -> list[Score]:
        """Return the score of each (context, continuation), in order.

        An empty context is an end-of-text token. A context that does not fit loses its oldest
        tokens; a continuation that does not fit is scored in :func:`windows`. The empty
        continuation is certain: log-likelihood 0.
        """
        given = [(context or [self.tokenizer.end_of_text], after) for context, after in pairs]
        owners, parts = [], []
        for index, (context, continuation) in enumerate(given):
            for part in windows(context, continuation, self.max_length):
                owners.append(index)
                parts.append(part)
        lengths = [len(before) + len(after) - 1 for before, after in parts]
        loglikelihoods, greedy = [0.0] * len(given), [True] * len(given)
        for rows in self._batches(lengths, mixed=not self._follows_length):
            scores = self._scored([parts[row] for row in rows])
            for row, (loglikelihood, is_greedy) in zip(rows, scores, strict=True):
                loglikelihoods[owners[row]] += loglikelihood
                greedy[owners[row]] &= bool(is_greedy)
        truncated = [len(c) > 1 and len(c) + len(a) - 1 > self.max_length for c, a in given]
        return [Score(*each) for each in zip(loglikelihoods, greedy, truncated, strict=True)]

    @torch.inference_mode()
    def generate(self, prompts: Sequence[Prompt], use_cache: bool = True) -> list[str]:
        """Return the greedy continuation of each prompt, in order.

        A continuation ends before the first of its ``until`` texts, at end-of-text, or with its
        last allowed token. Prompts of equal length are decoded together.

        Args:
            prompts: Prompts to continue; a prompt and its continuation may exceed ``max_length``.
            use_cache: Keep what attention needs of earlier tokens instead of computing them anew
                at every token. The texts are the same up to rounding; the specification is
                without.
        """
        given = [
            (prompt.tokens or (self.tokenizer.end_of_text,), prompt.max_new_tokens, prompt.until)
            for prompt in prompts
        ]
        for tokens, max_new_tokens, _ in given:
            # The last new token is not read.
            total = len(tokens) + max_new_tokens - 1
            if self.n_positions is not None and total > self.n_positions:
                raise ValueError(
                    f"{len(tokens)} tokens and {max_new_tokens} new ones exceed the model's "
                    f"{self.n_positions} learned positions"
                )
        texts = [""] * len(given)
        keys = [(len(tokens), max_new_tokens, until) for tokens, max_new_tokens, until in given]
        for rows in self._batches(keys, mixed=False):
            _, max_new_tokens, until = keys[rows[0]]
            batch = torch.tensor([given[row][0] for row in rows], device=self.device)
            cached = use_cache and not self._follows_length
            continuations = self._continued(batch, max_new_tokens, until, cached)
            for row, text in zip(rows, continuations, strict=True):
                texts[row] = text
        return texts

    def _batches(self, keys: Sequence[Any], mixed: bool) -> Iterator[list[int]]:
        """Yield batches of indices, the largest keys first; unless mixed, of equal keys."""
        # The longest rows come first, so that a batch too large for the memory fails at once.
        order = sorted(range(len(keys)), key=keys.__getitem__, reverse=True)
        groups = (
            [order]
            if mixed
            else [list(same) for _, same in itertools.groupby(order, key=keys.__getitem__)]
        )
        batches = [
            group[start : start + self.batch_size]
            for group in groups
            for start in range(0, len(group), self.batch_size)
        ]
        return iter(tqdm(batches, desc="batches", disable=None))

    def _scored(self, parts: list[tuple[Ids, Ids]]) -> list[list[float]]:
        """Return log-likelihood and greediness (0 or 1) of windows, in one forward pass."""
        rows = [torch.tensor((before + after)[:-1]) for before, after in parts]
        end = self.tokenizer.end_of_text
        tokens = pad_sequence(rows, batch_first=True, padding_value=end).to(self.device)
        sums = []
        # Row by row: the logits of a whole batch over a large vocabulary would not fit.
        for hidden, (before, after) in zip(
            self.task.hidden({"tokens": tokens}), parts, strict=True
        ):
            first = len(before) - 1
            logits = self._logits(hidden[first : first + len(after)])
            answers = torch.tensor(after, device=self.device)
            chosen = logits.log_softmax(dim=-1).gather(-1, answers[:, None])
            greedy = (logits.argmax(dim=-1) == answers).all()
            sums.append(torch.stack([chosen.double().sum(), greedy.double()]))
        return torch.stack(sums).tolist()

    def _continued(
        self, prompt: Tensor, max_new_tokens: int, until: tuple[str, ...], use_cache: bool
    ) -> list[str]:
        """Return the continuations of prompts [B, P]."""
        tokens, caches = prompt, self.task.gpt.new_caches()
        continuations = [("", False)] * len(prompt)
        for _ in range(max_new_tokens):
            if use_cache:
                hidden = self._cached_hidden(tokens, caches)
            else:
                hidden = self.task.hidden({"tokens": tokens})
            answer = self._logits(hidden[:, -1]).argmax(dim=-1, keepdim=True)
            tokens = torch.cat([tokens, answer], dim=1)
            new = tokens[:, prompt.shape[1] :].tolist()
            # What has ended stays as it is, so that the other rows of a batch do not matter.
            continuations = [
                known if known[1] else self._text(row, until)
                for known, row in zip(continuations, new, strict=True)
            ]
            if all(ended for _, ended in continuations):
                break
        return [text for text, _ in continuations]

    def _cached_hidden(self, tokens: Tensor, caches: list[Cache]) -> Tensor:
        """Return the final hidden states of the tokens that the caches have not seen."""
        x = self.task.embedded(tokens)[:, caches[0].length :]
        return self.task.gpt(x, caches)

    def _logits(self, hidden: Tensor) -> Tensor:
        return self.task.logits(hidden).float()

    def _text(self, ids: Ids, until: tuple[str, ...]) -> tuple[str, bool]:
        """Return the text of new tokens up to its end, and whether it has ended."""
        end = self.tokenizer.end_of_text
        kept = list(itertools.takewhile(lambda i: i != end, ids))
        text = self.tokenizer.decode(kept)
        places = [place for stop in until if (place := text.find(stop)) >= 0]
        return text[: min(places, default=None)], bool(places) or len(kept) < len(ids)


def windows(context: Ids, continuation: Ids, max_length: int) -> Iterator[tuple[Ids, Ids]]:
    """Yield (context, continuation) windows that fit into a model.

    Every token of the continuation is in one window, and every window has as much of what comes
    before it as fits: the model reads at most ``max_length`` tokens, the last one excluded, since
    nothing follows it. With one token of context these are the windows of lm-evaluation-harness
    for perplexities.
    """
    tokens, scored = context + continuation, len(context)
    while scored < len(tokens):
        end = min(scored + max_length, len(tokens))
        yield tokens[max(0, end - 1 - max_length) : scored], tokens[scored:end]
        scored = end
