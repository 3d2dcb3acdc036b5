"""RNN and LSTM against their equations."""

import math

import pytest
import torch

from attention import linear
from tests.attention.linear.published import check, few_cases


def sigmoid(z):
    return 1 / (1 + torch.exp(-z))


def summed(cell, token, hidden):
    """Return what enters the units: weights of the input and of the last output, and offsets."""
    entered = cell.weight_ih_l0 @ token + cell.bias_ih_l0
    return entered + cell.weight_hh_l0 @ hidden + cell.bias_hh_l0


def rnn(mixer, sequence):
    hidden, rows = sequence.new_zeros(8), []
    for token in sequence:
        hidden = torch.tanh(summed(mixer.cell, token, hidden))
        rows.append(hidden)
    return torch.stack(rows)


def lstm(mixer, sequence):
    """Rows of the weights are those of the gates i, f, g and o, 8 units each."""
    hidden, cell, rows = sequence.new_zeros(8), sequence.new_zeros(8), []
    for token in sequence:
        enter, forget, new, leave = summed(mixer.cell, token, hidden).view(4, 8)
        cell = sigmoid(forget) * cell + sigmoid(enter) * torch.tanh(new)
        hidden = sigmoid(leave) * torch.tanh(cell)
        rows.append(hidden)
    return torch.stack(rows)


@pytest.mark.parametrize(
    ("name", "equations"), [("rnn", rnn), pytest.param("lstm", lstm, marks=pytest.mark.full)]
)
@few_cases
def test_both_forms_are_the_published_recurrence(name, equations, length, seen):
    check(name, equations, length, seen)


@pytest.mark.parametrize("name", ["rnn", "lstm"])
def test_start_values_are_those_of_torch(name):
    torch.manual_seed(0)
    bound = 1 / math.sqrt(64)
    for weight in linear.build(name, n_head=4, head_dim=16).cell.parameters():
        assert 0.9 * bound < weight.abs().max() <= bound
