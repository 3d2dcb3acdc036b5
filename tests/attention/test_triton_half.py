"""In half precision the kernels err at most twice as much as the same equations in eager torch."""

import pytest
import torch

from attention import get, reference
from attention.triton import backend, tiles
from benchmarks.cost import eager
from tests.attention.fused import (
    DEVICE,
    MARKS,
    SERVED,
    errors,
    learned,
    plain,
    run,
    specification,
    tensors,
)

pytestmark = [*MARKS, pytest.mark.full]
BOTH = torch.float16, torch.bfloat16
DTYPES = pytest.mark.parametrize("dtype", BOTH, ids=str)
IN_BOTH = ("softmax", "lssar", "sigmoid", "elastic", "lazy")
"""A variant of each second stage, and of a phi that is no exponential."""


def halves():
    """Yield each variant with float16, in which more can overflow, or else with bfloat16."""
    for name in SERVED:
        q = torch.zeros(1, 1, 100, 64, dtype=torch.float16, device=DEVICE)
        narrow = backend.refuses(specification(name), q) is not None
        yield from ((name, x) for x in (BOTH if name in IN_BOTH else BOTH[narrow : narrow + 1]))


@pytest.fixture(autouse=True)
def large_tiles(monkeypatch):
    if DEVICE == "cpu":  # the interpreter's time goes by tiles; small ones are test_triton's
        monkeypatch.setattr(tiles, "tile", lambda *_: tiles.Tile(128, 128, 4, 1))


def check(spec, inputs, dtype, theirs=plain):
    parameters = learned(spec, inputs[0].shape[1])
    expected = run(reference.attend, inputs, spec, parameters, torch.float64)
    ours = errors(run(backend.attend, inputs, spec, parameters, dtype), expected)
    others = errors(run(theirs, inputs, spec, parameters, dtype), expected)
    assert all(x <= 2 * y for x, y in zip(ours, others, strict=True)), (ours, others)


@pytest.mark.parametrize(("name", "dtype"), halves(), ids=str)
def test_every_variant(name, dtype):
    spec = specification(name)
    inputs = tensors(100, heads=1, dim=64, dtype=dtype)
    if reason := backend.refuses(spec, inputs[0]):
        pytest.skip(reason)
    check(spec, inputs, dtype)


@pytest.mark.parametrize("dtype", [torch.bfloat16], ids=str)
@pytest.mark.parametrize("name", eager.NAMES)
def test_what_is_timed_as_eager(name, dtype):
    def timed(q, k, v, spec, parameters):
        return eager.attend(q, k, v, spec, parameters.get("tau"))

    check(get(name), tensors(100, heads=1, dim=64, dtype=dtype), dtype, timed)


@pytest.mark.parametrize(
    ("length", "p", "dtype"),
    [
        (1, 15, torch.bfloat16),
        (4, 2.5, torch.float16),
        (63, 50, torch.bfloat16),
        (128, 15, torch.float16),
        (200, 1, torch.float16),
        (257, 3, torch.bfloat16),
    ],
    ids=str,
)
def test_any_length_and_power(length, p, dtype):
    check(get("lssar", p=p), tensors(length, heads=1, dtype=dtype), dtype)


@pytest.mark.parametrize(
    ("name", "dim", "dtype"),
    [
        ("softmax", 32, torch.float16), ("softmax", 128, torch.bfloat16),
        ("lssar", 32, torch.bfloat16), ("lssar", 128, torch.float16),
        ("elastic", 32, torch.float16), ("elastic", 128, torch.bfloat16),
    ],
    ids=str,
)  # fmt: skip
def test_head_dims(name, dim, dtype):
    check(specification(name), tensors(63, heads=1, dim=dim, dtype=dtype), dtype)


@pytest.mark.parametrize(
    ("name", "dim", "dtype"),
    [
        ("lssar", 256, torch.bfloat16), ("lssar", 160, torch.float16),
        ("elastic", 256, torch.float16), ("softmax", 192, torch.bfloat16),
    ],
    ids=str,
)  # fmt: skip
def test_head_dims_above_128_are_served_in_half_precision(name, dim, dtype):
    check(specification(name), tensors(70, heads=1, dim=dim, dtype=dtype), dtype)


@DTYPES
@pytest.mark.parametrize("name", ["lssar", "softmax_reweighted", "sigmoid_reweighted"])
def test_identical_tokens_give_finite_results(name, dtype):
    inputs = tensors(40, heads=1, dtype=dtype)
    same = [x[:, :, :1].expand_as(x) for x in inputs[:2]]
    found = run(backend.attend, [*same, *inputs[2:]], get(name), {}, dtype)
    assert all(torch.isfinite(x).all() for x in found)
