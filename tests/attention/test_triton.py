"""The fused kernels, run by Triton's interpreter, against the float64 reference."""

import dataclasses
import functools
import sys
import types

import pytest
import torch

from attention import attend, explain, get, reference
from attention.triton import backend
from tests.attention.fused import (
    DEVICE,
    MARKS,
    SERVED,
    check,
    learned,
    run,
    specification,
    tau_of,
    tensors,
)
from tests.tiers import corners

pytestmark = MARKS


def test_it_serves_the_variants_it_is_for():
    wanted = {
        "softmax", "lssa", "lssar", "softmax_reweighted", "sigmoid_reweighted", "sigmoid",
        "sigmoid_rowlen", "sigmoid_rowlen_l1", "relu_wortsman", "relu_li", "relu_shen",
        "phi_relu", "phi_relu2", "phi_relu6", "phi_sigmoid", "phi_softplus", "phi_exp",
        "elastic", "elastic_head", "elastic_seqlen", "elastic_fixed", "lazy", "lazy_no_elastic",
    }  # fmt: skip
    assert wanted <= set(SERVED)


@pytest.mark.parametrize(
    "name",
    [pytest.param(n, marks=() if n in ("lssa", "lssar", "elastic", "lazy") else pytest.mark.full)
     for n in SERVED],
)  # fmt: skip
def test_values_and_every_gradient(name):
    check(specification(name), tensors(70))


def test_learned_numbers_of_any_layout():
    spec, (q, k, v, _) = specification("lazy"), tensors(40)
    dense = learned(spec)
    spread = {
        "tau": torch.stack([dense["tau"], dense["tau"] + 1], dim=1)[:, 0],
        "bias": dense["bias"].T.contiguous().T,
    }
    assert not any(x.is_contiguous() for x in spread.values())
    expected = backend.attend(q, k, v, spec, dense)
    assert torch.equal(backend.attend(q, k, v, spec, spread), expected)


def test_a_row_without_positive_scores_is_zero():
    q, k, v, upstream = tensors(20, heads=1)
    q, k = torch.ones_like(q), -torch.ones_like(k)
    for found in run(backend.attend, [q, k, v, upstream], get("relu_li"), {}, torch.float32):
        assert torch.all(found == 0)


def test_no_queries():
    q, k, v, _ = tensors(0, 5)
    assert attend(q, k, v, "lssar", backend="triton").shape == (1, 2, 0, 32)
    assert attend(q, q, q, "lssar").shape == (1, 2, 0, 32)
    leaves = [x.requires_grad_() for x in (q, k, v[..., :16])]
    out = attend(*leaves, "lssar")
    assert out.shape == (1, 2, 0, 16)
    for gradient in torch.autograd.grad(out.sum(), leaves):
        assert torch.all(gradient == 0)


def test_nothing_is_saved_without_a_gradient():
    q, k, v, _ = tensors(10)
    choices = backend.plan.make(get("lssar"), 32).choices
    _, *saved = backend.ops.attention_forward(q, k, v, None, None, False, "split", *choices)
    assert all(x.numel() == 0 for x in saved)


def test_reasons():
    q = torch.zeros(1, 1, 8, 32, device=DEVICE)
    if DEVICE == "cpu":
        assert "interpreter" in explain("lssar", q).refused["triton"]
    for name, word in (("phi_gelu", "gelu"), ("sparsemax", "sparsemax"), ("streaming", "mask")):
        assert word in explain(name, q).refused["triton"]
        with pytest.raises(ValueError, match=word):
            attend(q, q, q, name, backend="triton")
    for other, word in (
        (q.expand(1, 1, 8, 32).repeat(1, 1, 1, 5), "head dim 160 is above 128"),
        (q.half().expand(1, 1, 8, 32).repeat(1, 1, 1, 9), "head dim 288 is above 256"),
        (q.double(), "float64"),
    ):
        assert word in explain("lssar", other).refused["triton"]
        with pytest.raises(ValueError, match=word):
            attend(other, other, other, "lssar", backend="triton")
    assert "overflow" in explain("phi_relu2", q.half()).refused["triton"]
    assert "unbounded" in explain("lssar", q.half(), p=0.5).refused["triton"]
    long = torch.zeros(1, 1, 70_000, 32, dtype=torch.float16, device=DEVICE)
    assert "overflows float16" in explain("elastic", long).refused["triton"]
    last = long[:, :, -1:]  # its weight is multiplied by its place among the keys
    assert "70000 times" in explain("elastic", last, v=long).refused["triton"]
    with pytest.raises(ValueError, match="70000 times a weight overflows float16"):
        attend(last, long, long, "elastic", backend="triton", parameters=tau_of("elastic", 1))
    refuse = dataclasses.replace(get("lazy"), beyond="refuse")
    assert "refuse" in backend.refuses(refuse, q)


