"""The Toeplitz network: coefficients number by number, sums tap by tap."""

import pytest
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


@pytest.mark.parametrize(("length", "state"), [(1, 5), (4, 5), (9, 5), (9, 1024)])
def test_an_encoder_is_the_whole_matrix(length, state):
    mixer = built("tnn", causal=False, state=state)
    x = torch.randn(length, 8, dtype=torch.float64)
    v = silu(x @ mixer.inputs.weight.T + mixer.inputs.bias)
    u = silu(x @ mixer.gate.weight.T + mixer.gate.bias)
    rows = []
    for t in range(length):
        near = [i for i in range(length) if abs(t - i) < state]
        total = sum(
            0.99 ** abs(t - i) * coefficient(mixer.coefficients, float(t - i)) * v[i] for i in near
        )
        rows.append(mixer.project.weight @ (u[t] * total) + mixer.project.bias)
    for found in (mixer(x[None]), mixer.recurrent(x[None])):
        torch.testing.assert_close(found[0], torch.stack(rows), rtol=1e-9, atol=1e-9)
    cache = mixer.new_cache()
    mixer(x[None], cache)
    with pytest.raises(ValueError, match="reads a whole sequence, not parts of one"):
        mixer(x[None], cache)
    with pytest.raises(ValueError, match="causal of tnn must be True or False, got 1"):
        linear.build("tnn", n_head=2, head_dim=4, causal=1)


def test_a_coefficient_belongs_to_a_distance_whatever_the_length():
    mixer, x = built("tnn"), torch.randn(1, 30, 8, dtype=torch.float64)
    torch.testing.assert_close(mixer(x)[:, :7], mixer(x[:, :7]), rtol=0, atol=1e-10)


def test_it_has_the_published_sizes():
    mixer = linear.build("tnn", n_head=2, head_dim=8)
    shapes = [tuple(layer.weight.shape[:2]) for layer in mixer.coefficients.layers]
    assert shapes == [(64, 1), *[(64, 64)] * 6, (48, 64)]
    assert mixer.inputs.weight.shape == (48, 16)
