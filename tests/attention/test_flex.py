"""FlexAttention: the same weights as the reference, and reasons where it cannot serve."""

import dataclasses
import warnings

import pytest
import torch
from torch._subclasses import FakeTensorMode

from attention import attend, backends, explain, get, reference
from attention.backends import flex
from attention.catalogue import CATALOGUE

SIZES = {"head": 3, "distance": 9}
FULL = pytest.mark.full


def small(spec):
    """Shorten windows and tables so that a short sequence reaches past them."""
    changes = {"length": 21, "window": 5, "sinks": 2, "max_distance": SIZES["distance"]}
    return dataclasses.replace(spec, **{k: v for k, v in changes.items() if k in spec.arguments})


def tensors(n=3, dtype=torch.float64):
    generator = torch.Generator().manual_seed(0)
    return (torch.randn(2, 3, 21, 8, dtype=dtype, generator=generator) for _ in range(n))


def learned(spec):
    generator = torch.Generator().manual_seed(1)
    return {
        name: 0.3 * torch.randn([SIZES[d] for d in dims], dtype=torch.float64, generator=generator)
        for name, dims in spec.learned.items()
    }


SERVED = [s for s in map(small, CATALOGUE) if not flex.refuses(s, torch.zeros(1, 1, 1, 2))]


def test_it_serves_the_published_two_stage_variants():
    served = {spec.name for spec in SERVED}
    assert {"softmax", "lssa", "lssar", "elastic", "lazy", "alibi", "streaming"} <= served


@FULL
@pytest.mark.parametrize(
    ("name", "last"),
    [
        ("softmax", 1), ("sigmoid_rowlen_l1", 21), ("phi_softplus", 4), ("lssa", 21), ("lssar", 4),
        ("sigmoid_reweighted", 21), ("log_scaled", 21), ("cosine", 1), ("elastic_head", 21),
        ("elastic_seqlen", 4), ("lazy", 4), ("lazy_no_elastic", 21), ("streaming", 4), ("alibi", 1),
    ],
)  # fmt: skip
def test_it_equals_the_reference(name, last):
    """Each phi, scale, shift, bias, mask and second stage, for all queries and for the last."""
    q, k, v = tensors()
    spec = next(spec for spec in SERVED if spec.name == name)
    q, parameters = q[:, :, -last:], learned(spec)
    found = flex.attend(q, k, v, spec, parameters)
    expected = reference.attend(q, k, v, spec, parameters)
    torch.testing.assert_close(found, expected, rtol=1e-11, atol=1e-12)


@pytest.mark.full
@pytest.mark.parametrize("beyond", ["zero", pytest.param("last", marks=FULL)])
def test_biases_beyond_their_range_follow_the_rule(beyond):
    spec = dataclasses.replace(small(next(s for s in CATALOGUE if s.name == "lazy")), beyond=beyond)
    q, k, v = tensors()
    found = flex.attend(q, k, v, spec, learned(spec))
    torch.testing.assert_close(found, reference.attend(q, k, v, spec, learned(spec)))


@pytest.mark.full
@pytest.mark.parametrize(
    "name", ["lssar", *(pytest.param(x, marks=FULL) for x in ("softmax_reweighted", "elastic"))]
)
def test_dead_rows_are_zero(name):
    q, k, v = torch.ones(3, 1, 2, 9, 8, dtype=torch.float64)
    spec = next(s for s in CATALOGUE if s.name == name)
    parameters = {n: torch.ones(2, dtype=torch.float64) for n in spec.learned}
    out = flex.attend(q, k, v, spec, parameters)
    torch.testing.assert_close(out, reference.attend(q, k, v, spec, parameters))
    assert out[..., 3:, :].abs().max() < 2e-15  # two roundings of 1 are 4.4e-16


@FULL
@pytest.mark.parametrize(("width", "few"), [(32, 16), (8, 8)])
@pytest.mark.parametrize("name", ["lssar", "elastic"])
def test_the_first_of_two_calls_reads_as_few_values_as_it_may(name, width, few, monkeypatch):
    shapes = []
    plain = flex._eager

    def call(q, k, v, **options):
        shapes.append((q.shape[-1], v.shape[-1], v.requires_grad))
        return plain(q, k, v, **options)

    monkeypatch.setattr(flex, "_eager", call)
    spec = next(s for s in CATALOGUE if s.name == name)
    q, k, v = torch.randn(3, 1, 3, 21, width, dtype=torch.float64)
    parameters = {n: torch.ones(3, dtype=torch.float64) for n in spec.learned}
    out = flex.attend(q, k, v, spec, parameters)
    assert shapes == [(width, few, False), (width, width, False)]
    torch.testing.assert_close(out, reference.attend(q, k, v, spec, parameters))


@pytest.fixture
def long(monkeypatch):
    """Give a function that returns tokens on a GPU that is not there and has no tiles."""
    monkeypatch.setattr(backends, "_warn_once", backends._warn_once.__wrapped__)
    monkeypatch.setattr(backends.triton, "_lacks", lambda device: "no tiles fit")
    monkeypatch.setattr(backends.reference, "attend", lambda q, *_: q)
    with FakeTensorMode():
        yield lambda length: torch.zeros(1, 1, length, 8, device="cuda")


def test_auto_takes_it_on_a_gpu_where_all_pairs_would_be_too_many(long):
    assert explain("lssar", long(flex.LONG + 1)).chosen == "flex"
    short = explain("lssar", long(flex.LONG))
    assert short.chosen == "reference"
    assert "not been measured" in short.refused["flex"]


def test_auto_says_what_it_falls_to(long):
    with pytest.warns(UserWarning, match=r"2048 keys on a GPU.*; flex: phi identity"):
        attend(*3 * [long(flex.LONG + 1)], "raw")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        attend(*3 * [long(flex.LONG + 1)], "raw", backend="reference")
        attend(*3 * [long(flex.LONG)], "raw")


def test_it_says_why_it_does_not_serve():
    q, k, v = tensors(dtype=torch.float32)
    assert "no logarithm" in explain("raw", q).refused["flex"]
    assert "l1-normalised" in explain("sigmoid", q, length=21).refused["flex"]
    chosen = explain("lssar", q)
    assert chosen.chosen == "blocked"
    assert "CPU" in chosen.refused["flex"]
    assert explain("lssar", q, backend="flex").chosen == "flex"
    for place in range(3):
        given = [x.clone().requires_grad_(i == place) for i, x in enumerate((q, k, v))]
        with pytest.raises(ValueError, match="no backward on a CPU"):
            attend(*given, "lssar", backend="flex")


@pytest.mark.parametrize("mode", [torch.inference_mode, FakeTensorMode])
def test_a_call_under_a_mode_leaves_nothing_to_those_after_it(mode):
    def attended():
        return attend(*(torch.ones(1, 2, 21, 8) for _ in range(3)), "sliding_window", window=5,
                      backend="flex")  # fmt: skip

    flex._block_mask.cache_clear()
    with mode():
        attended()
    assert type(attended()) is torch.Tensor
    spec = get("sliding_window", window=5)
    kept = flex._block_mask(spec.mask, spec.window, spec.sinks, 21, 21, "cpu")
    assert flex._block_mask.cache_info().currsize == 1
    assert type(kept.kv_indices) is torch.Tensor
    assert not kept.kv_indices.is_inference()
