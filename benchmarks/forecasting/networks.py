"""Networks that map a look-back to a horizon, [B, L, C] to [B, H, C].

Each states its paper and what it leaves out. DLinear, PatchTST and a mixer take channels one by
one with the same weights; iTransformer takes them as its tokens.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from attention.scalars import check_size
from worldmodel.models.backbone import GPT

KERNEL = 25
"""Steps of DLinear's moving average."""


def standardised(past: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return each window by its own mean and deviation, and these, [B, 1, C]."""
    mean = past.mean(dim=1, keepdim=True)
    scale = (past.var(dim=1, keepdim=True, correction=0) + 1e-5).sqrt()
    return (past - mean) / scale, mean, scale


def patches(past: Tensor, length: int) -> Tensor:
    """Return pieces of each channel side by side, [B C, n, length]; the first value goes before.

    Padding stands in front, so that the last piece ends with the last step.
    """
    rows = past.transpose(1, 2).flatten(0, 1)
    padded = functional.pad(rows[:, None], (-rows.shape[1] % length, 0), mode="replicate")
    return padded[:, 0].unfold(1, length, length)


class DLinear(nn.Module):
    """A linear map of the moving average and one of the remainder (Zeng et al. 2023)."""

    def __init__(self, lookback: int, horizon: int) -> None:
        super().__init__()
        self.trend, self.rest = (nn.Linear(lookback, horizon) for _ in range(2))

    def forward(self, past: Tensor) -> Tensor:
        """Map [B, L, C] to [B, H, C]."""
        rows = past.transpose(1, 2)
        padded = functional.pad(rows, (KERNEL // 2, KERNEL // 2), mode="replicate")
        trend = functional.avg_pool1d(padded, KERNEL, stride=1)
        return (self.trend(trend) + self.rest(rows - trend)).transpose(1, 2)


class _PatchBlock(nn.Module):
    """An encoder block with BatchNorm over patches behind each part, and scores that add up."""

    def __init__(self, width: int, n_head: int, dropout: float) -> None:
        super().__init__()
        self.n_head = n_head
        self.project = nn.Linear(width, 3 * width)
        self.merge = nn.Sequential(nn.Linear(width, width), nn.Dropout(dropout))
        self.mlp = nn.Sequential(
            nn.Linear(width, 2 * width), nn.GELU(), nn.Dropout(dropout), nn.Linear(2 * width, width)
        )
        self.norms = nn.ModuleList(nn.BatchNorm1d(width) for _ in range(2))
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor, before: Tensor) -> tuple[Tensor, Tensor]:
        """Map [N, L, D] and the scores of the block before, [N, H, L, L] or 0, to both."""
        q, k, v = self.project(x).unflatten(-1, (3, self.n_head, -1)).transpose(1, 3).unbind(2)
        scores = q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5 + before
        mixed = self.merge((scores.softmax(-1) @ v).transpose(1, 2).flatten(-2))
        first, second = self.norms
        x = first((x + self.dropout(mixed)).transpose(1, 2)).transpose(1, 2)
        x = second((x + self.dropout(self.mlp(x))).transpose(1, 2)).transpose(1, 2)
        return x, scores


class PatchTST(nn.Module):
    """A transformer encoder on pieces of one channel (Nie et al. 2023).

    As in the authors' code, a block adds the attention scores of the one before, weights have no
    dropout, and one piece ends with repeats of the last step. Left out: RevIN's learned scale.
    """

    def __init__(
        self, lookback: int, horizon: int, width: int, n_head: int, n_layer: int, dropout: float
    ) -> None:
        super().__init__()
        self.length = min(16, lookback)
        self.stride = max(1, self.length // 2)
        n = (lookback - self.length) // self.stride + 2
        self.embed = nn.Linear(self.length, width)
        self.places = nn.Parameter(torch.empty(n, width).uniform_(-0.02, 0.02))
        self.dropout = nn.Dropout(dropout)
        self.blocks = nn.ModuleList(_PatchBlock(width, n_head, dropout) for _ in range(n_layer))
        self.head = nn.Linear(n * width, horizon)

    def forward(self, past: Tensor) -> Tensor:
        """Map [B, L, C] to [B, H, C]."""
        rows, mean, scale = standardised(past)
        padded = functional.pad(rows.transpose(1, 2), (0, self.stride), mode="replicate")
        pieces = padded.flatten(0, 1).unfold(1, self.length, self.stride)
        x, scores = self.dropout(self.embed(pieces) + self.places), past.new_zeros(())
        for block in self.blocks:
            x, scores = block(x, scores)
        ahead = self.head(x.flatten(1))
        return ahead.unflatten(0, (len(past), -1)).transpose(1, 2) * scale + mean


class ITransformer(nn.Module):
    """A transformer encoder whose tokens are whole channels (Liu et al. 2024).

    Left out: tokens of the calendar.
    """

    def __init__(
        self, lookback: int, horizon: int, width: int, n_head: int, n_layer: int, dropout: float
    ) -> None:
        super().__init__()
        self.embed, self.head = nn.Linear(lookback, width), nn.Linear(width, horizon)
        self.dropout = nn.Dropout(dropout)
        block = nn.TransformerEncoderLayer(
            width, n_head, 4 * width, dropout, activation="gelu", batch_first=True
        )
        self.blocks = nn.TransformerEncoder(block, n_layer, nn.LayerNorm(width))

    def forward(self, past: Tensor) -> Tensor:
        """Map [B, L, C] to [B, H, C]."""
        rows, mean, scale = standardised(past)
        x = self.blocks(self.dropout(self.embed(rows.transpose(1, 2))))
        return self.head(x).transpose(1, 2) * scale + mean


class MixerForecast(nn.Module):
    """A GPT of any attention or mixer on pieces of one channel; its last state is the forecast.

    In an encoder, ``causal=False``, every piece sees all others, those after it too.
    """

    def __init__(
        self,
        horizon: int,
        patch: int,
        attention: str,
        attention_args: Mapping[str, Any] | None,
        n_layer: int,
        n_head: int,
        head_dim: int,
        causal: bool = True,
    ) -> None:
        super().__init__()
        check_size("patch", patch)
        self.patch = patch
        self.gpt = GPT(attention, attention_args, n_layer, n_head, head_dim, causal=causal)
        self.embed = nn.Linear(patch, self.gpt.width)
        self.head = nn.Linear(self.gpt.width, horizon)

    def forward(self, past: Tensor) -> Tensor:
        """Map [B, L, C] to [B, H, C]."""
        rows, mean, scale = standardised(past)
        last = self.gpt(self.embed(patches(rows, self.patch)))[:, -1]
        return self.head(last).unflatten(0, (len(past), -1)).transpose(1, 2) * scale + mean
