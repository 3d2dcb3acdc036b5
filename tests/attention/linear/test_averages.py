"""AFT-simple and RWKV-4 against their sums over all earlier positions."""

import math

import pytest
import torch

from attention import linear
from tests.attention.linear.published import check, few_cases


def aft_simple(mixer, sequence):
    rows = []
    for t, token in enumerate(sequence):
        above = below = 0.0
        for i in range(t + 1):
            weight = torch.exp(mixer.key.weight @ sequence[i])
            above, below = above + weight * (mixer.value.weight @ sequence[i]), below + weight
        gate = torch.sigmoid(mixer.query.weight @ token)
        rows.append(mixer.project.weight @ (gate * above / below))
    return torch.stack(rows)


def rwkv4(mixer, sequence):
    last, keys, values, rows = torch.zeros_like(sequence[0]), [], [], []
    for t, token in enumerate(sequence):

        def seen(mix, a=token, b=last):
            return mix * a + (1 - mix) * b

        r = mixer.receptance.weight @ seen(mixer.mix_receptance)
        keys.append(mixer.key.weight @ seen(mixer.mix_key))
        values.append(mixer.value.weight @ seen(mixer.mix_value))
        present = torch.exp(mixer.bonus + keys[t])
        above, below = present * values[t], present
        for i in range(t):
            weight = torch.exp(-(t - 1 - i) * mixer.log_rate.exp() + keys[i])
            above, below = above + weight * values[i], below + weight
        rows.append(mixer.project.weight @ (torch.sigmoid(r) * above / below))
        last = token
    return torch.stack(rows)


@few_cases
@pytest.mark.parametrize("published", [aft_simple, rwkv4], ids=lambda f: f.__name__)
def test_both_forms_are_the_published_sum(published, length, seen):
    check(published.__name__, published, length, seen)


@pytest.mark.parametrize(("layer", "n_layer"), [(0, 1), (1, 3), (2, 3)])
def test_rwkv4_starts_as_published(layer, n_layer):
    mixer = linear.build("rwkv4", n_head=2, head_dim=3, layer=layer, n_layer=n_layer)
    rising, falling = layer / (n_layer - 1) if n_layer > 1 else 0.0, 1 - layer / n_layer
    for parameter, start in (
        (mixer.mix_receptance, lambda i: (i / 6) ** (0.5 * falling)),
        (mixer.mix_key, lambda i: (i / 6) ** falling),
        (mixer.mix_value, lambda i: (i / 6) ** falling + 0.3 * rising),
        (mixer.log_rate, lambda i: -5 + 8 * (i / 5) ** (0.7 + 1.3 * rising)),
        (mixer.bonus, lambda i: math.log(0.3) + 0.5 * ((i + 1) % 3 - 1)),
    ):
        expected = torch.tensor([start(i) for i in range(6)])
        torch.testing.assert_close(parameter.detach(), expected)
