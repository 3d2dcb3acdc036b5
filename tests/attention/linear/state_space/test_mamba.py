"""Mamba: h_t = exp(dt_t A) h_{t-1} + dt_t B_t x_t, y_t = C_t h_t + D x_t."""

import pytest
import torch
from torch.nn.functional import silu, softplus

from attention import linear
from tests.attention.linear.published import (
    check,
    few_cases,
    short_convolution,
)


def published(mixer, sequence):
    """Loop over positions; 3 states a channel, steps of rank 1."""
    inputs = short_convolution(mixer.recent, sequence @ mixer.inputs.weight.T)
    states, rows = sequence.new_zeros(16, 3), []
    for t, token in enumerate(sequence):
        chosen = mixer.select.weight @ inputs[t]
        low, b, c = chosen[:1], chosen[1:4], chosen[4:]
        step = softplus(mixer.step @ low + mixer.step_bias)[:, None]
        factor = torch.exp(-step * torch.exp(mixer.log_rate))
        states = factor * states + step * torch.outer(inputs[t], b)
        y = states @ c + mixer.skip * inputs[t]
        rows.append(y * silu(mixer.gate.weight @ token))
    return torch.stack(rows) @ mixer.project.weight.T


@few_cases
def test_both_forms_are_the_published_recurrence(length, seen):
    check("mamba", published, length, seen, state=3)


def test_start_values_are_the_published_ones():
    torch.manual_seed(0)
    mixer = linear.build("mamba", n_head=4, head_dim=40)
    assert mixer.rank == 10
    assert 0.9 < mixer.step.abs().max() * 10**0.5 <= 1
    steps = softplus(mixer.step_bias.detach())
    assert steps.min() == pytest.approx(1e-3, rel=0.05)
    assert steps.max() == pytest.approx(0.1, rel=0.05)
    assert mixer.log_rate[3].exp().tolist() == pytest.approx(list(range(1, 17)))
    assert bool((mixer.skip == 1).all())
