"""Gated linear attention against Yang et al. 2023: S_t = (alpha^T 1) * S_{t-1} + k^T v."""

import torch

from tests.attention.linear.published import cases, check


def published(mixer, sequence):
    """Loop over heads and positions."""
    low, high = mixer.forget

    heads = []
    for h in range(mixer.n_head):
        keys, values = slice(2 * h, 2 * h + 2), slice(4 * h, 4 * h + 4)
        state, rows = torch.zeros(2, 4, dtype=sequence.dtype), []
        for token in sequence:
            q, k = mixer.query.weight[keys] @ token, mixer.key.weight[keys] @ token
            v = mixer.value.weight[values] @ token
            logits = high.weight[keys] @ (low.weight @ token) + high.bias[keys]
            alpha = torch.sigmoid(logits) ** (1 / 16)
            state = alpha[:, None] * state + torch.outer(k, v)
            o = q @ state
            o = (o - o.mean()) / (o.var(unbiased=False) + 1e-5).sqrt()
            rows.append(o * mixer.norm.weight + mixer.norm.bias)
        heads.append(torch.stack(rows))
    gate = sequence @ mixer.gate.weight.T + mixer.gate.bias
    mixed = gate * torch.sigmoid(gate) * torch.cat(heads, dim=-1)
    return mixed @ mixer.project.weight.T


@cases
def test_both_forms_are_the_published_recurrence(length, seen):
    check("gla", published, length, seen)
