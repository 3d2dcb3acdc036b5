"""Hyena: y_t = q_t (sum_j h_j k_{t-j} v_{t-j} + b k_t v_t), and with heads k^T v."""

import math

import pytest
import torch

from attention import linear
from tests.attention.linear.published import check, few_cases


def filters(mixer):
    """Return h [length, C], place by place, as the authors' code makes it."""
    network, length, rows = mixer.taps, mixer.taps.length, []
    for place in range(length):
        t = place / max(1, length - 1)
        frequencies = [1e-4 + (15 - 1e-4) * n / 15 for n in range(16)]
        angles = [2 * math.pi * place / length * f for f in frequencies]
        z = [t, *(math.cos(a) for a in angles), *(math.sin(-a) for a in angles)]
        z = torch.tensor(z, dtype=torch.float64)
        for number, layer in enumerate(network.layers):
            z = layer.weight[:, :, 0] @ z
            if number < 3:
                z = torch.sin(network.frequency[:, 0] * (z + layer.bias))
        count = len(z)
        slow, fast = math.log(1e-2) / 1.5, math.log(1e-2) / 0.3
        deltas = [slow + (fast - slow) * c / max(1, count - 1) for c in range(count)]
        rows.append(z * torch.tensor([math.exp(t * d) for d in deltas], dtype=torch.float64))
    return torch.stack(rows)


def inputs(mixer, sequence):
    """Return q, k and v, [L, W] each, behind their convolution over three inputs."""
    raw, rows = sequence @ mixer.inputs.weight.T + mixer.inputs.bias, []
    for t in range(len(raw)):
        now = mixer.recent.taps.bias
        for back in range(min(3, t + 1)):
            now = now + mixer.recent.taps.weight[:, 0, 2 - back] * raw[t - back]
        rows.append(now)
    return torch.stack(rows).split(8, dim=-1)


def hyena(mixer, sequence):
    h = filters(mixer)
    q, k, v = inputs(mixer, sequence)
    rows = []
    for t in range(len(sequence)):
        total = mixer.skip * k[t] * v[t]
        for j in range(min(t + 1, len(h))):
            total = total + h[j] * k[t - j] * v[t - j]
        rows.append(mixer.project.weight @ (q[t] * total) + mixer.project.bias)
    return torch.stack(rows)


def multihead_hyena(mixer, sequence):
    h = filters(mixer)
    q, k, v = inputs(mixer, sequence)
    rows = []
    for t in range(len(sequence)):
        heads = []
        for head in range(2):
            part = slice(4 * head, 4 * head + 4)
            state = mixer.skip[head] * torch.outer(k[t, part], v[t, part])
            for j in range(min(t + 1, len(h))):
                state = state + h[j, head] * torch.outer(k[t - j, part], v[t - j, part])
            heads.append(q[t, part] @ state)
        rows.append(mixer.project.weight @ torch.cat(heads) + mixer.project.bias)
    return torch.stack(rows)


@few_cases
@pytest.mark.parametrize("published", [hyena, multihead_hyena])
def test_both_forms_are_the_published_sum(published, length, seen):
    check(published.__name__, published, length, seen, length=5 if length < 33 else 40)


def test_filters_start_as_published():
    torch.manual_seed(0)
    taps = linear.build("hyena", n_head=2, head_dim=32).taps
    assert bool((taps.frequency == 14).all())
    for layer, before in zip(taps.layers, (33, 64, 64, 64), strict=True):
        assert 0.95 / before**0.5 < layer.weight.abs().max() <= 1 / before**0.5
    h = taps(1024, torch.float32).detach().abs()
    assert h.shape == (64, 1024)
    early, late = h[:, :100].mean(1), h[:, 700:800].mean(1)
    assert late[-1] < 1e-3 * early[-1] < late[0]
