"""Other ways through the same passes: sums of logarithms, and all gradients in one pass."""

import functools

import pytest
import torch
import triton.language as tl

from attention import attend, get
from attention.triton import backend, forward, stats
from attention.triton.launch import Launcher
from tests.attention.fused import (
    DEVICE,
    MARKS,
    errors,
    learned,
    run,
    specification,
    tensors,
)

pytestmark = [*MARKS, pytest.mark.full]


def rows_of(inputs, spec, lowest, monkeypatch):
    """Return the output and the numbers of each row, with a bound for logarithms."""
    for module in (stats, forward):
        monkeypatch.setattr(module, "LOWEST_OF_LOGARITHMS", tl.constexpr(lowest))
    choices = backend.plan.make(spec, inputs[0].shape[3]).choices
    out, rows, *_ = backend.ops.attention_forward(*inputs[:3], None, None, True, "split", *choices)
    return out.double(), rows.double()


def test_softplus_by_logarithms_is_that_by_polynomials(monkeypatch):
    """Below the bound the polynomials are taken, and must be."""
    if DEVICE == "cuda":
        pytest.skip("a compiled kernel keeps its bound")
    spec, inputs = get("lssar"), tensors(100, heads=1, dim=64, dtype=torch.float16)
    shipped = stats.LOWEST_OF_LOGARITHMS.value
    always, never = -100.0, 100.0
    twin = rows_of(inputs, spec, never, monkeypatch)
    found = rows_of(inputs, spec, shipped, monkeypatch)
    assert not torch.equal(found[1], twin[1])
    assert max(errors(found, twin)) < 2e-4

    inputs[1] = -inputs[0][:, :, :1].expand_as(inputs[1]) + 0.1 * inputs[1]
    inputs[0] = inputs[0][:, :, :1] + 0.1 * inputs[0]
    twin = rows_of(inputs, spec, never, monkeypatch)
    assert all(map(torch.equal, rows_of(inputs, spec, shipped, monkeypatch), twin))
    by_logarithms, _ = rows_of(inputs, spec, always, monkeypatch)
    assert not torch.allclose(by_logarithms, twin[0], rtol=0.1, atol=0.1)


@pytest.mark.parametrize(
    ("name", "queries", "dtype"),
    [("lssar", 70, torch.float32), ("lssar", 17, torch.float32), ("lssar", 70, torch.bfloat16),
     ("elastic", 70, torch.float32), ("softmax", 70, torch.float32), ("lssa", 17, torch.float32),
     ("lazy", 70, torch.float32), ("alibi", 70, torch.float32)],
)  # fmt: skip
def test_one_pass_for_all_gradients_equals_two(name, queries, dtype, monkeypatch):
    launched = launches(monkeypatch)
    spec, inputs = specification(name), tensors(queries, 70, dtype=dtype)
    two = run(backend.attend, inputs, spec, learned(spec), dtype)
    assert "dq_kernel" in launched
    launched.clear()
    atomic = functools.partial(backend.attend, gradients="atomic")
    one = run(atomic, inputs, spec, learned(spec), dtype)
    assert ("dq_kernel" in launched) == (name == "lazy")  # a learned bias has two passes
    allowed = 1e-6 if dtype == torch.float32 else 2e-3
    assert max(errors(one, [x.double() for x in two])) < allowed


def launches(monkeypatch):
    """Return the list to which the names of launched kernels are added."""
    found, launch = [], Launcher.__call__

    def listed(self, *arguments):
        found.append(self.kernel.__name__)
        return launch(self, *arguments)

    monkeypatch.setattr(Launcher, "__call__", listed)
    return found


def test_deterministic_algorithms_have_two_passes(monkeypatch):
    launched = launches(monkeypatch)
    q, k, v, upstream = (x.requires_grad_() for x in tensors(20))
    try:
        torch.use_deterministic_algorithms(True)
        attend(q, k, v, "lssar", backend="triton_atomic").backward(upstream)
    finally:
        torch.use_deterministic_algorithms(False)
    assert "dq_kernel" in launched
    assert "finish_kernel" not in launched


def test_an_unknown_way_of_the_backward_pass_is_refused():
    with pytest.raises(ValueError, match="must be split, atomic, exact, got 'atomics'"):
        backend.attend(*tensors(8)[:3], specification("lssa"), None, gradients="atomics")
