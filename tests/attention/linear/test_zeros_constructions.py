"""Mappings that one ZeroS layer computes exactly and no softmax layer can (ZeroS 2025, A.4)."""

import numpy as np
import pytest
import torch
from scipy.optimize import linprog

import attention

LENGTH = 6
TARGETS = {
    "difference of two tokens": np.array([1, -1, 0, 0, 0, 0]),
    "difference from the mean": np.array([1, 0, 0, 0, 0, 0]) - 1 / LENGTH,
    "alternating sum": np.array([1, -1, 1, -1, 1, -1]),
}
LOGITS = {
    "difference of two tokens": [1, -1, 0, 0, 0, 0],
    "difference from the mean": [1, 0, 0, 0, 0, 0],
    "alternating sum": [1, -1, 1, -1, 1, -1],
}


def zeros_layer():
    """One head that reads values from channels 0 to 4, a logit from 5 and a constant from 6.

    The first order alone is left by the gates, at sigma1 = 1/2; a prior that outweighs all tokens
    makes the logit linear in the input; queries and keys are one vector, in channels which so
    large a base does not turn.
    """
    layer = attention.build("zeros", n_head=1, head_dim=8, norm=False, rope_base=1e100).double()
    with torch.no_grad():
        for parameter in layer.parameters():
            parameter.zero_()
        for channel in range(5):
            layer.value.weight[channel, channel] = 1
            layer.project.weight[channel, channel] = 1
        layer.query.weight[3, 6] = layer.key.weight[3, 6] = 1
        layer.logit.weight[0, 5] = -(8**0.5)
        layer.mu[0, 0] = 1
        layer.tau.fill_(100)
        layer.gates.weight[1, 6] = -1000  # sigmah = 0
    return layer


def sequence(name, values):
    """Return inputs [1, L, 8]: values, what each token's logit shall be, and a constant."""
    x = torch.zeros(1, LENGTH, 8, dtype=torch.float64)
    x[0, :, :5] = torch.tensor(values)
    x[0, :, 5] = 2 * LENGTH * torch.tensor(LOGITS[name])  # r = sigma1 (s - mean) / L
    x[0, :, 6] = 1
    return x


@pytest.mark.parametrize("name", TARGETS)
def test_one_zero_sum_layer_computes_it_exactly(name):
    values = np.random.default_rng(0).standard_normal((LENGTH, 5))
    found = zeros_layer()(sequence(name, values))[0, -1, :5].detach().numpy()
    np.testing.assert_allclose(found, TARGETS[name] @ values, rtol=0, atol=1e-12)


def excess(name):
    """Return how far the target is beyond every convex combination of some values."""
    values = np.sign(TARGETS[name])[:, None] * np.ones((1, 5))
    return values, (TARGETS[name] @ values - values.max(axis=0))[0]


@pytest.mark.parametrize("name", TARGETS)
def test_no_convex_combination_is_there(name):
    values, beyond = excess(name)
    target = TARGETS[name] @ values
    assert beyond > 0.5
    weights = linprog(  # does any convex combination give the target?
        np.zeros(LENGTH),
        A_eq=np.vstack([values.T, np.ones(LENGTH)]),
        b_eq=[*target, 1],
        bounds=(0, None),
    )
    assert weights.status == 2, "infeasible"


@pytest.mark.parametrize("name", TARGETS)
def test_no_softmax_layer_comes_nearer_than_the_bound(name):
    values, beyond = excess(name)
    x, nearest = sequence(name, values), np.inf
    for seed in range(50):
        torch.manual_seed(seed)
        layer = attention.build("softmax", n_head=1, head_dim=8).double()
        with torch.no_grad():
            layer.value.weight.copy_(torch.eye(8))
            layer.project.weight.copy_(torch.eye(8))
            layer.query.weight.mul_(seed)
        out = layer(x)[0, -1, :5].detach().numpy()
        nearest = min(nearest, np.abs(out - TARGETS[name] @ values).min())
    assert nearest >= beyond - 1e-12
    assert nearest < beyond + 0.5, "some layer comes near the bound"


@pytest.mark.parametrize("name", TARGETS)
def test_no_softmax_layer_of_any_weights_computes_it(name):
    """Tokens with equal values c: the rows of softmax sum to 1, so every head mixes them to c.

    A layer then returns M c with one matrix M = sum over heads of W_V W_O, whatever its queries
    and keys. Weights that sum to 0 ask for 0 at every c, so M = 0: the layer is 0 everywhere.
    """
    target = TARGETS[name]
    assert abs(target.sum()) < 1e-15
    for n_head in (1, 2, 4):
        torch.manual_seed(n_head)
        layer = attention.build("softmax", n_head=n_head, head_dim=8 // n_head).double()
        joined = layer.project.weight @ layer.value.weight
        values = torch.randn(8, dtype=torch.float64)
        x = values.expand(1, LENGTH, 8)
        out = layer(x)[0, -1]
        torch.testing.assert_close(out, joined @ values)
        assert out.abs().max() > 1e-2, "where the target is 0"