def test_reasons_of_a_device(monkeypatch):
    monkeypatch.setattr(backend, "INTERPRETED", False)
    q = torch.zeros(1, 1, 8, 32)
    assert "need a CUDA device" in explain("lssar", q).refused["triton"]
    with pytest.raises(ValueError, match="need a CUDA device"):
        attend(q, q, q, "lssar", backend="triton")


@pytest.mark.parametrize(
    ("capability", "shared", "hip", "reason"),
    [
        ((9, 0), 227, None, None),
        ((8, 9), 99, None, None),
        ((13, 7), 120, None, None),
        ((7, 5), 64, None, "64 KiB of shared memory a block are less than the 99 KiB"),
        ((9, 0), 227, "6.2", "NVIDIA"),
    ],
)
def test_reasons_of_a_gpu(capability, shared, hip, reason, monkeypatch):
    names = "major", "minor", "shared_memory_per_block_optin"
    found = types.SimpleNamespace(**dict(zip(names, (*capability, shared * 1024), strict=True)))
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda device: found)
    monkeypatch.setattr(backend.passes, "INTERPRETED", False)
    whole = backend.passes.architecture.__wrapped__
    monkeypatch.setattr(backend.passes, "architecture", whole)
    monkeypatch.setattr(torch.version, "hip", hip)
    lacks = backend._missing.__wrapped__(0)
    assert lacks is None if reason is None else reason in lacks


@pytest.mark.full
def test_a_graph_holds_the_answer_whether_a_gpu_serves(monkeypatch):
    found = types.SimpleNamespace(major=9, minor=0, shared_memory_per_block_optin=227 * 1024)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda device: found)
    monkeypatch.setattr(backend.passes, "INTERPRETED", False)
    for cached in (backend._missing, backend.passes.architecture):
        monkeypatch.setattr(sys.modules[cached.__module__], cached.__name__, plainly(cached))
    torch._dynamo.reset()
    graph = torch.compile(
        lambda x: x + (backend._lacks(0) is None), fullgraph=True, backend="eager"
    )
    assert graph(torch.zeros(())) == 1


def plainly(cached):
    """Return a cached function with an empty cache of its own."""
    return functools.cache(cached.__wrapped__)


@pytest.mark.parametrize(
    ("name", "dim"),
    corners([*(("lssar", x) for x in (1, 16, 24, 48, 80, 96)), ("lazy", 80)], ("lssar", 16)),
)
def test_head_dims_between_those_of_the_tiles(name, dim):
    """Channels of zeros change nothing but the time."""
    check(specification(name), tensors(40, dim=dim))


@pytest.mark.parametrize("width", [16, 64])
def test_values_of_another_width_are_left_to_others(width):
    q, k, v, _ = tensors(20)
    wide = torch.cat([v, v], dim=-1)[..., :width]
    expected = reference.attend(q, k, wide, get("lssar"))
    torch.testing.assert_close(attend(q, k, wide, "lssar"), expected)
    reason = f"values of {width} channels"
    assert reason in explain("lssar", q, v=wide).refused["triton"]
    with pytest.raises(ValueError, match=reason):
        attend(q, k, wide, "lssar", backend="triton")


def test_tensors_on_two_devices():
    q = torch.zeros(1, 1, 8, 32)
    with pytest.raises(ValueError, match="cpu, meta and cpu"):
        attend(q, q.to("meta"), q, "lssar")
