"""The decode kernels, run by Triton's interpreter, against the float64 reference."""

import pytest
import torch
from torch import library

from attention import build, get, reference
from attention.triton import backend, decode
from tests.attention.fused import DEVICE, MARKS, SERVED, errors, learned, specification, tensors

pytestmark = MARKS
LIGHT = ("lssa", "lssar", "elastic", "lazy", "softmax")
ROUNDING = 1e-5


@pytest.fixture
def few_programs(monkeypatch):
    """Several tiles in a split as well as several splits."""
    monkeypatch.setattr(decode, "PROGRAMS", 4)
    monkeypatch.setattr(decode, "KEYS", 16)


def both(spec, queries, keys, dtype=torch.float32, dim=32, batch=1, heads=4, shared=2):
    """Return the kernels' output and the float64 reference's, of a cache with room to grow."""
    q, k, v, _ = tensors(queries, keys, heads=heads, dim=dim, dtype=dtype, batch=batch)
    room = q.new_empty([2, batch, heads // shared, keys + 9, dim])
    room[:, :, :, :keys] = torch.stack([k[:, ::shared], v[:, ::shared]])
    k, v = room[:, :, :, :keys]
    parameters = learned(spec, heads)
    if "tau" in parameters:
        parameters["tau"] = parameters["tau"].repeat(heads // 2)
    expected = reference.attend(*(x.double() for x in (q, k, v)), spec, parameters)
    assert decode.serves(q, k, needs_gradient=False)
    return backend.attend(q, k, v, spec, parameters), expected


@pytest.mark.parametrize(
    ("name", "queries", "keys"),
    [
        *((name, *size) for name in LIGHT for size in ((1, 70), (3, 50))),
        *(pytest.param(x, 1, 70, marks=pytest.mark.full) for x in SERVED if x not in LIGHT),
    ],
)
def test_every_variant(name, queries, keys, few_programs):
    found, expected = both(specification(name), queries, keys)
    assert max(errors([found], [expected])) <= ROUNDING


@pytest.mark.full
@pytest.mark.parametrize(
    ("queries", "keys", "dim", "batch", "heads", "shared"),
    [(1, 2, 32, 2, 4, 1), (1, 3, 128, 1, 2, 2), (16, 17, 64, 1, 4, 4), (2, 200, 32, 3, 6, 3)],
)
@pytest.mark.parametrize("name", ["lssar", "softmax", "alibi", "lazy"])
def test_shapes(name, queries, keys, dim, batch, heads, shared, few_programs):
    sizes = {"dim": dim, "batch": batch, "heads": heads, "shared": shared}
    found, expected = both(specification(name), queries, keys, **sizes)
    assert max(errors([found], [expected])) <= ROUNDING


@pytest.mark.full
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
@pytest.mark.parametrize("name", ["lssar", "lssa", "softmax", "elastic"])
def test_half_precision_rounds_inputs_weights_and_output_alone(name, dtype):
    found, expected = both(specification(name), 1, 100, dtype=dtype)
    assert max(errors([found], [expected])) <= torch.finfo(dtype).eps


@pytest.mark.parametrize("p", [1, 2.5, 50])
def test_powers(p, few_programs):
    found, expected = both(get("lssar", p=p), 1, 40)
    assert max(errors([found], [expected])) <= ROUNDING


def test_dead_rows_and_zero_vectors_give_nothing():
    q, k, v, _ = tensors(1, 20)
    for keys, name in ((torch.ones_like(k), "lssar"), (torch.zeros_like(k), "lssar")):
        assert torch.all(backend.attend(q, keys, v, get(name), None) == 0)
    even = backend.attend(torch.zeros_like(q), k, v, get("lssa"), None)
    torch.testing.assert_close(even, v.mean(dim=2, keepdim=True), rtol=0, atol=1e-6)


@pytest.mark.full
@pytest.mark.parametrize("name", ["lssar", "softmax"])
def test_a_module_decodes_as_it_reads(name):
    torch.manual_seed(0)
    module = build(name, n_head=4, head_dim=32, n_kv_head=2, backend="triton").to(DEVICE)
    x = torch.randn(1, 8, 128, device=DEVICE)
    with torch.no_grad():
        cache = module.new_cache()
        steps = torch.cat([module(part, cache) for part in x.split([5, 1, 2], dim=1)], dim=1)
        module.backend = "reference"
        torch.testing.assert_close(steps, module(x), rtol=0, atol=1e-5)


def test_a_gradient_is_left_to_the_other_kernels():
    q, k, v, _ = tensors(1, 9)
    spec = get("lssar")
    assert not decode.serves(q, k, needs_gradient=True)
    q.requires_grad_()
    backend.attend(q, k, v, spec, None).sum().backward()
    assert q.grad.abs().max() > 0


@pytest.mark.full
def test_the_operator_passes_torchs_own_checks():
    q, k, v, _ = tensors(1, 9)
    inverse = reference.inverse_lengths(k)
    choices = backend.plan.make(get("lssar"), 32).choices
    arguments = (q, k, v, None, None, inverse, *choices)
    library.opcheck(decode.decode, arguments)
