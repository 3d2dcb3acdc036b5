"""Rotations in kernels, run by Triton's interpreter, against the plain form."""

import copy

import pytest
import torch
from torch import library
from torch.autograd import forward_ad
from torch.utils.checkpoint import checkpoint

from attention import build, get, reference
from attention.parts import rotations
from attention.positions import rope, rotated, rotation
from attention.triton import backend
from tests.attention.fused import DEVICE, MARKS, ROUNDING, errors, run, tensors

pytestmark = MARKS
fused = pytest.importorskip("attention.triton.rope", reason="triton is for Linux")


def heads(*shape, dtype=torch.float32):
    generator = torch.Generator().manual_seed(0)
    return torch.randn(shape, generator=generator).to(DEVICE, dtype)


def angles(x, first=0):
    positions = torch.arange(first, first + x.shape[2], device=x.device)
    return rotation(positions, x.shape[-1], 10_000.0, torch.float32)


@pytest.mark.parametrize(
    ("shape", "first"), [((1, 1, 1, 4), 0), ((2, 3, 70, 32), 5), ((1, 2, 33, 64), 1000)]
)
def test_heads_are_turned_as_by_the_plain_form(shape, first):
    x = heads(*shape)
    expected = rope(x.double(), torch.arange(first, first + shape[2], device=x.device))
    found = fused.rotated(x, *angles(x, first))
    torch.testing.assert_close(found.double(), expected, rtol=0, atol=1e-3 if first else 1e-5)
    torch.testing.assert_close(found, rotated(x, *angles(x, first)), rtol=0, atol=1e-6)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
def test_half_precision_is_rounded_once(dtype):
    x = heads(1, 2, 40, 32, dtype=dtype)
    exact = rotated(x.double(), *(y.double() for y in angles(x)))
    error = (fused.rotated(x, *angles(x)).double() - exact).abs()
    assert (error <= torch.finfo(dtype).eps / 2 * exact.abs() * 1.001 + 1e-7).all()


def test_heads_are_read_where_a_projection_left_them():
    x = heads(2, 9, 3, 16).transpose(1, 2)
    assert not x.is_contiguous()
    found = fused.rotated(x, *angles(x))
    assert found.is_contiguous()
    torch.testing.assert_close(found, rotated(x, *angles(x)), rtol=0, atol=1e-6)


def test_gradients_of_any_order_and_tangents():
    x, upstream = heads(2, 2, 7, 8).requires_grad_(), heads(2, 2, 7, 8).flip(2)
    cosine, sine = angles(x)

    def both(function):
        out = function(x, cosine, sine)
        (first,) = torch.autograd.grad((out.tanh() * upstream).sum(), x, create_graph=True)
        (second,) = torch.autograd.grad(first.square().sum(), x)
        with forward_ad.dual_level():
            dual = forward_ad.make_dual(x.detach(), upstream)
            tangent = forward_ad.unpack_dual(function(dual, cosine, sine)).tangent
        return first, second, tangent

    for found, expected in zip(both(fused.rotated), both(rotated), strict=True):
        torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-5)
    (expanded,) = torch.autograd.grad(fused.rotated(x, cosine, sine).sum(), x)
    (plain,) = torch.autograd.grad(rotated(x, cosine, sine).sum(), x)
    torch.testing.assert_close(expanded, plain, rtol=0, atol=1e-6)


def test_many_gradients_at_once():
    x = heads(1, 2, 5, 8).requires_grad_()
    out, upstream = fused.rotated(x, *angles(x)), heads(1, 2, 5, 8).flip(3)
    several = torch.stack([upstream, 2 * upstream])
    (found,) = torch.autograd.grad(out, x, several, retain_graph=True, is_grads_batched=True)
    (one,) = torch.autograd.grad(out, x, upstream)
    torch.testing.assert_close(found, torch.stack([one, 2 * one]))


def test_what_it_takes():
    assert fused.fits(heads(1, 1, 2, 4))
    for shape in ((1, 2, 4), (1, 1, 2, 2), (1, 1, 2, 48), (1, 1, 0, 8)):
        assert not fused.fits(heads(*shape))
    assert not fused.fits(heads(1, 1, 4, 8).transpose(2, 3))
    assert not fused.fits(heads(1, 1, 2, 4).double())


def test_a_layer_turns_its_heads_by_it(monkeypatch):
    layer, x = build("lssar", n_head=2, head_dim=16).to(DEVICE), heads(2, 12, 32)
    with monkeypatch.context() as plain:
        plain.setattr(rotations, "fused", None)
        expected = layer(x)
    calls, own = [], fused.rotated

    def counted(heads, cosine, sine):
        calls.append(heads.shape)
        return own(heads, cosine, sine)

    monkeypatch.setattr(fused, "rotated", counted)
    monkeypatch.setattr(backend.ops, "traced", lambda *tensors: False)
    monkeypatch.setattr(fused, "serves", fused.fits)
    torch.testing.assert_close(layer(x), expected, rtol=0, atol=1e-5)
    assert calls == 2 * [(2, 2, 12, 16)]


def turned_first(attend):
    """Return a call whose queries and keys are turned beforehand, in any type."""

    def call(q, k, v, spec, numbers):
        cosine, sine = (y.to(torch.promote_types(q.dtype, torch.float32)) for y in angles(q))
        q, k = (rotated(x, cosine, sine).to(x.dtype) for x in (q, k))
        return attend(q, k, v, spec, numbers)

    return call


