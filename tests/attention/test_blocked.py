"""Blocks of rows with a backward of their own, against the dense reference."""

import pytest
import torch

from attention import attend, build, explain, get, reference
from attention.backends import blocked
from benchmarks.cost import timing
from tests.attention.fused import errors, run, tensors

CASES = [("lssa", {}), *(("lssar", {"p": p}) for p in (1, 2.5, 3, 15, 50))]


@pytest.mark.parametrize(("name", "arguments"), CASES, ids=str)
@pytest.mark.parametrize("length", [1, 3, 4, 65, 150])
def test_values_and_gradients_are_those_of_the_reference(name, arguments, length):
    spec = get(name, **arguments)
    inputs = [x.double() for x in tensors(length, batch=2, dim=8)]
    expected = run(reference.attend, inputs, spec, {}, torch.float64)
    found = run(blocked.attend, inputs, spec, {}, torch.float64)
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("name", ["lssa", "lssar"])
def test_single_precision_rounds_as_little_as_the_reference(name):
    inputs = tensors(200, dim=64)
    expected = run(reference.attend, inputs, get(name), {}, torch.float64)
    ours = errors(run(blocked.attend, inputs, get(name), {}, torch.float32), expected)
    theirs = errors(run(reference.attend, inputs, get(name), {}, torch.float32), expected)
    assert all(x <= 3 * y + 1e-6 for x, y in zip(ours, theirs, strict=True))


def test_dead_rows_and_zero_vectors_give_nothing():
    q, k, v, upstream = tensors(20, dim=8)
    same = [q, k[:, :, :1].expand_as(k), v, upstream]
    out, *gradients = run(blocked.attend, same, get("lssar"), {}, torch.float32)
    assert torch.all(out[:, :, 3:] == 0)
    assert all(x.isfinite().all() for x in gradients)
    zero = [torch.zeros_like(q), k, v, upstream]
    for found, expected in zip(
        run(blocked.attend, zero, get("lssa"), {}, torch.float64),
        run(reference.attend, zero, get("lssa"), {}, torch.float64),
        strict=True,
    ):
        torch.testing.assert_close(found, expected, rtol=0, atol=1e-12)


def test_memory_for_the_gradient_grows_with_the_length():
    def kept(length):
        q, k, v, _ = tensors(length, dim=16)
        leaves = [x.requires_grad_() for x in (q, k, v)]
        return timing.kept_bytes(lambda: attend(*leaves, "lssar", backend="blocked"), leaves)

    assert kept(512) <= 2.01 * kept(256)


def test_a_module_learns_shares_keys_and_decodes_with_it():
    module = build("lssar", n_head=4, head_dim=8, n_kv_head=2, backend="blocked")
    x = torch.randn(2, 70, 32, generator=torch.Generator().manual_seed(0))
    found = torch.autograd.grad(module(x).square().sum(), list(module.parameters()))
    module.backend = "reference"
    whole = module(x)
    expected = torch.autograd.grad(whole.square().sum(), list(module.parameters()))
    assert max(errors(found, [x.double() for x in expected])) <= 1e-5
    module.backend = "blocked"
    with torch.no_grad():
        cache = module.new_cache()
        steps = torch.cat([module(part, cache) for part in x.split([60, 10], dim=1)], dim=1)
    torch.testing.assert_close(steps, whole, rtol=0, atol=1e-5)


def test_reasons():
    q = torch.zeros(1, 1, 8, 32)
    assert "by name" in explain("lssar", q).refused["blocked"]
    for name, dtype, word, arguments in (
        ("softmax", torch.float32, "LSSA and LSSAR only", {}),
        ("elastic", torch.float32, "LSSA and LSSAR only", {}),
        ("lssar", torch.float32, "p >= 1", {"p": 0.5}),
        ("lssar", torch.float16, "float16", {}),
    ):
        assert word in explain(name, q.to(dtype), **arguments).refused["blocked"]
    wide = torch.zeros(1, 1, 1, 1).expand(1, 1, 200_000, 2_000)
    assert "overflow the exponential" in explain("lssar", wide).refused["blocked"]
