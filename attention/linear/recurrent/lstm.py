"""Long short-term memory (Hochreiter and Schmidhuber 1997; Gers et al. 2000)."""

from __future__ import annotations

from torch import Tensor, nn

from attention.linear.recurrent._cell import Cell


class LSTM(Cell):
    """c_t = f_t c_{t-1} + i_t tanh(g_t), h_t = o_t tanh(c_t), the layer of torch.nn.

    The gates i, f and o are sigmoids of linear functions of x_t and h_{t-1}; start values are
    torch's.
    """

    name = "lstm"
    source = "Hochreiter and Schmidhuber 1997; Gers et al. 2000 (forget gate); torch.nn.LSTM"
    about = "Long short-term memory: a gated recurrent network with a cell."
    kept = "2 H D"
    deviations = (
        "a block of a GPT, behind a norm and beside a residual stream and an MLP. The recurrent "
        "world models of Vafa et al. 2025 are bare stacks of torch.nn: mlp none comes nearest."
    )
    module = nn.LSTM
    states = ("hidden", "cell")

    def _step(self, gates: Tensor, states: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        enter, forget, new, leave = gates.chunk(4, dim=-1)
        cell = forget.sigmoid() * states[1] + enter.sigmoid() * new.tanh()
        return leave.sigmoid() * cell.tanh(), cell


MIXER = LSTM
