"""Tensor-product projections: heads from factors, and a cache of factors alone."""

import pytest
import torch

import attention
from attention.parts.projections import TensorProduct
from attention.positions import rope

DECODED = {
    "softmax": {},
    "lssar": {"p": 3.0},
    "lazy": {"max_distance": 5},
    "sigmoid": {"length": 9},
}
RANKS = {"q_rank": 3, "k_rank": 2, "v_rank": 1}
TPA = {"projections": "tpa", **RANKS}


def built(name="softmax", n_head=4, head_dim=8, seed=0, **args):
    torch.manual_seed(seed)
    layer = attention.build(name, n_head=n_head, head_dim=head_dim, **args).double()
    with torch.no_grad():
        for number in layer.learned.values():
            number += 0.1 * torch.randn_like(number)
    return layer


def inputs(length=9, width=32, batch=2, dtype=torch.float64):
    generator = torch.Generator().manual_seed(3)
    return torch.randn(batch, length, width, generator=generator, dtype=torch.float64).to(dtype)


def heads_by_loops(projection, x, n_head, head_dim, turned):
    """Return (1 / R) sum_r a_r b_r^T of each position, RoPE on b_r, written out."""
    rank = projection.rank
    over_heads, over_channels = projection.over_heads.weight, projection.over_channels.weight
    found = torch.zeros(len(x), n_head, x.shape[1], head_dim, dtype=x.dtype)
    for sequence in range(len(x)):
        for place in range(x.shape[1]):
            for r in range(rank):
                a = over_heads[r * n_head : (r + 1) * n_head] @ x[sequence, place]
                b = over_channels[r * head_dim : (r + 1) * head_dim] @ x[sequence, place]
                if turned:
                    b = rope(b[None], torch.tensor([place]))[0]
                for head in range(n_head):
                    found[sequence, head, place] += a[head] * b / rank
    return found


@pytest.mark.parametrize("n_kv_head", [4, 2])
@pytest.mark.parametrize("name", ["softmax", "lssar", "alibi"])
def test_heads_are_means_of_products_of_turned_factors(name, n_kv_head):
    layer, x = built(name, n_kv_head=n_kv_head, **TPA), inputs()
    turned = name != "alibi"
    q = heads_by_loops(layer.query, x, 4, 8, turned)
    k = heads_by_loops(layer.key, x, n_kv_head, 8, turned)
    v = heads_by_loops(layer.value, x, n_kv_head, 8, False)
    mixed = attention.attend(q, k, v, name)
    expected = mixed.transpose(1, 2).flatten(-2) @ layer.project.weight.T
    torch.testing.assert_close(layer(x), expected, rtol=0, atol=1e-12)


def test_turning_factors_turns_heads():
    projection = TensorProduct(32, 4, 8, 3).double()
    a, b = projection.parts(inputs())
    places = torch.arange(9)
    torch.testing.assert_close(
        projection.joined(a, rope(b, places)), rope(projection.joined(a, b), places)
    )
    as_linear = projection(inputs()).unflatten(-1, (4, 8)).transpose(1, 2)
    assert torch.equal(as_linear, projection.joined(a, b))


@pytest.mark.parametrize("n_kv_head", [4, 2])
@pytest.mark.parametrize("name", DECODED)
@pytest.mark.parametrize(("dtype", "bound"), [(torch.float64, 1e-10), (torch.float32, 1e-5)])
def test_decoding_from_factors_is_the_full_forward(name, n_kv_head, dtype, bound):
    layer = built(name, n_kv_head=n_kv_head, **TPA, **DECODED[name]).to(dtype)
    x = inputs(dtype=dtype)
    with torch.no_grad():
        whole = layer(x)
        for steps in ([1] * 9, [4, 1, 3, 1]):
            cache = layer.new_cache()
            parts = [layer(part, cache) for part in x.split(steps, dim=1)]
            torch.testing.assert_close(torch.cat(parts, dim=1), whole, rtol=0, atol=bound)


