"""TTT-Linear: gradient descent as autograd takes it, one example after another."""

import pytest
import torch
from torch.func import grad
from torch.nn.functional import layer_norm

from attention import linear
from tests.attention.linear.published import check, few_cases, turned
from worldmodel.models.backbone import GPT

BATCH = 5


def published(mixer, sequence):
    """Follow the paper's inner loop: the gradient of the loss at the start of each mini-batch."""
    heads = []
    for h in range(mixer.n_head):
        part, rows = slice(4 * h, 4 * h + 4), []
        gain, shift = mixer.head_norm.gain[h, 0], mixer.head_norm.shift[h, 0]

        def model(parameters, z, gain=gain, shift=shift):
            weight, offset = parameters
            return z + layer_norm(z @ weight + offset, (4,), gain, shift, 1e-6)

        def loss(parameters, k, v, model=model):
            return (model(parameters, k) - v).square().sum() / 2

        now = start = (mixer.weight[h], mixer.offset[h, 0])
        for t, token in enumerate(sequence):
            place = t % BATCH
            if place == 0:
                start, sums = now, tuple(torch.zeros_like(p) for p in now)
            q, k = (turned(layer.weight[part] @ token, place) for layer in (mixer.query, mixer.key))
            v = mixer.value.weight[part] @ token
            rate = torch.sigmoid(mixer.rate.weight[h] @ token + mixer.rate_offset[h]) / 4
            steps = grad(loss)(start, k, v)
            sums = tuple(s + rate * step for s, step in zip(sums, steps, strict=True))
            by_place = (1 / (place + 1) + mixer.place_rate[place]).clamp_min(0)
            now = tuple(p - by_place * s for p, s in zip(start, sums, strict=True))
            rows.append(model(now, q))
        heads.append(torch.stack(rows))
    merged = torch.cat(heads, dim=-1)
    normed = layer_norm(merged, (8,), mixer.norm.weight, mixer.norm.bias, 1e-6)
    return normed @ mixer.project.weight.T


@few_cases
def test_both_forms_are_the_published_descent(length, seen):
    check("ttt_linear", published, length, seen, segment=BATCH)


@pytest.mark.full
def test_the_dual_form_is_that_of_fla():
    naive = pytest.importorskip("fla.ops.ttt.naive").chunk_ttt_linear_ref
    torch.manual_seed(0)
    mixer = linear.build("ttt_linear", n_head=3, head_dim=8)
    with torch.no_grad():
        mixer.head_norm.gain += 0.3 * torch.randn(3, 1, 8)
        mixer.head_norm.shift += 0.3 * torch.randn(3, 1, 8)
    q, k, v = torch.randn(3, 2, 3, 48, 8)
    # fla's rates depend on the place in the mini-batch alone, or on nothing within a row.
    by_place = (1 / (torch.arange(48.0) % 16 + 1))[:, None]
    cache = mixer.new_cache()
    found = mixer._learned(q, k, v, torch.full((2, 3, 48, 1), 0.1), by_place, cache, 16)
    found = found + mixer.head_norm(found)  # fla adds the norm to what it is the norm of
    eta = 0.1 * by_place.expand(2, 3, 48, 1)
    expected, weight, offset = naive(
        *(z.transpose(1, 2).clone() for z in (q, k, v)),
        mixer.head_norm.gain.flatten(1),
        mixer.head_norm.shift.flatten(1),
        eta.transpose(1, 2),
        scale=1.0,
        initial_state=mixer.weight.expand(2, -1, -1, -1),
        initial_state_bias=mixer.offset.expand(2, -1, -1, -1),
        output_final_state=True,
    )
    for one, other in (
        (found, expected.transpose(1, 2)),
        (cache.tensors["weight"], weight),
        (cache.tensors["offset"], offset),
    ):
        torch.testing.assert_close(one, other, rtol=1e-6, atol=1e-6 * other.abs().max().item())


def test_the_inner_loss_falls():
    """What the layer reads again and again it learns."""
    torch.manual_seed(0)
    mixer = linear.build("ttt_linear", n_head=1, head_dim=8, segment=4).double()
    k, change = torch.randn(2, 1, 1, 4, 8, dtype=torch.float64).repeat(1, 1, 1, 25, 1)
    size = change.std(-1, unbiased=False, keepdim=True)
    v = k + (change - change.mean(-1, keepdim=True)) / size
    losses = []
    for rate in (0.0, 1 / 8):
        rates = torch.full((1, 1, 100, 1), rate, dtype=torch.float64)
        by_place = torch.full((100, 1), 0.25, dtype=torch.float64)
        z = mixer._learned(k, k, v, rates, by_place, mixer.new_cache(), 64)
        losses.append((k + mixer.head_norm(z) - v).square().sum(-1)[0, 0, -4:].sum())
    assert losses[1] < 0.4 * losses[0]


def test_a_gpt_keeps_its_start():
    torch.manual_seed(0)
    mixer = GPT("ttt_linear", {}, n_layer=1, n_head=4, head_dim=32).blocks[0].attention
    assert mixer.rate.weight.detach().std() == pytest.approx(0.02, rel=0.2)
    assert mixer.weight.detach().std() == pytest.approx(0.02, rel=0.05)
    for zero in (mixer.offset, mixer.rate_offset, mixer.place_rate, mixer.head_norm.shift):
        assert torch.all(zero == 0)
    assert torch.all(mixer.head_norm.gain == 1)