@pytest.mark.parametrize("gradients", ["split", "atomic"])
@pytest.mark.parametrize(("name", "dtype"), [("lssar", torch.float32), ("lssa", torch.float16)])
def test_unit_vectors_are_turned_on_their_way(name, dtype, gradients):
    spec, inputs = get(name), tensors(70, dtype=dtype)

    def on_the_way(q, k, v, spec, numbers):
        assert backend.turns(spec, q, k)
        return backend.attend(q, k, v, spec, numbers, angles(q), gradients)

    expected = run(turned_first(reference.attend), inputs, spec, {}, torch.float64)
    found = run(on_the_way, inputs, spec, {}, dtype)
    if dtype == torch.float32:
        assert max(errors(found, expected)) <= ROUNDING
        return
    before = run(turned_first(backend.attend), inputs, spec, {}, dtype)
    assert max(errors(found, expected)) <= 1.05 * max(errors(before, expected))


def test_what_is_turned_on_its_way():
    q, short, even = heads(1, 1, 9, 32), heads(1, 1, 3, 32), heads(1, 1, 9, 24)
    assert backend.turns(get("lssa"), q, q)
    assert not backend.turns(get("softmax"), q, q), "makes no unit vectors"
    assert not backend.turns(get("lssar"), short, q), "a key has another place than its query"
    assert not backend.turns(get("lssar"), even, even), "padded channels would be paired"


@pytest.mark.parametrize("n_kv_head", [2, 1])
def test_a_layer_leaves_its_rotation_to_the_kernels(n_kv_head, monkeypatch):
    layer = build("lssar", n_head=2, head_dim=32, n_kv_head=n_kv_head, backend="triton").to(DEVICE)
    x = heads(2, 12, 64)
    plain = copy.deepcopy(layer)
    plain.backend = "reference"
    expected = torch.autograd.grad(plain(x).square().sum(), [*plain.parameters()])
    monkeypatch.setattr(rotations, "rotated", None)  # nothing else may turn them
    torch.testing.assert_close(layer(x), plain_answer(plain, x, monkeypatch), rtol=0, atol=1e-5)
    found = torch.autograd.grad(layer(x).square().sum(), [*layer.parameters()])
    assert max(errors(found, [x.double() for x in expected])) <= 10 * ROUNDING  # float32 in both


def plain_answer(layer, x, monkeypatch):
    with monkeypatch.context() as again:
        again.setattr(rotations, "rotated", rotated)
        return layer(x)


@pytest.mark.parametrize("angled", [False, True])
def test_queries_and_keys_are_read_where_a_projection_left_them(angled, monkeypatch):
    q, k, v, _ = (x.transpose(1, 2).contiguous().transpose(1, 2) for x in tensors(33, batch=2))
    given = (angles(q),) if angled else ()
    expected = backend.attend(*(x.contiguous() for x in (q, k, v)), get("lssar"), None, *given)
    copied, own = [], torch.Tensor.contiguous

    def contiguous(x, **how):
        if not x.is_contiguous():
            copied.append(x)
        return own(x, **how)

    monkeypatch.setattr(torch.Tensor, "contiguous", contiguous)
    found = backend.attend(q, k, v, get("lssar"), None, *given)
    assert [x is v for x in copied] == [True]
    torch.testing.assert_close(found, expected, rtol=0, atol=0)
    backend.attend(q, k.transpose(2, 3).clone().transpose(2, 3), v, get("lssar"), None, *given)


LAYERS = {
    "ntk": {"ntk_train_length": 8},
    "tpa": {"projections": "tpa"},
    "one head of keys": {"n_kv_head": 1},
    "no rotation": {"rope_base": None},
}


@pytest.mark.full
@pytest.mark.parametrize("how", ["plain", "checkpoint", "compile", "vmap"])
@pytest.mark.parametrize("options", LAYERS.values(), ids=LAYERS)
def test_layers_of_every_kind_turn_once(options, how):
    torch.manual_seed(0)
    layer = build("lssa", n_head=2, head_dim=32, backend="triton", **options).to(DEVICE)
    plain = copy.deepcopy(layer)
    plain.backend, x = "reference", heads(2, 12, 64)
    calls = {
        "plain": layer,
        "checkpoint": lambda x: checkpoint(layer, x, use_reentrant=False),
        "compile": torch.compile(layer, backend="aot_eager"),
        "vmap": lambda x: torch.func.vmap(lambda y: layer(y[None])[0])(x),
    }
    torch._dynamo.reset()
    out, expected = calls[how](x), plain(x)
    torch.testing.assert_close(out, expected, rtol=0, atol=1e-5)
    if how != "vmap":
        found, theirs = (
            torch.autograd.grad(y.square().sum(), [*each.parameters()])
            for y, each in ((out, layer), (expected, plain))
        )
        assert max(errors(found, [y.double() for y in theirs])) <= 10 * ROUNDING


@pytest.mark.full
def test_the_operators_with_angles_are_registered_as_torch_expects():
    q, k, v, _ = (x.requires_grad_() for x in tensors(10, heads=1))
    choices = backend.plan.make(get("lssar"), 32).choices
    given = (q, k, v, None, None, True, "split", *choices, *angles(q))
    library.opcheck(backend.ops.attention_forward, given)
    torch._dynamo.reset()
    whole = torch.compile(
        lambda q, k, v: backend.attend(q, k, v, get("lssar"), None, angles(q)),
        backend="aot_eager",
        fullgraph=True,
    )
    own = backend.attend(q, k, v, get("lssar"), None, angles(q))
    torch.testing.assert_close(whole(q, k, v), own, rtol=0, atol=1e-6)
    upstream = torch.randn_like(own)
    for found, expected in zip(
        torch.autograd.grad(whole(q, k, v), (q, k, v), upstream),
        torch.autograd.grad(own, (q, k, v), upstream),
        strict=True,
    ):
        torch.testing.assert_close(found, expected, rtol=0, atol=1e-5)
