"""Hawk: h_t = a_t h_{t-1} + sqrt(1 - a_t^2) (i_t x_t), a_t = exp(-8 softplus(rate) r_t)."""

import torch
from torch.nn.functional import gelu, softplus

from attention import linear
from tests.attention.linear.published import check, few_cases


def published(mixer, sequence):
    """Loop over positions and heads, whose gates are matrices of their own."""
    raw = sequence @ mixer.inputs.weight.T + mixer.inputs.bias
    h, rows = sequence.new_zeros(8), []
    for t, token in enumerate(sequence):
        now = mixer.recent.taps.bias
        for back in range(min(4, t + 1)):
            now = now + mixer.recent.taps.weight[:, 0, 3 - back] * raw[t - back]
        r, i = (
            torch.cat(
                [
                    torch.sigmoid(
                        now[4 * head : 4 * head + 4] @ mixer.gate_weight[gate, head]
                        + mixer.gate_bias[gate, head]
                    )
                    for head in range(2)
                ]
            )
            for gate in range(2)
        )
        a = torch.exp(-8 * softplus(mixer.rate) * r)
        h = a * h + torch.sqrt(1 - a**2) * (i * now)
        branch = gelu(mixer.gate.weight @ token + mixer.gate.bias, approximate="tanh")
        rows.append(mixer.project.weight @ (h * branch) + mixer.project.bias)
    return torch.stack(rows)


@few_cases
def test_both_forms_are_the_published_recurrence(length, seen):
    check("hawk", published, length, seen)


def test_start_values_are_the_published_ones():
    torch.manual_seed(0)
    mixer = linear.build("hawk", n_head=4, head_dim=64)
    factor = torch.exp(-softplus(mixer.rate.detach()))
    assert factor.min() >= 0.9
    assert factor.max() <= 0.999
    assert abs((factor**2).mean() - (0.9**2 + 0.999**2) / 2) < 0.01
    assert abs(mixer.gate_weight.std() * 8 - 1) < 0.02
    assert abs(mixer.recent.taps.weight.std() * 20 - 1) < 0.1
    assert not mixer.gate_bias.any()
    assert not mixer.recent.taps.bias.any()
