"""The Toeplitz network: coefficients number by number, sums tap by tap."""

import torch
from torch.nn.functional import silu

from attention import linear
from tests.attention.linear.published import built, check, few_cases


def coefficient(network, distance):
    """Return r(distance) of the relative position encoder, layer by layer."""
    first, *others = network.layers
    z = first.weight[:, 0, 0] * distance + first.bias
    for layer in others:
        z = z / (z.square().mean() + 1e-8).sqrt()
        z = layer.weight[:, :, 0] @ z.clamp_min(0) + layer.bias
    return z


def published(mixer, sequence):
    count = mixer.args["state"]
    taps = [0.99**n * coefficient(mixer.coefficients, float(n)) for n in range(count)]
    v = silu(sequence @ mixer.inputs.weight.T + mixer.inputs.bias)
    u = silu(sequence @ mixer.gate.weight.T + mixer.gate.bias)
    rows = []
    for t in range(len(sequence)):
        total = sum(taps[n] * v[t - n] for n in range(min(t + 1, count)))
        rows.append(mixer.project.weight @ (u[t] * total) + mixer.project.bias)
    return torch.stack(rows)


@few_cases
def test_both_forms_are_the_published_sum(length, seen):
    check("tnn", published, length, seen, state=5 if length < 33 else 40)


def test_a_coefficient_belongs_to_a_distance_whatever_the_length():
    mixer, x = built("tnn"), torch.randn(1, 30, 8, dtype=torch.float64)
    torch.testing.assert_close(mixer(x)[:, :7], mixer(x[:, :7]), rtol=0, atol=1e-10)


def test_it_has_the_published_sizes():
    mixer = linear.build("tnn", n_head=2, head_dim=8)
    shapes = [tuple(layer.weight.shape[:2]) for layer in mixer.coefficients.layers]
    assert shapes == [(64, 1), *[(64, 64)] * 6, (48, 64)]
    assert mixer.inputs.weight.shape == (48, 16)
