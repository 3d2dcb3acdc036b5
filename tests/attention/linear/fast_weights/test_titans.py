"""Titans: attention token by token, and a memory that autograd teaches."""

import math

import pytest
import torch
from torch.func import grad
from torch.nn.functional import rms_norm, silu

from attention import linear
from attention.linear.fast_weights._memory import Rates, chunked, coefficients, recurrent
from tests.attention.linear.published import check, few_cases, turned
from worldmodel.models.backbone import GPT

SEGMENT, PERSISTENT = 5, 3


def unit(x):
    return x / (x.square().sum() + 1e-6).sqrt()


def loss(memory, k, v):
    return (k @ memory - v).square().sum()


def published(mixer, sequence):
    parts = [slice(4 * h, 4 * h + 4) for h in range(2)]
    ask, value = mixer.ask.weight, mixer.value.weight

    now, moving, rows = list(mixer.memory), [torch.zeros_like(m) for m in mixer.memory], []
    for t, token in enumerate(sequence):
        place = t % SEGMENT
        if place == 0:
            start, tokens = list(now), [(n, p) for n, p in enumerate(mixer.persistent)]
        asked = [unit(silu(ask[p] @ token)) for p in parts]
        answer = torch.cat([q @ m for q, m in zip(asked, start, strict=True)])
        tokens += [(PERSISTENT + place, answer), (PERSISTENT + SEGMENT + place, token)]
        y = []
        for p in parts:
            q = turned(mixer.query.weight[p] @ token, PERSISTENT + SEGMENT + place)
            scores = [q @ turned(mixer.key.weight[p] @ z, n) / 2 for n, z in tokens]
            weights = torch.softmax(torch.stack(scores), 0)
            y.append(weights @ torch.stack([value[p] @ z for _, z in tokens]))
        y = rms_norm(torch.cat(y), (8,), mixer.norm.weight, 1e-6)
        read = []
        for h, p in enumerate(parts):
            given = (mixer.rates.weight @ y + mixer.rate_offsets)[3 * h : 3 * h + 3]
            alpha, eta, theta = torch.sigmoid(given)
            theta = theta * (1 - eta) / (2 * SEGMENT)
            k, v = (
                unit(silu(mixer.write_key.weight[p] @ y)),
                silu(mixer.write_value.weight[p] @ y),
            )
            moving[h] = eta * moving[h] - theta * grad(loss)(start[h], k, v)
            now[h] = (1 - alpha) * now[h] + moving[h]
            read.append(unit(silu(ask[p] @ y)) @ now[h])
        gate = rms_norm(torch.cat(read), (8,), mixer.memory_norm.weight, 1e-6)
        rows.append(mixer.project.weight @ (y * silu(gate)))
    return torch.stack(rows)


@few_cases
def test_both_forms_are_the_published_layer(length, seen):
    check("titans", published, length, seen, segment=SEGMENT, persistent=PERSISTENT)


def rates_of(length, seed=0):
    generator = torch.Generator().manual_seed(seed)
    alpha, eta, theta = torch.rand(3, 2, 3, length, 1, generator=generator, dtype=torch.float64)
    return Rates(torch.log1p(-alpha), eta.log(), theta)


def test_the_sums_are_the_recurrence():
    generator = torch.Generator().manual_seed(1)
    q, k, error = torch.randn(3, 2, 3, 9, 4, generator=generator, dtype=torch.float64)
    first = torch.randn(2, 2, 3, 4, 4, generator=generator, dtype=torch.float64)
    pairs = (form(q, k, error, rates_of(9), *first) for form in (recurrent, chunked))
    for one, other in zip(*pairs, strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=1e-12)


@pytest.mark.full
def test_the_coefficients_are_those_of_fla():
    naive = pytest.importorskip("fla.ops.titans.naive").combine_params
    rates = rates_of(12)
    alpha, eta = -torch.expm1(rates.log_keep), rates.log_momentum.exp()
    of_memory, of_momentum, of_steps, of_last = coefficients(rates)
    beta, _, f, _, _, pairs, _, last = naive(rates.step, alpha, eta, 12)
    for one, other in (
        (of_memory[..., 0], beta),
        (of_momentum[..., 0], f),
        (of_steps, pairs),
        (of_last, last),
    ):
        torch.testing.assert_close(one, other, rtol=1e-6, atol=1e-6)


