"""HGRN: h_t = f_t exp(i theta) h_{t-1} + (1 - f_t) c_t."""

import pytest
import torch
from torch.nn.functional import silu

from attention import linear
from tests.attention.linear.published import check, few_cases


def one_way(mixer, sequence, turn):
    """Return the complex states of all positions, forwards."""
    bound, turn = mixer.lower_bound, torch.complex(turn.cos(), turn.sin())
    h, states = torch.zeros(8, dtype=torch.complex128), []
    for token in sequence:
        c = silu(mixer.inputs.weight @ token + mixer.inputs.bias)
        forget = torch.sigmoid(mixer.forget.weight @ token + mixer.forget.bias)
        forget = bound + (1 - bound) * forget
        h = forget * turn * h + (1 - forget) * torch.complex(c[:8], c[8:])
        states.append(h)
    return torch.stack(states)


def published(mixer, sequence):
    """Loop over positions, with complex numbers."""
    states = one_way(mixer, sequence, mixer.turn)
    if not mixer.causal:
        states = states + one_way(mixer, sequence.flip(0), mixer.turn_back).flip(0)
    rows = []
    for token, h in zip(sequence, states, strict=True):
        both = torch.cat([h.real, h.imag])
        centred = both - both.mean()
        both = centred / (centred.square().mean() + 1e-5).sqrt()
        both = both * mixer.norm.weight + mixer.norm.bias
        gate = silu(mixer.gate.weight @ token + mixer.gate.bias)
        rows.append(mixer.project.weight @ (both * gate) + mixer.project.bias)
    return torch.stack(rows)


@few_cases
def test_both_forms_are_the_published_recurrence(length, seen):
    check("hgrn1", published, length, seen, lower_bound=0.7 if length == 33 else 0.0)


@pytest.mark.parametrize("length", [1, 2, 9, 33])
def test_an_encoder_adds_the_states_of_both_directions(length):
    check("hgrn1", published, length, 0, lower_bound=0.3, causal=False)


def test_turns_start_as_those_of_rope_and_bounds_rise_with_the_depth():
    mixer = linear.build("hgrn1", n_head=2, head_dim=4, layer=1, n_layer=4)
    expected = torch.tensor([10_000 ** (-2 * k / 8) for k in range(8)])
    torch.testing.assert_close(mixer.turn.detach(), expected)
    assert mixer.lower_bound == 0.25
