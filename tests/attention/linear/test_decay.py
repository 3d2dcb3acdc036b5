"""The decayed sum, chunk by chunk and position by position, against loops over its equation."""

import itertools

import pytest
import torch

from attention.linear import _decay
from tests.attention.linear.published import CHUNKS, LENGTHS, with_gradients

BATCH, HEADS, KEYS, VALUES = 1, 2, 4, 3


def inputs(length, decays, *, shared=False, dtype=torch.float64):
    generator = torch.Generator().manual_seed(length)

    def random(*shape):
        return torch.randn(shape, generator=generator, dtype=torch.float64)

    key_heads = 1 if shared else HEADS
    tensors = [
        random(BATCH, key_heads, length, KEYS),
        random(BATCH, key_heads, length, KEYS),
        random(BATCH, HEADS, length, VALUES),
        -2 * random(BATCH, HEADS, length, decays).sigmoid(),
        random(BATCH, HEADS, KEYS, VALUES),
    ]
    return [x.to(dtype).requires_grad_() for x in tensors]


def by_loops(q, k, v, log_decay, state, bonus=None):
    """S_t = diag(a_t) S_{t-1} + k_t^T v_t; o_t = q_t S_t, or q_t (S_{t-1} + diag(u) k_t^T v_t)."""
    outs, states = [], []
    for b, h in itertools.product(range(BATCH), range(HEADS)):
        kh = min(h, k.shape[1] - 1)
        s, rows = state[b, h], []
        for t in range(q.shape[2]):
            write = torch.outer(k[b, kh, t], v[b, h, t])
            before = s
            s = log_decay[b, h, t].exp().expand(KEYS)[:, None] * s + write
            rows.append(q[b, kh, t] @ (s if bonus is None else before + bonus[h][:, None] * write))
        outs.append(torch.stack(rows))
        states.append(s)
    shape = (BATCH, HEADS, -1, VALUES)
    return torch.stack(outs).view(shape), torch.stack(states).view(shape)


@pytest.mark.parametrize(
    "kind", ["scalar", "channel", "scalar, shared keys", "bonus", "scalar bonus"]
)
@pytest.mark.parametrize("length", LENGTHS)
def test_equals_the_recurrence_with_an_initial_state(length, kind):
    leaves = inputs(length, 1 if "scalar" in kind else KEYS, shared="shared" in kind)
    extra = {}
    if "bonus" in kind:
        extra["bonus"] = torch.randn(HEADS, KEYS, dtype=torch.float64, requires_grad=True)
    everything = [*leaves, *extra.values()]
    expected = with_gradients(by_loops(*leaves, **extra), everything)
    found = [with_gradients(_decay.recurrent(*leaves, **extra), everything)]
    for chunk in CHUNKS:
        out = _decay.chunked(*leaves, chunk, **extra)
        found.append(with_gradients(out, everything))
    for one in found:
        for actual, wanted in zip(one, expected, strict=True):
            torch.testing.assert_close(actual, wanted, rtol=1e-10, atol=1e-10)


@pytest.mark.full
@pytest.mark.parametrize("decays", [1, KEYS])
@pytest.mark.parametrize("pattern", ["all -50", "-50 and 0", "-50 once", "all 0", "all -1e-6"])
def test_extreme_decays_in_float32(decays, pattern):
    leaves = inputs(100, decays, dtype=torch.float32)
    with torch.no_grad():
        decay = leaves[3]
        decay.zero_()
        if pattern == "all -50":
            decay.fill_(-50.0)
        elif pattern == "-50 and 0":
            decay[torch.rand(decay.shape, generator=torch.Generator().manual_seed(0)) < 0.5] = -50.0
        elif pattern == "-50 once":
            decay.fill_(-1e-3)
            decay[:, :, 20] = -50.0
        elif pattern == "all -1e-6":
            decay.fill_(-1e-6)
    exact = [x.detach().double().requires_grad_() for x in leaves]
    expected = with_gradients(by_loops(*exact), exact)
    for chunk in (16, 100):
        found = with_gradients(_decay.chunked(*leaves, chunk), leaves)
        for actual, wanted in zip(found, expected, strict=True):
            assert actual.isfinite().all()
            scale = wanted.abs().max()
            torch.testing.assert_close(actual.double() / scale, wanted / scale, rtol=0, atol=3e-6)


@pytest.mark.parametrize("decays", [1, KEYS])
def test_small_decays_survive_beside_large_ones(decays):
    """Sums of -50 have rounding errors of 1e-4; a pair that does not cross them must not."""
    q, k, v, decay, state = inputs(128, decays, dtype=torch.float32)
    with torch.no_grad():
        decay.fill_(-1e-3)
        decay[:, :, :100] = -50.0
    exact = [x.detach().double() for x in (q, k, v, decay, state)]
    found, _ = _decay.chunked(q, k, v, decay, state, 128)
    expected, _ = by_loops(*exact)
    late = slice(101, None)
    scale = expected[:, :, late].abs().max()
    error = (found.double() - expected)[:, :, late].abs().max() / scale
    assert error < 1e-6
