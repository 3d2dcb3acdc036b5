"""Retention: s_n = gamma s_{n-1} + (K_n e^{-i n theta})^T V_n, in complex numbers."""

import torch
from torch.nn.functional import silu

from tests.attention.linear.published import built, cases, check


def published(mixer, sequence):
    """Loop over heads and positions; a pair of channels is a complex number."""
    frequencies = torch.tensor([1.0, 0.01], dtype=torch.float64)

    heads = []
    for h in range(mixer.n_head):
        gamma = 1 - 2.0 ** (-5 - h)
        keys, values = slice(4 * h, 4 * h + 4), slice(8 * h, 8 * h + 8)
        state, rows = sequence.new_zeros(2, 8).to(torch.complex128), []
        for n, token in enumerate(sequence):
            turn = torch.exp(1j * n * frequencies)
            q, k = mixer.query.weight[keys] @ token, mixer.key.weight[keys] @ token
            q, k = torch.complex(q[:2], q[2:]) * turn, torch.complex(k[:2], k[2:]) * turn
            v = mixer.value.weight[values] @ token
            state = gamma * state + torch.outer(k.conj() / 2, v.to(torch.complex128))
            o = (q @ state).real
            rows.append((o - o.mean()) / (o.var(unbiased=False) + 1e-5).sqrt())
        heads.append(torch.stack(rows))
    gate = silu(sequence @ mixer.gate.weight.T)
    return (gate * torch.cat(heads, dim=-1)) @ mixer.project.weight.T


@cases
def test_both_forms_are_the_published_recurrence(length, seen):
    check("retnet", published, length, seen)


def test_the_slowest_head_remembers_and_the_first_forgets():
    mixer = built("retnet", head_dim=4)
    x = torch.randn(1, 200, 8, dtype=torch.float64, requires_grad=True)
    heads = mixer.project.weight.new_zeros(8, 16)
    influence = []
    for h in range(2):
        with torch.no_grad():
            mixer.project.weight.copy_(heads)
            mixer.project.weight[:, 8 * h : 8 * h + 8] = 1.0
        (gradient,) = torch.autograd.grad(mixer(x)[:, -1].sum(), x)
        influence.append(gradient[0, :100].norm() / gradient[0, -50:].norm())
    assert influence[0] < influence[1]