@pytest.mark.full
@pytest.mark.parametrize("by_chunks", [False, True])
def test_the_memory_is_that_of_fla_at_its_gradient(by_chunks):
    """fla's memory learns another loss, with a LayerNorm; given its gradient all else is the same.

    That gradient divides a sum alone by the norm's deviation, so that it is none of a loss; it is
    handed over as the error of each position. What is read is normalised and added there.
    """
    naive = pytest.importorskip("fla.ops.titans.naive").chunk_titans_linear_ref
    size, length, width = 6, 18, 4
    torch.manual_seed(0)
    q, k, v = torch.randn(3, 2, 3, length, width)
    gain, shift = 1 + 0.3 * torch.randn(3, width), 0.3 * torch.randn(3, width)
    rates = Rates(*(x.float() for x in rates_of(length)))
    start = 0.3 * torch.randn(2, 3, width, width)
    by_position = [x.transpose(1, 2) for x in (q, k, v)]
    rates_there = (rates.step, -torch.expm1(rates.log_keep), rates.log_momentum.exp())
    expected, memory_there = naive(
        *by_position,
        *(gain, shift),
        *(x.transpose(1, 2) for x in rates_there),
        chunk_size=size,
        initial_state=start,
        output_final_state=True,
        use_chunk=by_chunks,
    )
    gain, shift, eps = gain[:, None], shift[:, None], 1e-6

    def normalised(x):
        centred = x - x.mean(-1, keepdim=True)
        deviation = (centred.square().mean(-1, keepdim=True) + eps).sqrt()
        return centred / deviation, deviation

    for form in (recurrent, chunked):
        memory, momentum, found = start, torch.zeros_like(start), []
        for first in range(0, length, size):
            part = slice(first, first + size)
            q_p, k_p, v_p, *given = (x[..., part, :] for x in (q, k, v, *rates))
            unit_p, deviation = normalised(k_p @ memory)
            by_unit = gain * (gain * unit_p + shift - (v_p - k_p))
            total, along = (x.sum(-1, keepdim=True) for x in (by_unit, by_unit * unit_p))
            error = width * by_unit - (total + unit_p * along) / (deviation * width)
            read, memory, momentum = form(q_p, k_p, 2 * error, Rates(*given), memory, momentum)
            found.append(read + gain * normalised(read)[0] + shift)
        pairs = ((torch.cat(found, dim=-2), expected.transpose(1, 2)), (memory, memory_there))
        for one, other in pairs:
            torch.testing.assert_close(one, other, rtol=0, atol=1e-6 * other.abs().max().item())


@pytest.mark.parametrize("rate", [0.0, 6.0])
def test_no_rate_makes_rounding_grow(rate):
    """The memory's answers come back to it; the same tokens are the worst case of a large step."""
    torch.manual_seed(0)
    mixer = linear.build("titans", n_head=2, head_dim=4, segment=6).double()
    with torch.no_grad():
        mixer.rate_offsets.view(2, 3)[:, 1:] += rate
        mixer.rate_offsets.view(2, 3)[:, 0] -= rate
        for x in (torch.randn(1, 150, 8).double(), torch.randn(1, 1, 8).double().expand(1, 150, 8)):
            moved = mixer(x + 1e-9 * torch.randn_like(x)) - mixer(x)
            assert moved.abs().max() < 1e-6


def test_its_memory_reaches_beyond_a_segment():
    torch.manual_seed(0)
    mixer = linear.build("titans", n_head=2, head_dim=4, segment=4).double()
    x = torch.randn(1, 24, 8, dtype=torch.float64, requires_grad=True)
    (gradient,) = torch.autograd.grad(mixer(x)[0, -1].sum(), x)
    assert bool((gradient[0].abs().amax(-1) > 1e-9).all())


def test_a_gpt_keeps_its_start():
    mixer = GPT("titans", {}, n_layer=1, n_head=3, head_dim=4).blocks[0].attention
    expected = torch.tensor([math.log(0.01 / 0.99), 0.0, 0.0])
    torch.testing.assert_close(mixer.rate_offsets.view(3, 3), expected.expand(3, 3))
