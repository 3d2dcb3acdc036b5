"""Windows of text with a fixed token at one place, for attention sinks."""

from __future__ import annotations

from typing import Any

import torch

from benchmarks.language.text_learners import text_model
from benchmarks.learners import Learner
from worldmodel.data.text import TextData, TextWindows


class MaskedTextData(TextData):
    """Windows of a text whose n-th token is replaced by the end-of-text token.

    The token stands for the [Mask] of Lazy Attention, Figure 2a: it says nothing and is in every
    window at the same place. It stays among what is predicted: that costs nothing once learned.

    Args:
        mask_at: The place, from 0; in windows of the validation and the test too.
        seq_len: Tokens that a window predicts.
        **kwargs: As for :class:`worldmodel.data.text.TextData`.
    """

    def __init__(self, mask_at: int, seq_len: int = 128, **kwargs: Any) -> None:
        if not 0 <= mask_at < seq_len:
            raise ValueError(f"mask_at must be in [0, {seq_len}), got {mask_at}")
        super().__init__(seq_len=seq_len, **kwargs)
        self.mask_at = mask_at

    def sequences(self, split: str, length: int) -> TextWindows:
        """Return the first ``length`` windows of a split."""
        windows = super().sequences(split, length)
        return MaskedWindows(windows, self.mask_at, self.tokenizer.end_of_text)


class MaskedWindows(TextWindows):
    """Windows with one token replaced."""

    def __init__(self, windows: TextWindows, mask_at: int, mask: int) -> None:
        super().__init__(windows.tokens, windows.seq_len, windows.length, windows.seed)
        self.mask_at, self.mask = mask_at, mask

    def __getitems__(self, indices: list[int]) -> dict[str, torch.Tensor]:
        """Return the collated batch of some windows: tokens, int64 [B, seq_len + 1]."""
        batch = super().__getitems__(indices)
        batch["tokens"][:, self.mask_at] = self.mask
        return batch


LEARNER = Learner(text_model, MaskedTextData)
