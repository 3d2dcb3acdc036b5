"""ZeroS as three decayed sums: with PyTorch's sum in float64, and as calls of fla's kernel."""

import functools

import pytest
import torch

import attention
from attention.linear import _decay, _zeros_triton, fla
from attention.linear import _zeros_forms as forms

needs_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
needs_fla = pytest.mark.skipif(not fla.installed(), reason="fla-core or einops is not installed")


def inputs(length, keys=4, state=False, size=1.0, dtype=torch.float64):
    """Return q, k, v, s, radial and perhaps a state's tensors; s is ``size`` times normal."""
    generator = torch.Generator().manual_seed(length)
    shapes = [(length, keys), (length, keys), (length, 4), (length,), (length, 3)]
    if state:
        shapes += [(), (), (3 * keys, 4)]
    made = [torch.randn(2, 3, *shape, generator=generator, dtype=torch.float64) for shape in shapes]
    made[3] *= size
    return [x.to(dtype) for x in made]


def run(form, given, *extra):
    """Return o, the last state and the gradients of all inputs."""
    leaves = [x.detach().requires_grad_() for x in given]
    q, k, v, s, radial, *first = leaves
    state = forms.ScanState(*first, length=5) if first else forms.ScanState.empty(k, v)
    out, last = form(q, k, v, s, radial, state, *extra)
    assert last.length == state.length + s.shape[-1]
    results = [out, last.log_e, last.p, last.bases]
    gradients = torch.autograd.grad(sum(x.sin().sum() for x in results), leaves)
    return [x.detach() for x in (*results, *gradients)]


@pytest.mark.parametrize("state", [False, True])
@pytest.mark.parametrize(("length", "keys"), [(1, 4), (13, 4), (20, 1)])
def test_the_decomposition_is_exact(length, keys, state):
    given = inputs(length, keys, state)
    decayed = functools.partial(_decay.chunked, chunk=5)
    found = run(forms.three_sums, given, decayed)
    for a, b in zip(found, run(forms.recurrent, given), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("size", [1e4, -1e4])
def test_logits_that_overflow_are_right(size):
    given = inputs(13, size=size)
    decayed = functools.partial(_decay.chunked, chunk=5)
    found = run(forms.three_sums, given, decayed)
    for a, b in zip(found, run(forms.recurrent, given), strict=True):
        assert a.isfinite().all()
        torch.testing.assert_close(a, b, rtol=1e-8, atol=1e-8 * float(b.abs().max()))


def test_one_basis_decays_as_a_share_and_two_stay():
    q, k, v, s, radial = inputs(12, size=100.0)
    seen = []

    def recorded(q, k, v, log_decay, state):
        seen.append((k, log_decay))
        return _decay.recurrent(q, k, v, log_decay, state)

    forms.three_sums(q, k, v, s, radial, forms.ScanState.empty(k, v), recorded)
    (share, shrinks), (_, second), (plain, third) = seen
    assert shrinks.isfinite().all()
    assert (shrinks <= 0).all()
    assert (shrinks < -1).any()
    assert not second.any()
    assert not third.any()
    assert plain is k
    assert (share.abs() <= k.abs() * (1 + 1e-12)).all()  # e^s / E is at most 1


def kernel_of(calls):
    """Return what stands for fla's kernel: heads come after positions, as there."""

    def kernel(q, k, v, g, *, scale, initial_state, output_final_state):
        assert (scale, output_final_state) == (1.0, True)
        calls.append(g.shape)
        given = (x.transpose(1, 2) for x in (q, k, v, g[..., None]))
        out, state = _decay.recurrent(*given, initial_state)
        return out.transpose(1, 2), state

    return kernel


def test_the_layer_makes_three_calls_of_flas_kernel(monkeypatch):
    layer = attention.build("zeros", n_head=2, head_dim=4, zeroth="all").double()
    x = torch.randn(2, 12, 8, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    expected = layer.recurrent(x)
    calls = []

    def chosen(package, name):
        assert (package, name) == ("simple_gla", "chunk_simple_gla")
        return kernel_of(calls)

    monkeypatch.setattr(fla, "head_refusal", lambda k, v: None)
    monkeypatch.setattr(fla, "_kernel", chosen)
    torch.testing.assert_close(layer(x), expected, rtol=0, atol=1e-9)
    assert calls == 3 * [(2, 12, 2)]
    cache = layer.new_cache()
    parts = [layer(part, cache) for part in x.split([5, 7], dim=1)]
    torch.testing.assert_close(torch.cat(parts, dim=1), expected, rtol=0, atol=1e-9)


@pytest.mark.gpu
@needs_gpu
@needs_fla
def test_flas_kernels_train_the_layer_on_a_gpu(monkeypatch):
    monkeypatch.setattr(_zeros_triton, "refusal", lambda k, v: "fla is wanted")
    wide = torch.zeros(1, 2, 2, 64, device="cuda")
    if reason := fla.head_refusal(wide, wide):
        pytest.skip(reason)
    torch.manual_seed(0)
    layer = attention.build("zeros", n_head=2, head_dim=64, norm=False).cuda()
    x = torch.randn(2, 300, 128, device="cuda", requires_grad=True)
    results = []
    for form in (layer.recurrent, layer.forward):
        out = form(x)
        weights = [layer.query.weight, layer.key.weight, layer.value.weight]
        gradients = torch.autograd.grad(out.square().sum(), [x, *weights])
        results.append([out, *gradients])
    for expected, found in zip(*results, strict=True):
        # Products of matrices in the kernels may be TF32, of 10 bits.
        assert (found - expected).norm() < 2e-2 * expected.norm()
