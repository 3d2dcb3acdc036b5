"""RWKV-4 (Peng et al. 2023, arXiv:2305.13048)."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from attention.linear import fla
from attention.linear._average import averages, keep, kept
from attention.linear._rwkv import change_since_last, channels
from attention.linear.mixer import Mixer, RecurrentState
from attention.parts.precision import full_precision


class RWKV4(Mixer):
    """An average of earlier values whose weights decay, the present one with a bonus (Eq. 16).

    wkv_t = (sum_{i < t} e^(-(t-1-i) w + k_i) v_i + e^(u + k_t) v_t) / (the same with v = 1), and
    the layer returns W_o (sigmoid(r) wkv), channel by channel. Receptance r, key and value see
    mu x_t + (1 - mu) x_{t-1} (Eqs. 11 to 13). w = exp(.) and u are learned per channel; start
    values are those of the authors' code (RWKV-LM, RWKV-v4). Heads are of no account.
    """

    name = "rwkv4"
    source = "Peng et al. 2023 (arXiv:2305.13048), Eqs. 11 to 16"
    about = "An average by channel with learned decays, a bonus for the present and token shift."
    kept = "3 H D"
    deviations = (
        "time mixing alone: the block's MLP is the model's; projections start as a model's linear "
        "layers do; in the authors' code value is orthogonal, the other three 0."
    )
    kernels: ClassVar = {"fla": fla.channel_refusal}

    def __init__(self, n_head: int, head_dim: int, **args: Any) -> None:
        super().__init__(n_head, head_dim, **args)
        width, depth = self.width, self.layer / max(self.n_layer - 1, 1)
        self.receptance, self.key, self.value, self.project = (
            nn.Linear(width, width, bias=False) for _ in range(4)
        )
        falling, place = 1 - self.layer / self.n_layer, torch.arange(width) / width
        self.mix_receptance = nn.Parameter(place ** (0.5 * falling))
        self.mix_key = nn.Parameter(place**falling)
        self.mix_value = nn.Parameter(place**falling + 0.3 * depth)
        self.log_rate = nn.Parameter(-5 + 8 * channels(width) ** (0.7 + 1.3 * depth))
        zigzag = 0.5 * ((torch.arange(width) + 1) % 3 - 1)
        self.bonus = nn.Parameter(math.log(0.3) + zigzag)

    def _mix(self, x: Tensor, cache: RecurrentState, chunk: int | None) -> Tensor:
        change, dtype = change_since_last(x, cache), torch.promote_types(x.dtype, torch.float32)
        layers = (
            (self.receptance, self.mix_receptance),
            (self.key, self.mix_key),
            (self.value, self.mix_value),
        )
        r, k, v = (layer(x + change * (1 - mix)).to(dtype) for layer, mix in layers)
        with full_precision(x):
            # Beyond exp(10) positions forget all at once, and the gradient would be infinite.
            log_rate, bonus = self.log_rate.to(dtype).clamp_max(10.0), self.bonus.to(dtype)
            if chunk is not None and fla.channel_refusal(k, v) is None:
                average, normaliser = kept(cache, k)
                mixed, *last = fla.bonus_average(k, v, log_rate, bonus, average, normaliser)
                keep(cache, *last)
            else:
                _, past, z = averages(k, v, log_rate.exp(), cache, chunk)
                mixed = torch.lerp(past, v, torch.sigmoid(bonus + k - z))
        return self.project((r.sigmoid() * mixed).to(x.dtype))


MIXER = RWKV4
