"""Short causal convolutions and the token shift, which look at the last few inputs only."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional

from attention.linear.mixer import RecurrentState


def with_previous(x: Tensor, count: int, cache: RecurrentState, name: str) -> Tensor:
    """Return x [B, L, C] behind the ``count`` inputs before it, zeros at the start.

    The last ``count`` inputs are kept in the cache under ``name``.
    """
    before = cache.tensors.get(name, x.new_zeros(x.shape[0], count, x.shape[2]))
    x = torch.cat([before, x], dim=1)
    # A copy: a view would keep the whole sequence in memory as long as the state lives.
    cache.tensors = {**cache.tensors, name: x[:, x.shape[1] - count :].clone()}
    return x


class ShortConvolution(nn.Module):
    """Causal convolution of each channel with its last ``size`` inputs, then an activation.

    Published with size 4 and SiLU: Gu and Dao 2023 (Mamba), taken over by Mamba-2 and DeltaNet.

    Args:
        channels: C.
        name: The name of the last inputs in the cache.
        bias: Whether channels have an offset.
        size: Inputs that an output sees.
        activation: Activation that follows.
    """

    def __init__(
        self,
        channels: int,
        name: str,
        bias: bool = False,
        size: int = 4,
        activation: Callable[[Tensor], Tensor] = functional.silu,
    ) -> None:
        super().__init__()
        self.name, self.activation = name, activation
        self.taps = nn.Conv1d(channels, channels, size, groups=channels, bias=bias)

    def forward(self, x: Tensor, cache: RecurrentState) -> Tensor:
        """Map [B, L, C] after ``cache`` to the same shape."""
        x = with_previous(x, self.taps.kernel_size[0] - 1, cache, self.name)
        return self.activation(self.taps(x.mT).mT)
