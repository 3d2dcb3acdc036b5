"""The rotation kernel, run by Triton's interpreter, against the plain form."""

import pytest
import torch
from torch.autograd import forward_ad

from attention import build
from attention.parts import rotations
from attention.positions import rope, rotated, rotation
from attention.triton import backend
from tests.attention.fused import DEVICE, MARKS

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
