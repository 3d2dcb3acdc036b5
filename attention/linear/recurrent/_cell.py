"""Recurrent cells of torch.nn as mixers."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch.func import functional_call

from attention.linear.mixer import Mixer, RecurrentState
from attention.parts.precision import full_precision


class Cell(Mixer):
    """A layer of torch.nn, as wide as the model, whose outputs are the mixer's.

    Heads only set the width. There is nothing parallel about these: the many positions at once of
    ``forward`` are torch's loop over them, which on a GPU is one kernel.
    """

    module: ClassVar[Callable[..., nn.RNNBase]]
    """Class of the layer."""
    states: ClassVar[tuple[str, ...]]
    """Names of the layer's states in the cache, the output first."""

    def __init__(self, n_head: int, head_dim: int, **args: Any) -> None:
        super().__init__(n_head, head_dim, **args)
        self.cell = self.module(self.width, self.width, batch_first=True)

    @abstractmethod
    def _step(self, gates: Tensor, states: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        """Return the next states, [B, width] each, from the inputs of the nonlinearities."""

    def _mix(self, x: Tensor, cache: RecurrentState, chunk: int | None) -> Tensor:
        inputs = x.to(torch.promote_types(x.dtype, torch.float32))
        weights = {name: weight.to(inputs.dtype) for name, weight in self.cell.named_parameters()}
        zeros = inputs.new_zeros(len(x), self.width)
        states = tuple(cache.tensors.get(name, zeros) for name in self.states)
        with full_precision(x):
            if chunk is None:
                found = []
                for now in (inputs @ weights["weight_ih_l0"].T).unbind(1):
                    recurrent = states[0] @ weights["weight_hh_l0"].T
                    offsets = weights["bias_ih_l0"] + weights["bias_hh_l0"]
                    states = self._step(now + recurrent + offsets, states)
                    found.append(states[0])
                out = torch.stack(found, dim=1)
            else:
                # The layer's states are [layers, B, width]; a lone one is no tuple.
                given = tuple(state[None] for state in states)
                asked = (inputs, given if len(given) > 1 else given[0])
                out, last = functional_call(self.cell, weights, asked)
                states = tuple(state[0] for state in (last if len(given) > 1 else (last,)))
        kept = zip(self.states, (state.clone() for state in states), strict=True)
        cache.tensors = {**cache.tensors, **dict(kept)}
        return out.to(x.dtype)
