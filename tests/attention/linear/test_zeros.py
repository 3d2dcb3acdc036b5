"""ZeroS against its definition in numpy, position by position, and the facts of the paper."""

import numpy as np
import pytest
import torch

import attention
from attention.linear import _zeros_forms
from tests.attention.linear.zeros_by_hand import (
    by_hand,
    gradients_of,
    heads,
    inputs,
    logits_by_hand,
    mixer_of,
    sigmoid,
)

ABLATIONS = [
    {},
    {"radial": "softmax"},
    {"radial": "none"},
    {"logits": "averaging"},
    {"logits": "distance"},
    {"logits": "linear"},
    {"logits": "quadratic"},
    {"angular": "plain"},
    {"angular": "additive"},
    {"angular": "none"},
    {"zeroth": "first"},
    {"zeroth": "all", "decay": True},
    {"zeroth": "all", "gated": False},
    {"gated": False},
    {"norm": False},
    {"rescale": False},
    {"decay": True},
    {"rope_base": 100.0, "radial": "softmax", "logits": "quadratic"},
    {"causal": False},
    {"causal": False, "decay": True, "zeroth": "all", "norm": False},
    {"causal": False, "logits": "distance", "angular": "additive"},
    {"causal": False, "radial": "softmax", "angular": "none"},
]


TABLE = 4e-6
"""The additive code of positions is a float32 table of the processor's sine: 8.4e-7 measured."""


@pytest.mark.parametrize("args", ABLATIONS, ids=str)
def test_every_form_of_every_ablation_is_the_definition(args):
    mixer, x = mixer_of(chunk=5, **args), inputs(13)
    expected = torch.tensor(np.stack([by_hand(mixer, row.numpy()) for row in x]))
    tolerance = TABLE if mixer.args["angular"] == "additive" else 1e-11
    for run in (mixer.explicit, mixer.recurrent, mixer):
        torch.testing.assert_close(run(x).detach(), expected, rtol=0, atol=tolerance)


@pytest.mark.parametrize("args", ABLATIONS, ids=str)
def test_every_form_has_the_gradients_of_the_definition(args):
    mixer, x = mixer_of(chunk=5, **args), inputs(13)
    expected = gradients_of(mixer, mixer.explicit, x)
    for run in (mixer.recurrent, mixer):
        for a, b in zip(gradients_of(mixer, run, x), expected, strict=True):
            torch.testing.assert_close(a, b, rtol=0, atol=1e-9)
    for gradient in expected[1:]:
        assert gradient.abs().max() > 1e-6


