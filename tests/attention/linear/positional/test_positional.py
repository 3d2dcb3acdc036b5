"""Synthesizers and gMLP against their sums over all earlier positions."""

import math

import pytest
import torch
from torch.nn.functional import gelu, relu

from attention import linear
from attention.linear._bounded import triangle_rows, triangle_size
from tests.attention.linear.published import built, check, few_cases


def entry(t, j):
    """Return the place of a pair in a triangle that is written row after row."""
    return t * (t + 1) // 2 + j


def synthesizer(score):
    """Return the loop over pairs of the score of (mixer, head, token, t, j)."""

    def recurrence(mixer, sequence):
        rows = []
        for t, token in enumerate(sequence):
            heads = []
            for h in range(mixer.n_head):
                value = mixer.value.weight[4 * h : 4 * h + 4]
                weights = [torch.exp(score(mixer, h, token, t, j)) for j in range(t + 1)]
                total = sum(w * (value @ sequence[j]) for j, w in enumerate(weights))
                heads.append(total / sum(weights))
            rows.append(mixer.project.weight @ torch.cat(heads))
        return torch.stack(rows)

    return recurrence


@synthesizer
def synthesizer_random(mixer, h, token, t, j):
    return mixer.scores[h, entry(t, j)]


@synthesizer
def synthesizer_dense(mixer, h, token, t, j):
    part = slice(4 * h, 4 * h + 4)
    hidden = relu(mixer.hidden.weight[part] @ token + mixer.hidden.bias[part])
    return mixer.places[h, j] @ hidden + mixer.offsets[h, j]


def gmlp(mixer, sequence):
    z = gelu(sequence @ mixer.inputs.weight.T + mixer.inputs.bias)
    u, v = z[:, :24], z[:, 24:]
    v = (v - v.mean(-1, keepdim=True)) / (v.var(-1, unbiased=False, keepdim=True) + 1e-5).sqrt()
    v, rows = mixer.norm.weight * v + mixer.norm.bias, []
    for t in range(len(sequence)):
        mixed = sum(mixer.places[entry(t, j)] * v[j] for j in range(t + 1))
        gated = u[t] * (mixed + mixer.offsets[t])
        rows.append(mixer.project.weight @ gated + mixer.project.bias)
    return torch.stack(rows)


@few_cases
@pytest.mark.parametrize(
    ("name", "published"),
    [
        ("synthesizer_random", synthesizer_random),
        ("synthesizer_dense", synthesizer_dense),
        ("gmlp", gmlp),
    ],
)
def test_both_forms_are_the_published_sum(name, published, length, seen):
    check(name, published, length, seen, max_length=length + seen)


def test_the_random_synthesizer_averages_all_sequences_alike():
    mixer = built("synthesizer_random", max_length=9)
    x, y = torch.randn(2, 1, 9, 8, dtype=torch.float64)
    torch.testing.assert_close(mixer(x) + mixer(y), mixer(x + y))


def test_rows_of_a_triangle():
    numbers = torch.arange(1.0, triangle_size(4) + 1)
    whole = [[1, 0, 0, 0], [2, 3, 0, 0], [4, 5, 6, 0], [7, 8, 9, 10]]
    assert triangle_rows(numbers, 0, 4, 0.0).tolist() == whole
    assert triangle_rows(numbers, 1, 2, -1.0).tolist() == [[2, 3, -1], [4, 5, 6]]


def test_they_start_as_published():
    torch.manual_seed(0)
    build = {"n_head": 2, "head_dim": 8, "max_length": 64}
    scores = linear.build("synthesizer_random", **build).scores
    bound = math.sqrt(6 / (64 * (64 + 2)))
    assert 0.99 * bound < scores.abs().max() <= bound
    dense = linear.build("synthesizer_dense", **build)
    assert dense.places.detach().std() == pytest.approx(8**-0.5, rel=0.1)
    assert torch.all(dense.offsets == 0)
    mlp = linear.build("gmlp", **build)
    assert 0 < mlp.places.abs().max() <= 1e-3 / 64
    assert torch.all(mlp.offsets == 1)
    assert mlp.inputs.weight.shape == (6 * 16, 16)
    # So it starts as an MLP, place by place.
    x = torch.randn(1, 5, 16)
    torch.testing.assert_close(mlp(x), mlp(x.flip(1)).flip(1), rtol=0, atol=1e-3)
