"""Decays, gates and rates at both ends, where a sum of logarithms over a chunk is hard."""

import pytest
import torch

from tests.attention.linear.published import built
from tests.tiers import corners

ENDS = {
    "deltanet": {"rate.weight": (-30.0, 30.0)},
    "gated_deltanet": {"decay.step_bias": (25.0, -25.0), "decay.log_rate": (0.7, 0.7)},
    "gla": {"forget.1.bias": (-800.0, 800.0)},  # log alpha = -50 or 0
    "hawk": {"rate": (25.0, -25.0)},
    "hgrn1": {"forget.bias": (-30.0, 30.0)},
    "hgrn2": {"forget.weight": (-30.0, 30.0)},
    "mamba": {"step_bias": (25.0, -25.0), "log_rate": (0.7, 0.7)},
    "mamba2": {"decay.step_bias": (25.0, -25.0), "decay.log_rate": (0.7, 0.7)},
    "rwkv4": {"log_rate": (5.0, -30.0)},
    "rwkv6": {"decay.offset": (4.0, -30.0)},  # log w = -55 or -1e-13
    "rwkv7": {"decay.offset": (30.0, -30.0), "rate.offset": (30.0, -30.0)},  # w = 0.55 or 1
}
"""Parameters of a mixer, and their values where it forgets all and where it forgets nothing."""
QUICK = sorted(set(ENDS) - {"hawk", "hgrn1", "mamba", "rwkv4"})


@pytest.mark.parametrize("name", corners(ENDS, *QUICK))
def test_both_forms_agree_and_gradients_are_finite(name):
    check(name)


def test_a_lower_bound_near_0_is_kept():
    check("hgrn2", lower_bound=0.01)


def check(name, **arguments):
    """Compare both forms in float32 at both ends."""
    mixer = built(name, **arguments).float()
    for end in (0, 1):
        with torch.no_grad():
            for parameter, values in ENDS[name].items():
                mixer.get_parameter(parameter).fill_(values[end])
        x = torch.randn(1, 100, mixer.width, requires_grad=True)
        out, stepwise = mixer(x), mixer.recurrent(x)
        largest = stepwise.detach().abs().max().item()
        torch.testing.assert_close(out, stepwise, rtol=0, atol=2e-4 * largest)
        gradients = torch.autograd.grad(out.square().sum(), [x, *mixer.parameters()])
        assert all(gradient.isfinite().all() for gradient in gradients)
