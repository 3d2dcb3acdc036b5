"""cosFormer against sums over pairs of positions."""

import math

import pytest
import torch
from torch.nn.functional import relu

from tests.attention.linear.published import built, check, few_cases

LONGEST = 50


def published(mixer, sequence):
    rows = []
    for t, token in enumerate(sequence):
        heads = []
        for h in range(mixer.n_head):
            part = slice(4 * h, 4 * h + 4)
            q = relu(mixer.query.weight[part] @ token)
            above, below = (
                torch.zeros(4, dtype=sequence.dtype),
                torch.zeros((), dtype=sequence.dtype),
            )
            for i in range(t + 1):
                k = relu(mixer.key.weight[part] @ sequence[i])
                weight = q @ k * math.cos(math.pi / 2 * (t - i) / LONGEST)
                above = above + weight * (mixer.value.weight[part] @ sequence[i])
                below = below + weight
            heads.append(above / below.clamp_min(1e-6))
        rows.append(mixer.project.weight @ torch.cat(heads))
    return torch.stack(rows)


@few_cases
def test_both_forms_are_the_published_sum(length, seen):
    check("cosformer", published, length, seen, max_length=LONGEST)


@pytest.mark.parametrize("longest", [20, 1000])
def test_no_weight_is_negative(longest):
    mixer = built("cosformer", max_length=longest)
    with torch.no_grad():
        mixer.key.weight.abs_()
        mixer.query.weight.abs_()
        mixer.value.weight.copy_(torch.eye(8))
        mixer.project.weight.copy_(torch.eye(8))
    x = torch.rand(1, 20, 8, dtype=torch.float64, requires_grad=True)
    mean = mixer(x)
    assert mean.min() > 0
    assert mean.max() < 1
    # An average of equal values is the value.
    same = torch.full((1, 20, 8), 0.5, dtype=torch.float64)
    torch.testing.assert_close(mixer(same), same)
