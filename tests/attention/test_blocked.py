"""Blocks of rows with a backward of their own, against the dense reference."""

from unittest import mock

import pytest
import torch

from attention import attend, build, explain, get, reference
from attention.backends import blocked, rows_compiled, rows_plain
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


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
@pytest.mark.parametrize("name", ["lssa", "lssar"])
def test_half_precision_rounds_its_results_alone(name, dtype):
    inputs = tensors(200, dim=64, dtype=dtype)
    assert explain(name, inputs[0]).chosen == "blocked"
    expected = run(reference.attend, inputs, get(name), {}, torch.float64)
    found = run(blocked.attend, inputs, get(name), {}, dtype)
    assert [x.dtype for x in found] == 4 * [dtype]
    assert max(errors(found, expected)) <= torch.finfo(dtype).eps / 2


@pytest.mark.parametrize("p", [0, 1, 2, 3, 15, 50])
@pytest.mark.parametrize("start", [0, 2, 64])
def test_compiled_rows_are_the_plain_ones(p, start):
    """In float32, of scores beyond what cosines give; of a dead row as well."""
    generator = torch.Generator().manual_seed(p)
    scores, change = 8 * torch.randn(2, 3, 5, start + 5, generator=generator)
    scores[0, 4] = 1.5
    change, mean = change / 8, torch.randn(3, 5, 1, generator=generator)
    found, expected = [], []
    for module, dtype, kept in (
        (rows_compiled, torch.float32, found),
        (rows_plain, torch.float64, expected),
    ):
        weight, numbers = scores.to(dtype, copy=True), torch.empty(3, 3, 5, 1, dtype=dtype)
        module.weigh(weight, start, float(p), numbers)
        again, moved = scores.to(dtype, copy=True), change.to(dtype, copy=True)
        module.differentiate(again, moved, start, float(p), numbers, mean.to(dtype))
        kept += [weight, *numbers, again, moved]
    assert max(errors(found, expected)) <= 2e-5
    later = torch.ones_like(scores[0], dtype=torch.bool).triu(start + 1)
    assert all((x[:, later] == 0).all() for x in (found[0], *found[4:]))


@pytest.mark.parametrize("p", [0, 15])
def test_what_lies_in_the_future_changes_no_row(p):
    scores, change = torch.randn(2, 2, 5, 70, generator=torch.Generator().manual_seed(1))
    future = torch.ones(5, 70, dtype=torch.bool).triu(62 + 1)
    found = []
    for value in (0.0, float("nan")):
        numbers, mean = torch.empty(3, 2, 5, 1), torch.zeros(2, 5, 1)
        weight, again, moved = (x.masked_fill(future, value) for x in (scores, scores, change))
        rows_compiled.weigh(weight, 62, p, numbers)
        rows_compiled.differentiate(again, moved, 62, p, numbers, mean)
        found.append([weight, again, moved, numbers])
        assert all((x[:, future] == 0).all() for x in found[-1][:3])
    for one, other in zip(*found, strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=0)


@pytest.mark.parametrize("p", [0, 1, 15])
@pytest.mark.parametrize("place", [0, 5, 38])
def test_what_is_no_number_stays_none(p, place):
    scores = torch.randn(1, 1, 39, generator=torch.Generator().manual_seed(1))
    scores[..., place] = float("nan")  # of cosines there is no infinite one
    numbers, change = torch.empty(3, 1, 1, 1), torch.ones(1, 1, 39)
    weight = scores.clone()
    rows_compiled.weigh(weight, 38, p, numbers)
    assert (weight * numbers[2]).isnan().any()
    rows_compiled.differentiate(scores, change, 38, p, numbers, torch.zeros(1, 1, 1))
    assert change.isnan().any()


@pytest.mark.parametrize("p", [2, 15, 100])
def test_no_weight_is_a_number_that_processors_take_long_for(p):
    weight = torch.linspace(-4, 4, 4096).repeat(1, 1, 1)
    rows_compiled.weigh(weight, 4095, p, torch.empty(3, 1, 1, 1))
    assert weight.max() == pytest.approx(1, abs=1e-4)
    assert (weight == 0).any()
    assert weight[weight > 0].min() >= 0.99 * rows_compiled.LEAST_WEIGHT


