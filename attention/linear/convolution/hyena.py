"""Hyena (Poli et al. 2023, arXiv:2302.10866)."""

from __future__ import annotations

from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from attention.linear._convolution import ShortConvolution
from attention.linear._fft import convolved, with_past
from attention.linear.convolution._filter import ImplicitFilter
from attention.linear.mixer import Mixer, RecurrentState
from attention.parts.precision import full_precision


class Hyena(Mixer):
    """y_t = q_t (sum_j h_j k_{t-j} v_{t-j} + b k_t v_t), element by element: order 2 (Sect. 3).

    q, k and v come from one projection and a convolution over three inputs each, h is a filter
    as long as the sequence that a small network makes of the place, and a projection follows.
    Heads only set the width.

    Arguments:
        length: Taps of the filter. Inputs further back are not seen; the state keeps as many.
    """

    name = "hyena"
    source = "Poli et al. 2023 (arXiv:2302.10866), Sects. 3.1 to 3.4, Algorithms 1 to 3"
    about = "A gated convolution with filters as long as the sequence, made by a small network."
    kept = "H D (L + 5)"
    arguments: ClassVar = {"length": 1024}
    deviations = (
        "order 2 alone; features of a place are not learned; the filter's network has no weight "
        "decay, as published, but the learning rate of the other weights; beyond the length of its "
        "filter an output sees the last inputs, where the authors' code drops the rest of the "
        "sequence."
    )

    def __init__(self, n_head: int, head_dim: int, **args: Any) -> None:
        super().__init__(n_head, head_dim, **args)
        self.inputs = nn.Linear(self.width, 3 * self.width)
        self.recent = ShortConvolution(
            3 * self.width, "recent", bias=True, size=3, activation=nn.Identity()
        )
        channels = self._filters()
        self.taps = ImplicitFilter(channels, self.args["length"])
        self.undecayed = tuple(f"taps.{name}" for name, _ in self.taps.named_parameters())
        self.skip = nn.Parameter(torch.randn(channels))
        self.project = nn.Linear(self.width, self.width)

    def _filters(self) -> int:
        """Return the number of filters."""
        return self.width

    def _mix(self, x: Tensor, cache: RecurrentState, chunk: int | None) -> Tensor:
        inputs = self.recent(self.inputs(x), cache)
        inputs = inputs.to(torch.promote_types(x.dtype, torch.float32))
        with full_precision(x):
            q, k, v = inputs.chunk(3, dim=-1)
            y = self._convolved(q, k, v, cache, chunk)
        return self.project(y.to(x.dtype))

    def _convolved(
        self, q: Tensor, k: Tensor, v: Tensor, cache: RecurrentState, chunk: int | None
    ) -> Tensor:
        """Return y [B, L, width] of q, k and v, [B, L, width] each."""
        entered = with_past(k * v, self.taps.length - 1, cache, "recent_products").mT
        taps = self.taps(entered.shape[-1], q.dtype)
        taps = torch.cat([taps[:, :1] + self.skip.to(q.dtype)[:, None], taps[:, 1:]], dim=-1)
        return q * convolved(entered, taps, q.shape[1], chunk).mT


MIXER = Hyena
