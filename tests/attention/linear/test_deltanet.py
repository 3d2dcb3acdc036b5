"""DeltaNet against Schlag et al. 2021: the value of a key is replaced, W + beta (v - W k) k^T."""

import torch

from tests.attention.linear.published import (
    built,
    cases,
    check,
    short_convolution,
)


def published(mixer, sequence):
    """Loop over heads and positions."""
    q = short_convolution(mixer.recent_query, sequence @ mixer.query.weight.T)
    k = short_convolution(mixer.recent_key, sequence @ mixer.key.weight.T)
    v = short_convolution(mixer.recent_value, sequence @ mixer.value.weight.T)
    heads = []
    for h in range(mixer.n_head):
        memory, rows, part = sequence.new_zeros(4, 4), [], slice(4 * h, 4 * h + 4)
        for t, token in enumerate(sequence):
            query = q[t, part] / (q[t, part].square().sum() + 1e-6).sqrt()
            key = k[t, part] / (k[t, part].square().sum() + 1e-6).sqrt()
            beta = torch.sigmoid(mixer.rate.weight[h] @ token)
            old = memory @ key
            new = beta * v[t, part] + (1 - beta) * old
            memory = memory - torch.outer(old, key) + torch.outer(new, key)
            o = memory @ query
            rows.append(o / (o.square().mean() + 1e-5).sqrt() * mixer.norm.weight)
        heads.append(torch.stack(rows))
    return torch.cat(heads, dim=-1) @ mixer.project.weight.T


@cases
def test_both_forms_are_the_published_recurrence(length, seen):
    check("deltanet", published, length, seen)


def test_a_repeated_key_answers_with_its_last_value():
    mixer = built("deltanet", head_dim=4)
    with torch.no_grad():
        mixer.rate.weight.zero_()
        for layer in (mixer.recent_query, mixer.recent_key, mixer.recent_value):
            layer.taps.weight.zero_()
            layer.taps.weight[:, 0, -1] = 1.0
        mixer.query.weight.copy_(mixer.key.weight)
    x = torch.randn(1, 1, 8, dtype=torch.float64).expand(1, 60, 8)
    other = torch.randn(1, 60, 8, dtype=torch.float64)
    # With beta = 1/2 what came before the repeated token has faded to 2^-60.
    alone, later = mixer(x), mixer(torch.cat([other, x], dim=1))[:, 60:]
    assert (alone - later)[:, 5].abs().max() > 1e-4
    torch.testing.assert_close(alone[:, -1], later[:, -1], rtol=0, atol=1e-9)