def test_threads_take_heads_and_change_nothing():
    threads = torch.get_num_threads()
    inputs = tensors(130, heads=5, dim=8, batch=2)
    found = []
    try:
        for n in (1, 3):
            torch.set_num_threads(n)
            with mock.patch.object(rows_compiled, "ENTRIES_OF_A_THREAD", 1):
                found.append(run(blocked.attend, inputs, get("lssar"), {}, torch.float32))
    finally:
        torch.set_num_threads(threads)
    assert max(errors(found[1], [x.double() for x in found[0]])) <= 1e-5


@pytest.mark.full
@pytest.mark.parametrize("name", ["lssa", "lssar"])
def test_what_has_no_gradient_in_blocks_is_the_references(name):
    q, k, v, _ = (x.double() for x in tensors(9, heads=1, dim=4))

    def call(q, backend="blocked"):
        return attend(q, k, v, name, backend=backend)

    assert torch.autograd.gradgradcheck(call, q.requires_grad_())
    for tangent, other in zip(
        torch.func.jvp(call, (q.detach(),), (k,)),
        torch.func.jvp(lambda q: call(q, "reference"), (q.detach(),), (k,)),
        strict=True,
    ):
        torch.testing.assert_close(tangent, other)


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
    assert explain("lssar", q, p=2.5).chosen == "blocked"
    assert "by name" in explain("lssar", q.double()).refused["blocked"]
    for name, dtype, word, arguments in (
        ("softmax", torch.float32, "LSSA and LSSAR only", {}),
        ("elastic", torch.float32, "LSSA and LSSAR only", {}),
        ("lssar", torch.float32, "p >= 1", {"p": 0.5}),
    ):
        assert word in explain(name, q.to(dtype), **arguments).refused["blocked"]
    wide = torch.zeros(1, 1, 1, 1).expand(1, 1, 200_000, 2_000)
    assert "overflow the exponential" in explain("lssar", wide).refused["blocked"]


@pytest.mark.parametrize("name", ["lssa", "lssar"])
@pytest.mark.parametrize("shared", [False, True])
def test_several_gradients_at_once_are_those_of_the_reference(name, shared):
    q, k, v = torch.randn(3, 1, 1, 6, 4, dtype=torch.float64)

    def call(x, backend):
        return attend(x, x if shared else k, 2 * x if shared else v, name, backend=backend)

    found, wanted = (
        torch.autograd.functional.jacobian(
            lambda x, backend=backend: call(x, backend), q, vectorize=True
        )
        for backend in ("blocked", "reference")
    )
    torch.testing.assert_close(found, wanted)


@pytest.mark.parametrize("name", ["lssa", "lssar"])
def test_a_tensor_that_is_given_twice_is_differentiated_again_rightly(name):
    q, x = torch.randn(2, 1, 1, 6, 4, dtype=torch.float64)
    x = x.requires_grad_()
    found, wanted = (
        torch.autograd.grad(attend(q, x, x, name, backend=backend).sum(), x, create_graph=True)
        for backend in ("blocked", "reference")
    )
    torch.testing.assert_close(found, wanted)


def test_rows_are_plain_where_numba_can_keep_nothing(monkeypatch):
    def refused(name):
        raise RuntimeError("cannot cache function '_softplus': no locator available")

    blocked._compiled.cache_clear()
    with monkeypatch.context() as change:
        change.setattr(blocked.importlib, "import_module", refused)
        assert blocked._compiled() is rows_plain
    blocked._compiled.cache_clear()
    assert blocked._compiled() is rows_compiled


def test_row_numbers_lie_where_the_tensors_do():
    q, k, v = (torch.randn(1, 2, 40, 8) for _ in range(3))
    expected = attend(q, k, v, "lssar", p=1.5)
    with torch.device("meta"):
        assert torch.equal(attend(q, k, v, "lssar", p=1.5), expected)
