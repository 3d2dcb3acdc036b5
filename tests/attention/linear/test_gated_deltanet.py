"""Gated DeltaNet: S_t = S_{t-1} alpha_t (1 - beta_t k_t k_t^T) + beta_t v_t k_t^T."""

import torch
from torch.nn.functional import silu, softplus

from tests.attention.linear.published import (
    cases,
    check,
    short_convolution,
)


def published(mixer, sequence):
    """Loop over heads and positions, with S as [value, key] as in the paper."""
    q = short_convolution(mixer.recent_query, sequence @ mixer.query.weight.T)
    k = short_convolution(mixer.recent_key, sequence @ mixer.key.weight.T)
    v = short_convolution(mixer.recent_value, sequence @ mixer.value.weight.T)
    heads = []
    for h in range(mixer.n_head):
        state, rows = sequence.new_zeros(8, 4), []
        keys, values = slice(4 * h, 4 * h + 4), slice(8 * h, 8 * h + 8)
        for t, token in enumerate(sequence):
            query = q[t, keys] / (q[t, keys].square().sum() + 1e-6).sqrt()
            key = k[t, keys] / (k[t, keys].square().sum() + 1e-6).sqrt()
            beta = torch.sigmoid(mixer.rate.weight[h] @ token)
            step = softplus(mixer.decay.step.weight[h] @ token + mixer.decay.step_bias[h])
            alpha = torch.exp(-torch.exp(mixer.decay.log_rate[h]) * step)
            erase = torch.eye(4, dtype=sequence.dtype) - beta * torch.outer(key, key)
            state = state @ (alpha * erase) + beta * torch.outer(v[t, values], key)
            o = state @ query
            rows.append(o / (o.square().mean() + 1e-5).sqrt() * mixer.norm.weight)
        heads.append(torch.stack(rows))
    gate = silu(sequence @ mixer.gate.weight.T)
    return (torch.cat(heads, dim=-1) * gate) @ mixer.project.weight.T


@cases
def test_both_forms_are_the_published_recurrence(length, seen):
    check("gated_deltanet", published, length, seen)
