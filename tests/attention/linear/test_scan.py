"""The scan and the long convolution against loops over their equations."""

import functools
import importlib
import itertools

import numpy as np
import pytest
import torch

from attention.linear import _fft, _scan, fla


def inputs(length, complex_numbers=False, shared=False):
    rng = np.random.default_rng(length)

    def drawn(*shape):
        parts = [rng.normal(size=shape) for _ in range(2)]
        return torch.from_numpy(parts[0] + 1j * parts[1] if complex_numbers else parts[0])

    a = drawn(1 if shared else 2, length, 3)
    a = a / (0.8 + a.abs())
    return [x.requires_grad_() for x in (a, drawn(2, length, 3), drawn(2, 3))]


def by_loops(a, b, state):
    rows = []
    for n, t, i in itertools.product(range(b.shape[0]), range(b.shape[1]), range(b.shape[2])):
        before = rows[-b.shape[2]] if t else state[n, i]
        rows.append(a[min(n, len(a) - 1), t, i] * before + b[n, t, i])
    return torch.stack(rows).view(b.shape)


def compared(run, leaves):
    out = run(*leaves)
    weight = torch.linspace(-1, 1, out.numel(), dtype=torch.float64).view(out.shape)
    total = (weight * torch.view_as_real(out).sum(-1) if out.is_complex() else weight * out).sum()
    return [out, *torch.autograd.grad(total, leaves)]


@pytest.mark.parametrize("length", [1, 2, 3, 11])
@pytest.mark.parametrize(("kind", "shared"), [(False, False), (True, False), (True, True)])
def test_scan_is_the_recurrence_in_values_and_gradients(length, kind, shared):
    leaves = inputs(length, kind, shared)
    expected = compared(by_loops, leaves)
    for run in (_scan.scan, _scan.by_steps):
        for found, wanted in zip(compared(run, leaves), expected, strict=True):
            torch.testing.assert_close(found, wanted, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("complex_numbers", [False, True])
def test_the_gradient_of_the_scan_has_a_gradient(complex_numbers):
    leaves = inputs(7, complex_numbers)
    assert torch.autograd.gradgradcheck(_scan.scan, leaves)
    towards = [torch.ones_like(x) for x in leaves]

    def second(run):
        def size(a, b, state):
            return run(a, b, state).abs().square().sum()

        return torch.autograd.functional.hvp(size, tuple(leaves), tuple(towards))[1]

    for found, wanted in zip(second(_scan.scan), second(_scan.by_steps), strict=True):
        torch.testing.assert_close(found, wanted)


def test_gradients_of_the_scan_are_mapped_over_examples():
    a, b, state = (x.detach() for x in inputs(6))

    def size(run, a, b, state):
        return run(a[None], b[None], state[None]).square().sum()

    for found, wanted in zip(
        *(
            torch.func.vmap(torch.func.grad(functools.partial(size, run), argnums=(0, 1, 2)))(
                a, b, state
            )
            for run in (_scan.scan, _scan.by_steps)
        ),
        strict=True,
    ):
        torch.testing.assert_close(found, wanted)


def test_factors_of_0_and_1_are_exact():
    a = torch.tensor([0.0, 1.0]).expand(1, 9, 2)
    h = _scan.scan(a, torch.ones(1, 9, 2), torch.full((1, 2), 5.0))
    assert torch.equal(h[0, :, 0], torch.ones(9))
    assert torch.equal(h[0, :, 1], torch.arange(6.0, 15.0))


@pytest.mark.skipif(not fla.installed(), reason="fla-core or einops is not installed")
@pytest.mark.full
def test_real_scan_is_flas_recurrence_of_hgrn():
    naive = importlib.import_module("fla.ops.hgrn.naive").naive_recurrent_hgrn
    generator = torch.Generator().manual_seed(0)
    x, g, state = (torch.randn(2, n, 5, generator=generator) for n in (37, 37, 1))
    g = torch.nn.functional.logsigmoid(g)
    wanted, last = naive(x, g, state[:, 0], output_final_state=True)
    found = _scan.scan(g.exp(), x, state[:, 0])
    torch.testing.assert_close(found, wanted, rtol=1e-6, atol=1e-6)
    torch.testing.assert_close(found[:, -1], last, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize(("length", "size"), [(1, 1), (7, 3), (8, 8)])
def test_convolution_is_its_sum(length, size):
    rng = np.random.default_rng(0)
    x, taps = rng.normal(size=(2, 3, length)), rng.normal(size=(3, size))
    wanted = np.zeros(x.shape)
    for t, j in itertools.product(range(length), range(size)):
        if j <= t:
            wanted[..., t] += taps[:, j] * x[..., t - j]
    for chunk, last in ((None, length), (64, length), (None, 1), (64, 1)):
        found = _fft.convolved(torch.from_numpy(x), torch.from_numpy(taps), last, chunk)
        np.testing.assert_allclose(found, wanted[..., length - last :], rtol=0, atol=1e-13)
