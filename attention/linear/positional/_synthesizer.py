"""Synthesizers: softmax attention whose scores are made without keys."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from attention.linear._bounded import Bounded
from attention.linear._fft import with_past
from attention.linear.mixer import RecurrentState
from attention.parts.precision import full_precision


class Synthesizer(Bounded):
    """y_t = sum_{j <= t} softmax_j(B_tj) v_j, with a score for each query and place j, by head.

    The time of many positions is that of softmax attention; the state keeps all values.
    """

    quadratic: ClassVar = True

    def __init__(self, n_head: int, head_dim: int, **args: Any) -> None:
        super().__init__(n_head, head_dim, **args)
        self.value, self.project = (nn.Linear(self.width, self.width, bias=False) for _ in range(2))

    @abstractmethod
    def _scores(self, x: Tensor, first: int) -> Tensor:
        """Return B at the places from ``first`` on, -inf where j > t.

        Returns:
            [B or 1, H, L, first + L], in at least float32.
        """

    def _mix(self, x: Tensor, cache: RecurrentState, chunk: int | None) -> Tensor:
        first, found = cache.length, []
        v = self.value(x)
        v = v.to(torch.promote_types(v.dtype, torch.float32))
        v = self._split(with_past(v, self.args["max_length"] - 1, cache, "recent_values"))
        for part in x.split(chunk or 1, dim=1):
            scores, last = self._scores(part, first), first + part.shape[1]
            with full_precision(x):
                found.append(scores.softmax(dim=-1) @ v[..., :last, :])
            first = last
        return self.project(self._merge(torch.cat(found, dim=-2), x))
