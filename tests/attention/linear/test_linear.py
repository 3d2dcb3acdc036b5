"""Linear attention against its definition with all weights, and what its options do."""

import numpy as np
import pytest
import torch

import attention


def inputs(length, width=8, seed=5):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(2, length, width, generator=generator, dtype=torch.float64)


def mixer_of(**args):
    torch.manual_seed(0)
    return attention.build("linear", n_head=2, head_dim=4, **args).double()


def by_hand(mixer, x, base=None):
    """Return the layer's output of one sequence [L, W] from its weights, [H, L, L]."""
    length = len(x)
    q, k, v = (
        (x @ getattr(mixer, name).weight.detach().numpy().T).reshape(length, 2, 4).swapaxes(0, 1)
        for name in ("query", "key", "value")
    )
    q, k = (np.where(z > 0, z + 1, np.exp(z)) for z in (q, k))
    scores = np.tril(q @ k.swapaxes(1, 2))
    total = scores.sum(axis=-1, keepdims=True)
    if base is not None:
        turns = np.exp(1j * np.arange(length)[:, None] / base ** (np.arange(2) / 2))
        q, k = ((z[..., :2] + 1j * z[..., 2:]) * turns for z in (q, k))
        scores = np.tril((q @ k.conj().swapaxes(1, 2)).real)
    mixed = (scores / total @ v).swapaxes(0, 1).reshape(length, 8)
    return mixed @ mixer.project.weight.detach().numpy().T


@pytest.mark.parametrize("base", [None, 50.0])
def test_both_forms_are_the_definition(base):
    mixer, x = mixer_of(rope_base=base, chunk=3), inputs(11)
    expected = torch.tensor(np.stack([by_hand(mixer, row.numpy(), base) for row in x]))
    for run in (mixer, mixer.recurrent):
        torch.testing.assert_close(run(x).detach(), expected, rtol=0, atol=1e-12)


def test_order_matters_with_positions_alone():
    x = inputs(6)
    swapped = x[:, [1, 0, 2, 3, 4, 5]]
    for given, same in (({"rope_base": None}, True), ({}, False)):
        mixer = mixer_of(**given)
        assert torch.allclose(mixer(x)[:, 5], mixer(swapped)[:, 5], atol=1e-12) is same


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_features_that_vanish_give_nothing(dtype):
    mixer, x = mixer_of().to(dtype), inputs(5).to(dtype)
    with torch.no_grad():
        mixer.key.weight.zero_()[:, 0] = -1e4
    x[..., 0] = 1
    x = x.requires_grad_()
    out = mixer(x)
    out.sum().backward()
    assert torch.all(out == 0)
    assert x.grad.isfinite().all()


@pytest.mark.parametrize("logit", [-8.0, -20.0, -40.0])
def test_small_features_are_averaged_as_large_ones(logit):
    mixer, x = mixer_of(rope_base=None).float(), inputs(5).float()
    with torch.no_grad():
        for layer in (mixer.query, mixer.key):
            layer.weight.zero_()[:, 0] = logit
    x[..., 0] = 1
    x.requires_grad_()
    count = torch.arange(1, 6)[:, None]
    expected = mixer.project(mixer.value(x).cumsum(dim=1) / count)
    torch.testing.assert_close(mixer(x), expected, rtol=0, atol=1e-5)
    mixer(x).sum().backward()
    assert x.grad.isfinite().all()
