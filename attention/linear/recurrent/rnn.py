"""The simple recurrent network (Elman 1990)."""

from __future__ import annotations

from torch import Tensor, nn

from attention.linear.recurrent._cell import Cell


class RNN(Cell):
    """h_t = tanh(x_t W + h_{t-1} U + b), the layer of torch.nn and its start values."""

    name = "rnn"
    source = "Elman 1990, Finding structure in time; torch.nn.RNN"
    about = "A simple recurrent network: its state, a tanh of the input and the last state."
    kept = "H D"
    deviations = (
        "a block of a GPT, behind a norm and beside a residual stream and an MLP. The recurrent "
        "world models of Vafa et al. 2025 are bare stacks of torch.nn: mlp none comes nearest."
    )
    module = nn.RNN
    states = ("hidden",)

    def _step(self, gates: Tensor, states: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        return (gates.tanh(),)


MIXER = RNN
