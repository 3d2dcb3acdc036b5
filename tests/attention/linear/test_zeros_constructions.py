"""Mappings that one ZeroS layer computes exactly and no softmax layer can (ZeroS 2025, A.4)."""

import numpy as np
import pytest
import torch

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
