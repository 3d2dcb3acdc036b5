"""Half precision on inputs of every kind, against float64 of the same inputs.

Nothing is rounded on the way to the reference but what the caller gave: directions are its own.
"""

import functools

import pytest
import torch

from attention import attend, explain, get, reference
from attention.triton import backend, tiles
from tests.attention.fused import DEVICE, MARKS, errors, learned, run, specification, tensors

pytestmark = MARKS
BFLOAT16, FLOAT16 = torch.bfloat16, torch.float16


@pytest.fixture(autouse=True)
def large_tiles(monkeypatch):
    if DEVICE == "cpu":  # the interpreter's time goes by tiles
        monkeypatch.setattr(tiles, "tile", lambda *_: tiles.Tile(128, 128, 4, 1))


def inputs(kind, length, dim=64):
    """Return q, k, v and dO of a kind, float32."""
    q, k, v, grad = tensors(length, heads=1, dim=dim)
    first_q, first_k = q[:, :, :1], k[:, :, :1]
    if kind.startswith("keys differ by "):
        k = first_k + float(kind.split()[-1]) * k
    elif kind == "opposite":
        q, k = first_q + 0.01 * q, -first_q + 0.1 * k
    elif kind == "identical":
        q, k = first_q.expand_as(q), first_k.expand_as(k)
    elif kind == "some zero vectors":
        q, k = q.clone(), k.clone()
        q[:, :, ::3], k[:, :, ::4] = 0, 0
    elif kind == "long vectors":
        q, k, v = 1e4 * q, 1e4 * k, v
    elif kind == "large values":
        v, grad = 1e3 * v, 1e2 * grad
    elif kind == "small gradients":
        grad = 1e-7 * grad
    return q, k, v, grad


KINDS = (
    "random", "keys differ by 0.1", "keys differ by 0.01", "keys differ by 0.001", "opposite",
    "identical", "some zero vectors", "long vectors", "large values", "small gradients",
)  # fmt: skip
NAMES = (
    *(("lssar", p) for p in (1, 3, 15, 50, 100)), ("softmax_reweighted", 15),
    ("sigmoid_reweighted", 3), ("lssa", None), ("softmax", None), ("sigmoid", None),
    ("elastic", None), ("lazy", None),
)  # fmt: skip
HARD = ("keys differ by 0.001", "opposite", "large values")
"""With the re-weighting, where the gradient of float16 was NaN before du was scaled."""


def case(name, p, kind, dtype, length):
    spec = get(name, p=p) if p else specification(name)
    given = [x.to(dtype) for x in inputs(kind, length)]
    numbers = learned(spec, 1)
    expected = run(reference.attend, given, spec, numbers, torch.float64)
    return run(backend.attend, given, spec, numbers, dtype), expected


def assert_no_nan(found, expected):
    for ours, theirs in zip(found, expected, strict=True):
        assert not torch.isnan(ours).any()
        # A gradient that the type cannot hold is infinite; near its end rounding decides.
        assert (theirs[torch.isinf(ours)].abs() > 0.9 * torch.finfo(ours.dtype).max).all()


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [torch.float32, BFLOAT16, FLOAT16], ids=str)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("name", "p"), NAMES)
def test_no_nan_anywhere(name, p, kind, dtype):
    assert_no_nan(*case(name, p, kind, dtype, 200))


@pytest.mark.full
@pytest.mark.parametrize("kind", HARD)
@pytest.mark.parametrize("dtype", [BFLOAT16, FLOAT16], ids=str)
def test_no_nan_where_gradients_are_steep(kind, dtype):
    assert_no_nan(*case("lssar", 15, kind, dtype, 100))


# With directions in bfloat16 these were 8.2e-3, 1.7e-2, 1.7e-2, 8.6e-3 for random tokens at p = 15
# and 5.0e-2, 1.0e-1, 8.7e-2, 5.1e-2 for near keys. Rounding the result alone is 1.7e-3.
@pytest.mark.full
@pytest.mark.parametrize(
    ("kind", "p", "allowed"),
    [
        ("random", 3, (2.5e-3, 3e-3, 3e-3, 3e-3)),
        ("random", 15, (2.5e-3, 6.5e-3, 6.5e-3, 3e-3)),
        ("random", 50, (2.5e-3, 9e-3, 9e-3, 3e-3)),
        ("keys differ by 0.1", 15, (8e-3, 6e-2, 1.6e-2, 8e-3)),
        ("small gradients", 15, (2.5e-3, 6.5e-3, 6.5e-3, 3e-3)),
    ],
)
def test_bfloat16_keeps_the_directions(kind, p, allowed):
    found = errors(*case("lssar", p, kind, BFLOAT16, 200))
    assert all(x <= y for x, y in zip(found, allowed, strict=True)), found


# Five times below bfloat16 directions, as the note above has them.
@pytest.mark.full
@pytest.mark.parametrize(
    ("kind", "allowed"),
    [("random", (1.7e-2, 1.7e-2)), ("keys differ by 0.1", (1.0e-1, 8.7e-2))],
)
def test_exact_means_make_gradients_of_q_and_k_five_times_nearer(kind, allowed):
    given = [x.to(BFLOAT16) for x in inputs(kind, 200)]
    expected = run(reference.attend, given, get("lssar"), {}, torch.float64)
    exact = functools.partial(backend.attend, gradients="exact")
    _, *found, _ = errors(run(exact, given, get("lssar"), {}, BFLOAT16), expected)
    assert all(5 * x <= y for x, y in zip(found, allowed, strict=True)), found


@pytest.mark.full
def test_exact_means_are_for_reweighted_variants_in_half_precision_alone():
    exact = functools.partial(backend.attend, gradients="exact")
    for name, dtype in (("lssa", BFLOAT16), ("lssar", torch.float32)):
        given = [x.to(dtype) for x in inputs("random", 40)]
        usual = run(backend.attend, given, get(name), {}, dtype)
        for one, other in zip(run(exact, given, get(name), {}, dtype), usual, strict=True):
            assert torch.equal(one, other)


def test_exact_means_have_a_name_and_auto_passes_them_over():
    q = torch.randn(1, 1, 5, 32, device=DEVICE)
    usual = attend(q, q, q, "lssar", backend="triton")
    assert torch.equal(attend(q, q, q, "lssar", backend="triton_exact"), usual)
    assert "one more pass" in explain("lssar", q, "triton").refused["triton_exact"]


@pytest.mark.full
def test_float16_is_as_exact_as_it_was():
    found = errors(*case("lssar", 15, "random", FLOAT16, 200))
    assert all(x <= 3.5e-3 for x in found), found
