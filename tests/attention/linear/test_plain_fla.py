"""Cores of mixers against flash-linear-attention's plain PyTorch forms, to 1e-6.

fla's forms compute in float32, ours here in float64; errors are in units of the largest value.
"""

import importlib

import pytest
import torch

from attention.linear import _decay, _delta, fla
from attention.linear.linear import features

pytestmark = [
    pytest.mark.full,
    pytest.mark.skipif(not fla.installed(), reason="fla-core or einops is not installed"),
]

LENGTH, KEYS, VALUES = 64, 16, 12


def plain(package, name):
    return getattr(importlib.import_module(f"fla.ops.{package}"), name)


def draw(*last):
    """Return a tensor of three heads of two sequences, [2, 3, *last]."""
    return torch.randn(2, 3, *last, dtype=torch.float64)


def by_position(*tensors):
    return [x.transpose(1, 2).float() for x in tensors]


def gla(q, k, v, state):
    log_decay = torch.nn.functional.logsigmoid(draw(LENGTH, KEYS))
    found = plain("gla.naive", "naive_recurrent_gla")(
        *by_position(q, k, v, log_decay), initial_state=state.float(), output_final_state=True
    )
    return (found[0].transpose(1, 2), found[1]), (_decay, (q, k, v, log_decay, state))


def simple_gla(q, k, v, state):
    log_decay = torch.nn.functional.logsigmoid(draw(LENGTH, 1))
    found = plain("simple_gla.naive", "naive_recurrent_simple_gla")(
        *by_position(q, k, v, log_decay[..., 0]),
        initial_state=state.float(),
        output_final_state=True,
    )
    return (found[0].transpose(1, 2), found[1]), (_decay, (q, k, v, log_decay, state))


def rwkv6(q, k, v, state):
    log_decay, bonus = torch.nn.functional.logsigmoid(draw(LENGTH, KEYS)), draw(KEYS)[0]
    found = plain("rwkv6.recurrent_naive", "naive_recurrent_rwkv6")(
        *(x.float() for x in (q, k, v, log_decay, bonus)),
        scale=KEYS**-0.5,
        initial_state=state.float(),
        output_final_state=True,
    )
    return found, (_decay, (q, k, v, log_decay, state), bonus)


def delta_rule(q, k, v, state):
    k, rate = torch.nn.functional.normalize(k, dim=-1), draw(LENGTH, 1).sigmoid()
    found = plain("delta_rule.naive", "delta_rule_recurrence")(
        *(x.float() for x in (q, k, v, rate)), initial_state=state.float()
    )
    return found, (_delta, (q, rate * k, v, torch.zeros_like(rate), k, -rate * k, state))


def gated_delta_rule(q, k, v, state):
    k, rate = torch.nn.functional.normalize(k, dim=-1), draw(LENGTH, 1).sigmoid()
    log_decay = torch.nn.functional.logsigmoid(draw(LENGTH, 1))
    found = plain("gated_delta_rule.naive", "naive_recurrent_gated_delta_rule")(
        *by_position(q, k, v, rate[..., 0], log_decay[..., 0]),
        initial_state=state.float(),
        output_final_state=True,
    )
    write = -rate * log_decay.exp() * k
    return (found[0].transpose(1, 2), found[1]), (
        _delta,
        (q, rate * k, v, log_decay, k, write, state),
    )


def rwkv7(q, k, v, state):
    removed, rate = torch.nn.functional.normalize(draw(LENGTH, KEYS), dim=-1), draw(LENGTH, KEYS)
    log_decay, write = -0.6 * draw(LENGTH, KEYS).sigmoid(), -rate.sigmoid() * removed
    found = plain("generalized_delta_rule.dplr.naive", "dplr_recurrence")(
        *(x.float() for x in (q, k, v, removed, write, log_decay)), initial_state=state.float()
    )
    return found, (_delta, (q, k, v, log_decay, removed, write, state))


@pytest.mark.parametrize("case", [gla, simple_gla, rwkv6, delta_rule, gated_delta_rule, rwkv7])
def test_both_forms_are_flas_recurrence(case):
    torch.manual_seed(0)
    q, k, v = draw(LENGTH, KEYS), draw(LENGTH, KEYS), draw(LENGTH, VALUES)
    state = draw(KEYS, VALUES)
    # fla divides queries by the root of their channels.
    wanted, (core, given, *bonus) = case(q, k, v, state)
    given = (given[0] * KEYS**-0.5, *given[1:])
    for found in (core.recurrent(*given, *bonus), core.chunked(*given, 16, *bonus)):
        for one, other in zip(found, wanted, strict=True):
            size = other.abs().max()
            torch.testing.assert_close(one / size, other.double() / size, rtol=0, atol=1e-6)


def test_linear_attention_is_flas_normalised_sum():
    torch.manual_seed(0)
    q, k, v = features(draw(LENGTH, KEYS)), features(draw(LENGTH, KEYS)), draw(LENGTH, VALUES)
    wanted, _ = plain("linear_attn.naive", "naive_recurrent_linear_attn")(
        *by_position(q, k, v), normalize=True
    )
    total = (q * k.cumsum(dim=-2)).sum(dim=-1, keepdim=True)
    state = _decay.zero_state(k, v)
    found, _ = _decay.chunked(q, k, v, torch.zeros_like(total), state, 16)
    torch.testing.assert_close(found / total, wanted.transpose(1, 2).double(), rtol=0, atol=1e-6)
