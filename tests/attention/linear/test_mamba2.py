"""Mamba-2: h_t = a_t h_{t-1} + dt_t x_t B_t^T, y_t = h_t C_t + D x_t."""

import torch
from torch.nn.functional import silu, softplus

from tests.attention.linear.published import (
    cases,
    check,
    short_convolution,
)


def published(mixer, sequence):
    """Loop over heads and positions; B and C, of 3 channels, belong to all heads."""
    inputs = short_convolution(mixer.recent, sequence @ mixer.inputs.weight.T)
    heads = []
    for h in range(mixer.n_head):
        state, rows = sequence.new_zeros(8, 3), []
        for t, token in enumerate(sequence):
            value, b, c = inputs[t, 8 * h : 8 * h + 8], inputs[t, 16:19], inputs[t, 19:22]
            step = softplus(mixer.decay.step.weight[h] @ token + mixer.decay.step_bias[h])
            a = torch.exp(-step * torch.exp(mixer.decay.log_rate[h]))
            state = a * state + step * torch.outer(value, b)
            rows.append(state @ c + mixer.skip[h] * value)
        heads.append(torch.stack(rows))
    y = torch.cat(heads, dim=-1) * silu(sequence @ mixer.gate.weight.T)
    y = y / (y.square().mean(-1, keepdim=True) + 1e-5).sqrt() * mixer.norm.weight
    return y @ mixer.project.weight.T


@cases
def test_both_forms_are_the_published_recurrence(length, seen):
    check("mamba2", published, length, seen, state=3)