def test_decoding_follows_a_base_that_grows():
    layer, x = built(ntk_train_length=4, **TPA), inputs()
    cache = layer.new_cache()
    with torch.no_grad():
        for i in range(9):
            step = layer(x[:, i : i + 1], cache)[:, 0]
            torch.testing.assert_close(step, layer(x[:, : i + 1])[:, -1], rtol=0, atol=1e-12)


def kept_by_a_cache(layer, x):
    """Return how many numbers a cache holds of one position."""
    cache = layer.new_cache()
    with torch.no_grad():
        layer(x, cache)
    held = sum(part[:, :, : cache.length].numel() for part in cache._kept)
    return held / (len(x) * x.shape[1])


@pytest.mark.parametrize("name", ["softmax", "lssar"])
@pytest.mark.parametrize(
    ("args", "numbers"),
    [
        ({}, 2 * 4 * 8),
        ({"n_kv_head": 2}, 2 * 2 * 8),
        (TPA, (2 + 1) * (4 + 8)),
        ({**TPA, "n_kv_head": 2}, (2 + 1) * (2 + 8)),
        ({"projections": "tpa"}, 4 * (4 + 8)),
    ],
)
def test_a_cache_keeps_as_many_numbers_as_it_says(name, args, numbers):
    layer = built(name, **args)
    if name == "lssar" and args.get("projections") != "tpa":
        numbers += layer.n_kv_head  # one over the length of each key
    assert layer.kept == numbers
    assert kept_by_a_cache(layer, inputs()) == numbers


def test_factors_are_smaller_than_what_they_stand_for():
    sizes = [built(n_head=12, head_dim=64, projections=kind).kept for kind in ("tpa", "full")]
    assert sizes == [4 * (12 + 64), 2 * 12 * 64]
    assert sizes[0] < sizes[1] / 5


def test_every_factor_learns():
    layer = built("lssar", p=1.0, **TPA)
    layer(inputs()).square().sum().backward()
    for parameter in layer.parameters():
        assert parameter.grad.isfinite().all()
        assert parameter.grad.abs().max() > 0


def test_gradients_are_those_of_finite_differences():
    layer = built(n_head=2, head_dim=2, **TPA)
    weights = list(layer.parameters())
    names = [name for name, _ in layer.named_parameters()]
    x = inputs(5, 4, batch=1).requires_grad_()

    def call(x, *weights):
        return torch.func.functional_call(layer, dict(zip(names, weights, strict=True)), (x,))

    assert torch.autograd.gradcheck(call, (x, *weights))


def test_a_full_projection_is_the_linear_map_it_always_was():
    torch.manual_seed(0)
    layer = attention.build("softmax", n_head=4, head_dim=8, n_kv_head=2)
    torch.manual_seed(0)
    linear = [torch.nn.Linear(32, n, bias=False) for n in (32, 16, 16, 32)]
    assert [name for name, _ in layer.named_parameters()] == [
        f"{name}.weight" for name in ("query", "key", "value", "project")
    ]
    for mine, theirs in zip(layer.parameters(), linear, strict=True):
        assert torch.equal(mine, theirs.weight)


@pytest.mark.parametrize("name", ["softmax", "lssar"])
def test_an_encoder_reads_ahead_with_factors_too(name):
    layer, x = built(name, causal=False, **TPA), inputs()
    changed = x.clone()
    changed[:, -1] += 1
    assert not torch.allclose(layer(x)[:, 0], layer(changed)[:, 0])


def test_what_cannot_be_is_one_line():
    for message, args in (
        ("q_rank must be at least 1, got 0", {**TPA, "q_rank": 0}),
        ("k_rank must be a whole number, got 1.5", {**TPA, "k_rank": 1.5}),
        ("unknown projections 'tucker'; choose from full, tpa", {"projections": "tucker"}),
        ("v_rank is of projections tpa, these are full: leave it out", {"v_rank": 2}),
    ):
        with pytest.raises(ValueError, match=message):
            attention.build("softmax", n_head=2, head_dim=8, **args)
    with pytest.raises(TypeError, match="gla has no projections; every quadratic variant takes"):
        attention.build("gla", n_head=2, head_dim=8, projections="tpa")
