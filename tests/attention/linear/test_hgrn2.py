"""HGRN2: h_t = diag(f_t) h_{t-1} + (1 - f_t) i_t^T, y_t = o_t h_t."""

import pytest
import torch
from torch.nn.functional import silu

from tests.attention.linear.published import cases, check


def one_way(mixer, sequence):
    """Return what the heads read of their states, forwards."""
    bound = mixer.lower_bound
    heads = []
    for h in range(mixer.n_head):
        part, state, rows = slice(4 * h, 4 * h + 4), sequence.new_zeros(4, 4), []
        for token in sequence:
            forget = torch.sigmoid(mixer.forget.weight[part] @ token)
            forget = bound + (1 - bound) * forget
            written = torch.outer(1 - forget, mixer.value.weight[part] @ token)
            state = torch.diag(forget) @ state + written
            rows.append(silu(mixer.query.weight[part] @ token) @ state)
        heads.append(torch.stack(rows))
    return torch.cat(heads, dim=-1)


def published(mixer, sequence):
    """Loop over heads and positions."""
    y = one_way(mixer, sequence)
    if not mixer.causal:
        y = y + one_way(mixer, sequence.flip(0)).flip(0)
    y = y / (y.square().mean(-1, keepdim=True) + 1e-5).sqrt() * mixer.norm.weight
    return y @ mixer.project.weight.T


@cases
def test_both_forms_are_the_published_recurrence(length, seen):
    check("hgrn2", published, length, seen, lower_bound=0.7 if length == 33 else 0.0)


@pytest.mark.parametrize("length", [1, 2, 9, 33])
def test_an_encoder_adds_the_sums_of_both_directions(length):
    check("hgrn2", published, length, 0, lower_bound=0.3, causal=False)
