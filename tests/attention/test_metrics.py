"""Metrics of attention matrices against hand values."""

import math

import pytest
import torch

from attention import metrics, weights


def uniform(length=6, heads=2):
    rows = torch.arange(1, length + 1, dtype=torch.float64)[:, None]
    return (torch.ones(length, length, dtype=torch.float64).tril() / rows).expand(
        3, heads, length, length
    )


def test_uniform_attention_has_the_harmonic_sink_ratio():
    expected = sum(1 / i for i in range(1, 7)) / 6
    torch.testing.assert_close(
        metrics.sink_ratio(uniform()), torch.full((2,), expected, dtype=torch.float64)
    )
    assert metrics.uniform_sink_ratio(6) == pytest.approx(expected)
    published = {128: 0.0424, 512: 0.0133, 4096: 0.0022}
    for length, ratio in published.items():
        assert metrics.uniform_sink_ratio(length) == pytest.approx(ratio, abs=5e-5)


def test_density_is_the_mass_away_from_the_first_key():
    w = weights(*torch.randn(2, 2, 3, 12, 8, dtype=torch.float64), "softmax")
    torch.testing.assert_close(metrics.density(w), 1 - metrics.sink_ratio(w))
    halved = metrics.density(w / 2) + metrics.sink_ratio(w / 2)
    torch.testing.assert_close(halved, torch.full((3,), 0.5, dtype=torch.float64))


def test_heads_stay_apart():
    w = torch.zeros(1, 2, 4, 4, dtype=torch.float64)
    w[:, 0, :, 0] = 1.0
    w[:, 1] = torch.eye(4)
    assert metrics.sink_ratio(w).tolist() == [1.0, 0.25]
    assert metrics.density(w).tolist() == [0.0, 0.75]


def test_zeros_are_exact_and_of_visible_keys():
    w = torch.tensor([[1.0, 0, 0], [0.9, 0.1, 0], [0.95, 0.0, 0.05]], dtype=torch.float64)
    w = w.expand(1, 1, 3, 3)
    assert metrics.zero_share(w).item() == pytest.approx(1 / 6)


def test_entropy_counts_keys():
    entropy = metrics.row_entropy(uniform())
    expected = sum(math.log(i) for i in range(1, 7)) / 6
    torch.testing.assert_close(entropy, torch.full((2,), expected, dtype=torch.float64))
    assert metrics.row_entropy(torch.zeros(1, 1, 4, 4)).item() == 0, "dead rows"
    signed = -uniform()
    torch.testing.assert_close(metrics.row_entropy(signed), entropy)


def test_masses_are_the_means_over_heads_in_percent():
    rows = torch.eye(4).expand(2, 3, 4, 4).clone()  # every row has its own key alone
    rows[:, 1] = 0  # a head whose rows are empty
    found = metrics.masses(rows)
    assert found["sink"] == pytest.approx(100 / 4 * 2 / 3)
    assert found["density"] == pytest.approx(75 * 2 / 3)
    assert found["missing"] == pytest.approx(100 / 3)
    assert found["zeros"] == pytest.approx(100 * (6 / 10 * 2 + 1) / 3)
    assert found["entropy"] == 0
