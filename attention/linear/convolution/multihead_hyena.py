"""Multi-head Hyena (Massaroli et al. 2023, arXiv:2310.18780)."""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor

from attention.linear._fft import convolved, with_past
from attention.linear.convolution.hyena import Hyena
from attention.linear.mixer import RecurrentState


class MultiheadHyena(Hyena):
    """y_t = q_t (sum_j h_j k_{t-j}^T v_{t-j} + b k_t^T v_t), head by head (Sect. 4).

    Hyena with outer products for products: linear attention whose pairs are weighted by their
    distance, with one filter a head. The convolution has D^2 channels a head.

    Arguments:
        length: As in hyena.
    """

    name = "multihead_hyena"
    source = "Massaroli et al. 2023 (arXiv:2310.18780), Sect. 4: MultiHyena"
    about = "Linear attention that weighs each distance by a long filter, one for every head."
    kept = "H D (2 L + 4)"
    arguments: ClassVar = {"length": 1024}
    deviations = (
        "as hyena. Heads are those of the paper, each with one filter; in mad-lab's code, which "
        "ZeroS used, a number of heads is the number of channels in each."
    )

    def _filters(self) -> int:
        return self.n_head

    def _convolved(
        self, q: Tensor, k: Tensor, v: Tensor, cache: RecurrentState, chunk: int | None
    ) -> Tensor:
        both = with_past(torch.cat([k, v], dim=-1), self.taps.length - 1, cache, "recent_pairs")
        q, past_k, past_v = (
            z.unflatten(-1, (self.n_head, self.head_dim)).permute(0, 2, 3, 1)
            for z in (q, *both.chunk(2, dim=-1))
        )
        entered = past_k.unsqueeze(3) * past_v.unsqueeze(2)  # [B, H, D, D, T]
        taps = self.taps(entered.shape[-1], q.dtype)[:, None, None]
        count = q.shape[-1]
        summed = convolved(entered, taps, count, chunk)
        summed = summed + self.skip.to(q.dtype)[:, None, None, None] * entered[..., -count:]
        return (q.unsqueeze(3) * summed).sum(2).permute(0, 3, 1, 2).flatten(-2)


MIXER = MultiheadHyena