def test_the_published_scan_is_the_same_sum():
    """Sect. 3.3, literally: o_t = q_t (alpha F + beta G + gamma H) with its E, P, F, G and H."""
    mixer, x = mixer_of(norm=False, zeroth="all"), inputs(9, batch=1)[0].numpy()
    s = logits_by_hand(mixer, x)
    v, gates = heads(mixer, "value", x), heads(mixer, "gates", x)
    parts = mixer._parts(torch.tensor(x)[None], mixer.new_cache())
    q, k = (z[0].detach().numpy() for z in parts[:2])
    found = np.empty((2, 9, 4))
    for head in range(2):
        for t in range(1, 10):
            logits = s[head, :t]
            outer = k[head, :t, :, None] * v[head, :t, None, :]
            E, P = np.exp(logits).sum(), logits.sum()
            F = (np.exp(logits)[:, None, None] * outer).sum(axis=0)
            G, H = (logits[:, None, None] * outer).sum(axis=0), outer.sum(axis=0)
            first, higher = sigmoid(gates[head, t - 1, :2])
            zeroth = np.tanh(gates[head, t - 1, 2])
            alpha, beta = higher / E, (first - higher) / t
            gamma = (P / t**2 - 1 / t) * higher - P / t**2 * first + zeroth / t
            found[head, t - 1] = q[head, t - 1] @ (alpha * F + beta * G + gamma * H)
    expected = found.swapaxes(0, 1).reshape(9, 8) @ mixer.project.weight.detach().numpy().T
    out = mixer(torch.tensor(x)[None])[0].detach().numpy()
    np.testing.assert_allclose(out, expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("norm", [True, False])
def test_the_first_output_is_zero_unless_the_zeroth_order_is_restored(dtype, norm):
    x = inputs(5).to(dtype)
    for length in (1, 5):
        for run in ("forward", "recurrent", "explicit"):
            without = getattr(mixer_of(dtype=dtype, norm=norm), run)(x[:, :length])
            restored = mixer_of(dtype=dtype, norm=norm, zeroth="all")
            assert torch.all(without[:, 0] == 0)
            assert torch.all(getattr(restored, run)(x[:, :length])[:, 0] != 0)


def test_the_zeroth_order_is_restored_in_the_first_layer_or_in_all():
    for zeroth, layers in (("none", []), ("first", [0]), ("all", [0, 1, 2])):
        stack = [mixer_of(zeroth=zeroth, layer=layer) for layer in range(3)]
        assert [layer for layer, mixer in enumerate(stack) if mixer.restores] == layers
        assert [m.gates.out_features for m in stack] == [6 if m.restores else 4 for m in stack]


def test_the_norm_leaves_late_positions_their_size():
    torch.manual_seed(0)
    mixer, x = attention.build("zeros", n_head=2, head_dim=8), inputs(4096, width=16, batch=1)
    with torch.no_grad():
        mixer.project.weight.copy_(torch.eye(16))
        sizes = mixer(x.float())[0].square().mean(dim=-1).sqrt()
    assert bool((sizes[4000:] > 0.9).all())
    assert bool((sizes < 1.001).all())


def test_a_vector_of_zeros_has_no_direction():
    mixer, x = mixer_of(), inputs(6)
    x[:, 2] = 0
    for gradient in gradients_of(mixer, mixer, x):
        assert gradient.isfinite().all()


@pytest.mark.parametrize("args", [a for a in ABLATIONS if a.get("causal", True)], ids=str)
def test_every_ablation_decodes_what_it_computes_at_once(args):
    mixer, x = mixer_of(chunk=5, **args), inputs(13)
    for run in (mixer, mixer.recurrent):
        cache = mixer.new_cache()
        parts = [run(part, cache) for part in x.split([1, 1, 6, 1, 4], dim=1)]
        tolerance = TABLE if mixer.args["angular"] == "additive" else 1e-11
        torch.testing.assert_close(torch.cat(parts, dim=1), mixer(x), rtol=0, atol=tolerance)


@pytest.mark.parametrize("chunk", [1, 7, 299, 500])
def test_long_sequences_do_not_depend_on_the_chunk(chunk):
    x = inputs(300)
    expected = mixer_of(chunk=64)(x)
    torch.testing.assert_close(mixer_of(chunk=chunk)(x), expected, rtol=0, atol=1e-11)


@pytest.mark.parametrize("tau", [-200.0, 90.0, 200.0])
def test_a_prior_of_any_weight_is_finite_and_right(tau):
    mixer, x = mixer_of(), inputs(9)
    with torch.no_grad():
        mixer.tau.fill_(tau)
    expected = torch.tensor(np.stack([by_hand(mixer, row.numpy()) for row in x]))
    torch.testing.assert_close(mixer(x).detach(), expected, rtol=0, atol=1e-11)
    out, *gradients = gradients_of(mixer.float(), mixer, x.float())
    torch.testing.assert_close(out.detach().double(), expected, rtol=0, atol=1e-3)
    assert all(gradient.isfinite().all() for gradient in gradients)


@pytest.mark.parametrize("size", [1.0, 100.0])
def test_deviations_that_overflow_and_equal_tokens_are_right(size):
    """At 100 times the input the deviation, a product, reaches 1e4."""
    mixer, x = mixer_of(chunk=4), size * inputs(13)
    equal = x[:, :1].expand_as(x)
    if size > 1:
        assert mixer._parts(x, mixer.new_cache())[3].abs().max() > 1e4
    for given in (x, equal):
        expected = torch.tensor(np.stack([by_hand(mixer, row.numpy()) for row in given]))
        for run in (mixer.explicit, mixer.recurrent, mixer):
            torch.testing.assert_close(run(given).detach(), expected, rtol=0, atol=1e-8)


@pytest.mark.parametrize("size", [1e2, 1e4, -1e4])
def test_logits_that_overflow_are_right(size):
    mixer, x = mixer_of(logits="linear", chunk=4), inputs(13)
    with torch.no_grad():
        mixer.logit.weight.mul_(size)
    logits = mixer._parts(x, mixer.new_cache())[3]
    assert logits.abs().max() > abs(size) / 2
    expected = torch.tensor(np.stack([by_hand(mixer, row.numpy()) for row in x]))
    for run in (mixer.explicit, mixer.recurrent, mixer):
        out, *gradients = gradients_of(mixer, run, x)
        torch.testing.assert_close(out.detach(), expected, rtol=0, atol=1e-9)
        assert all(gradient.isfinite().all() for gradient in gradients)
    single = mixer.float()
    for run in (single.explicit, single.recurrent, single):
        torch.testing.assert_close(run(x.float()).double(), expected, rtol=0, atol=0.02)


def test_an_encoder_sees_all_positions():
    mixer, x = mixer_of(causal=False), inputs(9)
    edited = x.clone()
    edited[:, 8] += 1
    assert (mixer(edited)[:, 0] - mixer(x)[:, 0]).abs().max() > 1e-3
    unordered, order = mixer_of(causal=False, angular="none"), torch.randperm(9)
    torch.testing.assert_close(unordered(x)[:, order], unordered(x[:, order]), rtol=0, atol=1e-12)
    cache = mixer.new_cache()
    mixer(x, cache)
    with pytest.raises(ValueError, match="causal=False reads a whole sequence, not parts of one"):
        mixer(x, cache)


def test_an_ablation_has_no_parameters_it_does_not_use():
    layers = {
        frozenset(): {"value", "project", "query", "key", "logit", "mu", "tau", "gates"},
        frozenset({("gated", False)}): {"value", "project", "query", "key", "logit", "mu", "tau"},
        frozenset({("angular", "none")}): {"value", "project", "logit", "mu", "tau", "gates"},
        frozenset({("radial", "none")}): {"value", "project", "query", "key"},
        frozenset({("radial", "softmax"), ("logits", "linear")}): {
            *("value", "project", "query", "key", "logit")
        },
    }
    for args, expected in layers.items():
        mixer = mixer_of(**dict(args))
        assert {name.split(".")[0] for name, _ in mixer.named_parameters()} == expected


def test_tables_show_what_differs():
    for args, label in (
        ({}, "zeros"),
        ({"norm": False, "rope_base": 100.0}, "zeros norm=False rope_base=100"),
        ({"zeroth": "all"}, "zeros zeroth=all"),
    ):
        assert attention.label("zeros", **args) == mixer_of(**args).label == label


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ({"radial": "max"}, "radial of zeros must be one of zero_sum, softmax, none, got 'max'"),
        ({"norm": 1}, "norm of zeros must be one of True, False, got 1"),
        (
            {"zeroth": "all", "radial": "softmax"},
            "zeros with radial softmax has no use for zeroth; leave it",
        ),
        ({"radial": "softmax", "gated": False}, "radial softmax has no use for gated; leave it"),
        ({"radial": "none", "logits": "linear"}, "radial none has no use for logits; leave it"),
        ({"angular": "plain", "rope_base": 5.0}, "angular plain has no use for rope_base; leave"),
        ({"n_head": 1, "head_dim": 3, "angular": "additive"}, "need an even width, got 3"),
    ],
)
def test_bad_arguments_are_refused(args, message):
    with pytest.raises(ValueError, match=message):
        attention.build("zeros", **{"n_head": 2, "head_dim": 4, **args})


def test_long_sequences_are_read_in_parts(monkeypatch):
    mixer, x = mixer_of(chunk=2), inputs(21)
    expected = gradients_of(mixer, mixer, x)
    monkeypatch.setattr(_zeros_forms, "AT_ONCE", 7)
    for a, b in zip(gradients_of(mixer, mixer, x), expected, strict=True):
        torch.testing.assert_close(a, b, rtol=0, atol=1e-11)
