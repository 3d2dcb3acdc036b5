"""FLASH: squared-ReLU attention within segments and sums of those before, pair by pair."""

import pytest
import torch
from torch.nn.functional import silu

from attention import linear
from tests.attention.linear.published import built, check, few_cases, turned

STATE, SEGMENT = 4, 5


def published(mixer, sequence):
    rows, written = [], []
    for t, token in enumerate(sequence):
        z = silu(mixer.shared.weight @ token + mixer.shared.bias)
        q, k, q_linear, k_linear = (
            turned(z * mixer.gains[i] + mixer.shifts[i], t) for i in range(4)
        )
        v = silu(mixer.value.weight @ token + mixer.value.bias)
        written.append((k, k_linear, v))
        total = torch.zeros_like(v)
        for i, (k_i, k_linear_i, v_i) in enumerate(written):
            if i // SEGMENT == t // SEGMENT:
                score = q @ k_i / SEGMENT + mixer.distance[t - i]
                total = total + score.clamp_min(0) ** 2 * v_i
            else:
                total = total + (q_linear @ k_linear_i) * v_i / SEGMENT
        u = silu(mixer.gate.weight @ token + mixer.gate.bias)
        rows.append(mixer.project.weight @ (u * total) + mixer.project.bias)
    return torch.stack(rows)


@few_cases
def test_both_forms_are_the_published_sum(length, seen):
    check("flash_gau", published, length, seen, state=STATE, segment=SEGMENT)


def test_the_last_segment_alone_has_biases():
    """A bias is of a distance within a segment: beyond it the attention is linear."""
    mixer = built("flash_gau", state=STATE, segment=SEGMENT)
    x = torch.randn(1, 2 * SEGMENT, 8, dtype=torch.float64)
    before = mixer(x)
    with torch.no_grad():
        mixer.distance[2] += 3
    changed = (mixer(x) - before).abs().amax(dim=-1)[0] > 1e-9
    assert changed.tolist() == [place >= 2 for place in range(SEGMENT)] * 2


def test_it_starts_as_published():
    torch.manual_seed(0)
    mixer = linear.build("flash_gau", n_head=4, head_dim=16)
    assert mixer.gains.shape == (4, 128)
    assert mixer.gains.detach().std() == pytest.approx(0.02, rel=0.2)
    assert mixer.distance.detach().std() == pytest.approx(0.02, rel=0.2)
    assert torch.all(mixer.shifts == 0)
    assert mixer.value.weight.shape == mixer.gate.weight.shape == (128, 64)
