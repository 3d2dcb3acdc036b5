"""LRU: h_t = lambda h_{t-1} + exp(gamma) B x_t, y_t = Re(C h_t) + D x_t."""

import math

import torch
from torch.nn.functional import gelu

from attention import linear
from tests.attention.linear.published import check, few_cases


def published(mixer, sequence):
    """Loop over positions, with complex matrices."""
    enter = torch.complex(mixer.enter_real, mixer.enter_imag)
    leave = torch.complex(mixer.leave_real, mixer.leave_imag)
    size = torch.exp(-torch.exp(mixer.rate))
    factor = torch.complex(size * torch.exp(mixer.phase).cos(), size * torch.exp(mixer.phase).sin())

    h, rows = torch.zeros(8, dtype=torch.complex128), []
    for token in sequence:
        h = factor * h + torch.exp(mixer.scale) * (enter @ token.to(h.dtype))
        y = gelu((leave @ h).real + mixer.skip * token)
        one, other = (mixer.project.weight @ y + mixer.project.bias).view(2, 8)
        rows.append(one * torch.sigmoid(other))
    return torch.stack(rows)


@few_cases
def test_both_forms_are_the_published_recurrence(length, seen):
    check("lru", published, length, seen)


def test_start_values_are_the_published_ones():
    torch.manual_seed(0)
    mixer = linear.build("lru", n_head=2, head_dim=256)
    size = torch.exp(-torch.exp(mixer.rate.detach()))
    # Uniform on the disk: a share r^2 of the points lies within r.
    assert abs((size < 0.5).float().mean() - 0.25) < 0.06
    assert abs((mixer.phase.detach().exp() < math.pi).float().mean() - 0.5) < 0.07
    torch.testing.assert_close(mixer.scale.detach().exp(), (1 - size**2).sqrt())
    assert abs(mixer.enter_real.std() * math.sqrt(1024) - 1) < 0.02
    assert abs(mixer.leave_imag.std() * math.sqrt(512) - 1) < 0.02
