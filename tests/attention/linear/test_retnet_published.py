"""Retention as published: sums over pairs with the paper's three scalings."""

import math

import pytest
import torch
from torch.nn.functional import silu

from attention.linear._decay import decayed_attention
from attention.linear.mixer import RecurrentState
from attention.linear.retnet_published import turned
from tests.attention.linear.published import built, check, few_cases
from worldmodel.models.backbone import GPT


def rotated(x, n):
    """Turn neighbouring pairs of 4 channels by n and n / 10,000: linspace(0, 1) has both ends."""
    out = []
    for pair, frequency in enumerate((1.0, 1e-4)):
        a, b = x[2 * pair], x[2 * pair + 1]
        c, s = math.cos(n * frequency), math.sin(n * frequency)
        out += [a * c - b * s, a * s + b * c]
    return torch.stack(out)


def published(mixer, sequence):
    heads = []
    for h in range(mixer.n_head):
        gamma, rows = 1 - 2.0 ** (-5 - h), []
        of_head, of_value = slice(4 * h, 4 * h + 4), slice(8 * h, 8 * h + 8)
        for n, token in enumerate(sequence):
            q = rotated(mixer.query.weight[of_head] @ token, n)
            total, scores = sum(gamma ** (n - m) for m in range(n + 1)), []
            for m in range(n + 1):
                k = rotated(mixer.key.weight[of_head] @ sequence[m], m) / 2
                scores.append(q @ k * gamma ** (n - m) / math.sqrt(total))
            size = max(abs(sum(scores).item()), 1.0)
            o = sum(
                score / size * (mixer.value.weight[of_value] @ sequence[m])
                for m, score in enumerate(scores)
            )
            rows.append((o - o.mean()) / (o.var(unbiased=False) + 1e-5).sqrt())
        heads.append(torch.stack(rows))
    gate = silu(sequence @ mixer.gate.weight.T)
    return (gate * torch.cat(heads, dim=-1)) @ mixer.project.weight.T


@few_cases
def test_both_forms_are_the_published_sum(length, seen):
    check("retnet_published", published, length, seen)


def test_a_large_sum_of_a_row_divides_it():
    mixer, x = built("retnet_published"), torch.randn(1, 9, 8, dtype=torch.float64)
    with torch.no_grad():
        mixer.norm.eps = 1e6  # so that the scale of a row is not undone
        for scale in (1, 30):
            torch.testing.assert_close(mixer(scale * x), published_without_norm(mixer, scale * x))


def published_without_norm(mixer, x):
    """Return the sum behind a norm whose epsilon, 1e6, makes of it a division by 1,000."""
    rows = []
    for h in range(mixer.n_head):
        gamma = 1 - 2.0 ** (-5 - h)
        q, k = (
            torch.stack([rotated(row, n) for n, row in enumerate(x[0] @ w[4 * h : 4 * h + 4].T)])
            for w in (mixer.query.weight, mixer.key.weight)
        )
        distance = torch.arange(9)[:, None] - torch.arange(9)
        decay = torch.where(distance >= 0, gamma ** distance.double(), 0.0)
        scores = q @ k.T / 2 * decay / decay.sum(-1, keepdim=True).sqrt()
        scores = scores / scores.sum(-1, keepdim=True).abs().clamp_min(1)
        o = scores @ (x[0] @ mixer.value.weight[8 * h : 8 * h + 8].T)
        o = o - o.mean(-1, keepdim=True)
        rows.append(o / (o.square().mean(-1, keepdim=True) + 1e6).sqrt())
    gate = silu(x @ mixer.gate.weight.T)
    return (gate * torch.cat(rows, dim=-1)) @ mixer.project.weight.T


@pytest.mark.full
def test_the_sum_is_that_of_fla():
    naive = pytest.importorskip("fla.ops.retention.naive").naive_retention
    generator = torch.Generator().manual_seed(0)
    q, k, v = (torch.randn(2, 3, 20, 4, generator=generator) for _ in range(3))
    log_decay = torch.log1p(-(2.0 ** (-5 - torch.arange(3.0))))[:, None, None].expand(3, 20, 1)
    found = decayed_attention(q, k / 2, v, log_decay.expand(2, -1, -1, -1), RecurrentState(), 16)
    expected = naive(q, k, v)
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-6 * expected.abs().max().item())


def test_products_of_rotated_vectors_depend_on_the_distance():
    q, k = torch.randn(2, 1, 6, dtype=torch.float64)
    places = torch.arange(40, dtype=torch.float64)
    products = turned(q.expand(40, 6), places) @ turned(k.expand(40, 6), places).T
    for distance in (0, 5):
        diagonal = products.diagonal(distance)
        torch.testing.assert_close(diagonal, diagonal[:1].expand_as(diagonal))


def test_a_gpt_keeps_its_start():
    torch.manual_seed(0)
    gpt = GPT("retnet_published", {}, n_layer=2, n_head=4, head_dim=16)
    for block in gpt.blocks:
        mixer = block.attention
        for layer, gain in (
            (mixer.query, 2**-2.5),
            (mixer.key, 2**-2.5),
            (mixer.value, 2**-2.5),
            (mixer.gate, 2**-2.5),
            (mixer.project, 1.0),
        ):
            bound = gain * math.sqrt(6 / sum(layer.weight.shape))
            assert 0.99 * bound < layer.weight.abs().max() <= bound
