"""The Toeplitz neural network (Qin et al. 2023, arXiv:2305.04749)."""

from __future__ import annotations

import itertools
import math
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional

from attention.linear._fft import convolved, with_past
from attention.linear.mixer import Mixer, RecurrentState
from attention.parts.precision import full_precision

EXPAND = 3
"""Channels of the gate and of the operator per channel of the model."""
DECAY = 0.99
"""Decay lambda of a coefficient per position."""
HIDDEN, LAYERS = 64, 6
"""Channels and hidden layers of the relative position encoder.

All as in the authors' causal language models (``transformer_tnn_v2_decay_99_pre_lm``).
"""


class ToeplitzNetwork(Mixer):
    """O (SiLU(x U) * T SiLU(x V)), T_ti = lambda^(t - i) r(t - i), one r for each channel.

    T is a Toeplitz matrix, a convolution, of coefficients that a small network makes of the number
    t - i alone (relative position encoder); the decay lambda lets it read longer sequences than
    it was trained on. Heads only set the width. An encoder has coefficients of both signs of
    t - i, and lambda^|t - i|.

    Arguments:
        state: N, coefficients of an output: those of distances from N on are 0.
        causal: False for the whole matrix, in which each position sees all.
    """

    name = "tnn"
    source = "Qin et al. 2023 (arXiv:2305.04749), Sect. 3: gated Toeplitz unit"
    about = "A gated convolution whose taps, made of the distance by a small network, decay."
    kept = "3 H D (N - 1)"
    arguments: ClassVar = {"state": 1024, "causal": True}
    deviations = (
        "the gated Toeplitz unit alone, beside the GPT's MLP in place of the paper's GLU. An "
        "output sees N inputs, which bounds the state; what the paper has beyond is below 0.99^N "
        "of the encoder's number, 3e-5 at 1,024."
    )

    def __init__(self, n_head: int, head_dim: int, **args: Any) -> None:
        super().__init__(n_head, head_dim, **args)
        wide = EXPAND * self.width
        self.gate, self.inputs = (nn.Linear(self.width, wide) for _ in range(2))
        self.coefficients = RelativePositionEncoder(wide)
        self.project = nn.Linear(wide, self.width)

    def _mix(self, x: Tensor, cache: RecurrentState, chunk: int | None) -> Tensor:
        v = functional.silu(self.inputs(x)).to(torch.promote_types(x.dtype, torch.float32))
        with full_precision(x):
            if self.causal:
                entered = with_past(v, self.args["state"] - 1, cache, "recent_inputs").mT
            else:
                entered = v.mT
            count = min(entered.shape[-1], self.args["state"])
            ahead = 0 if self.causal else count - 1
            distance = torch.arange(-ahead, count, device=x.device, dtype=v.dtype)
            taps = self.coefficients(distance) * (math.log(DECAY) * distance.abs()).exp()
            # The first tap is of the input furthest ahead: sums are asked for so much later.
            entered = functional.pad(entered, (0, ahead)) if ahead else entered
            mixed = convolved(entered, taps, x.shape[1], chunk).mT
        return self.project(functional.silu(self.gate(x)) * mixed.to(x.dtype))


class RelativePositionEncoder(nn.Module):
    """A network of a number: a linear layer, six of norm, ReLU and a linear layer, and the last.

    The norm divides by the root of the mean square and has no weights.

    Args:
        channels: Numbers that it makes.
    """

    def __init__(self, channels: int) -> None:
        super().__init__()
        sizes = (1, *[HIDDEN] * (LAYERS + 1), channels)
        # Convolutions of size 1, so that a model's initialisation of linear layers leaves them.
        self.layers = nn.ModuleList(
            nn.Conv1d(before, after, 1) for before, after in itertools.pairwise(sizes)
        )

    def forward(self, distance: Tensor) -> Tensor:
        """Return [channels, L] of distances [L]."""
        z = distance[None]
        for place, layer in enumerate(self.layers):
            assert isinstance(layer, nn.Conv1d)
            assert layer.bias is not None
            if place:
                z = functional.relu(functional.rms_norm(z.mT, z.shape[:1], eps=1e-8).mT)
            weight, bias = layer.weight.to(distance.dtype), layer.bias.to(distance.dtype)
            z = weight.squeeze(-1) @ z + bias[:, None]
        return z


MIXER = ToeplitzNetwork
