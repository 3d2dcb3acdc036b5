"""The corrected sum, chunk by chunk and position by position, against loops over its equation."""

import itertools

import pytest
import torch

from attention.linear import _delta
from tests.attention.linear.published import CHUNKS, LENGTHS, with_gradients

BATCH, HEADS, KEYS, VALUES = 1, 2, 4, 3


def inputs(length, decays, dtype=torch.float64):
    generator = torch.Generator().manual_seed(length)

    def random(*shape):
        return torch.randn(shape, generator=generator, dtype=torch.float64)

    q, k, read, write = (random(BATCH, HEADS, length, KEYS) for _ in range(4))
    read = torch.nn.functional.normalize(read, dim=-1)
    write = -torch.nn.functional.normalize(read + 0.3 * write, dim=-1)
    tensors = [
        q,
        k,
        random(BATCH, HEADS, length, VALUES),
        -random(BATCH, HEADS, length, decays).sigmoid(),
        read,
        write,
        random(BATCH, HEADS, KEYS, VALUES),
    ]
    return [x.to(dtype).requires_grad_() for x in tensors]


def by_loops(q, k, v, log_decay, read, write, state):
    """S_t = (diag(a_t) + b_t^T r_t) S_{t-1} + k_t^T v_t, o_t = q_t S_t."""
    outs, states = [], []
    for at in itertools.product(range(BATCH), range(HEADS)):
        s, rows = state[at], []
        for t in range(q.shape[2]):
            decay = torch.diag(log_decay[at][t].exp().expand(KEYS))
            s = (decay + torch.outer(write[at][t], read[at][t])) @ s
            s = s + torch.outer(k[at][t], v[at][t])
            rows.append(q[at][t] @ s)
        outs.append(torch.stack(rows))
        states.append(s)
    shape = (BATCH, HEADS, -1, VALUES)
    return torch.stack(outs).view(shape), torch.stack(states).view(shape)


@pytest.mark.parametrize("decays", [1, KEYS])
@pytest.mark.parametrize("length", LENGTHS)
def test_equals_the_recurrence_with_an_initial_state(length, decays):
    leaves = inputs(length, decays)
    expected = with_gradients(by_loops(*leaves), leaves)
    found = [with_gradients(_delta.recurrent(*leaves), leaves)]
    found += [with_gradients(_delta.chunked(*leaves, chunk), leaves) for chunk in CHUNKS]
    for one in found:
        for actual, wanted in zip(one, expected, strict=True):
            scale = wanted.abs().max().clamp_min(1.0)
            torch.testing.assert_close(actual / scale, wanted / scale, rtol=0, atol=1e-11)


@pytest.mark.full
@pytest.mark.parametrize("decays", [1, KEYS])
@pytest.mark.parametrize("rate", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("log_decay", [-50.0, 0.0])
def test_extreme_decays_and_rates_in_float32(decays, rate, log_decay):
    """The published delta rule at its ends: nothing, or all of the old value, is replaced."""
    q, k, v, decay, read, _, state = inputs(100, decays, torch.float32)
    read = read.detach().requires_grad_()
    with torch.no_grad():
        decay.fill_(log_decay)
        write = -rate * decay.exp() * read
        k = rate * read if rate else k
    leaves = [x.detach().requires_grad_() for x in (q, k, v, decay, read, write, state)]
    exact = [x.detach().double().requires_grad_() for x in leaves]
    expected = with_gradients(by_loops(*exact), exact)
    for chunk in (16, 100):
        found = with_gradients(_delta.chunked(*leaves, chunk), leaves)
        for actual, wanted in zip(found, expected, strict=True):
            assert actual.isfinite().all()
            scale = wanted.abs().max().clamp_min(1.0)
            # Float32 over 100 steps: 4.4e-6 measured.
            torch.testing.assert_close(actual.double() / scale, wanted / scale, rtol=0, atol=2e-5)
