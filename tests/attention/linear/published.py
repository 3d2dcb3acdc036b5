"""A mixer against the recurrence of its paper, which its test writes with loops."""

import pytest
import torch

from attention import linear
from tests.tiers import corners

LENGTHS = (1, 33, 100)
CHUNKS = (1, 7, 16, 64)
TOLERANCE = {"rtol": 1e-9, "atol": 1e-9}

cases = pytest.mark.parametrize(
    ("length", "seen"),
    corners([(1, 0), (1, 3), (5, 0), (33, 0), (33, 9), (64, 0), (100, 17)], (1, 3), (33, 9)),
)
"""New positions, and positions before them whose state is handed over."""
few_cases = pytest.mark.parametrize(
    ("length", "seen"),
    [
        (4, 2),
        *(pytest.param(*case, marks=pytest.mark.full) for case in ((1, 0), (1, 3), (33, 9))),
    ],
)
"""The same, of which the quick tier takes one."""


def built(name, head_dim=4, **args):
    """Return a small float64 mixer no parameter of which is at a special value."""
    torch.manual_seed(11)
    mixer = linear.build(name, n_head=2, head_dim=head_dim, **args).double()
    with torch.no_grad():
        for parameter in mixer.parameters():
            parameter += 0.3 * torch.randn_like(parameter)
    return mixer


def short_convolution(layer, inputs):
    """SiLU of an offset, if there is one, and a sum over the last four inputs of each channel."""
    rows = []
    for t in range(len(inputs)):
        total = 0.0 if layer.taps.bias is None else layer.taps.bias
        for back in range(min(4, t + 1)):
            total = total + layer.taps.weight[:, 0, 3 - back] * inputs[t - back]
        rows.append(total * torch.sigmoid(total))
    return torch.stack(rows)


def turned(x, n):
    """Rotate a vector of 4 channels, the pairs (0, 2) and (1, 3), by its position."""
    angles = n * torch.tensor([1.0, 0.01], dtype=x.dtype)
    pairs = torch.complex(x[:2], x[2:]) * torch.exp(1j * angles)
    return torch.cat([pairs.real, pairs.imag])


def with_gradients(found, leaves):
    """Return an output and a state, and the gradients of random sums of both."""
    generator = torch.Generator().manual_seed(1)
    weights = (torch.randn(x.shape, generator=generator, dtype=torch.float64) for x in found)
    total = sum((x * weight.to(x.device)).sum() for x, weight in zip(found, weights, strict=True))
    return [*found, *torch.autograd.grad(total, leaves)]


def check(name, recurrence, length, seen, /, **args):
    """Compare values and gradients of both forms, at all chunk sizes, with ``recurrence``.

    Args:
        name: The mixer.
        recurrence: (mixer, sequence [L, width]) -> [L, width], from the mixer's weights.
        length: New positions.
        seen: Positions before.
        **args: Arguments of the mixer.
    """
    mixer = built(name, **args)
    batch = 2 if length < 64 else 1
    x = torch.randn(batch, seen + length, mixer.width, dtype=torch.float64, requires_grad=True)
    weight = torch.randn(batch, length, mixer.width, dtype=torch.float64)
    leaves = [x, *mixer.parameters()]

    def compared(out):
        # What a lone position leaves unused, a decay, has a gradient of 0.
        alone = length + seen == 1
        return [out, *torch.autograd.grad((weight * out).sum(), leaves, materialize_grads=alone)]

    expected = compared(torch.stack([recurrence(mixer, sequence) for sequence in x])[:, seen:])
    assert expected[0].abs().max() > 1e-3
    for form in ("recurrent", *CHUNKS):
        run = mixer.recurrent if form == "recurrent" else mixer
        mixer.chunk = form if form != "recurrent" else 64
        cache = mixer.new_cache()
        if seen:
            run(x[:, :seen], cache)
        found = compared(run(x[:, seen:], cache))
        assert cache.length == seen + length
        for one, other in zip(found, expected, strict=True):
            scale = other.abs().max().clamp_min(1.0)
            torch.testing.assert_close(one / scale, other / scale, **TOLERANCE)
