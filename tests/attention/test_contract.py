"""What holds for every variant of the catalogue, and for one that is registered here."""

import pytest
import torch

import attention
from attention import AttnSpec, attend, spec, weights

ADDED = AttnSpec("added_by_this_test", phi="softplus", p=2.0)
"""A new variant is one line: softplus of plain scores, re-weighted."""


@pytest.fixture(params=[*attention.names(), ADDED.name])
def name(request, monkeypatch):
    if request.param == ADDED.name:
        monkeypatch.setattr(spec, "CATALOGUE", (*spec.CATALOGUE, ADDED))
    return request.param


@pytest.fixture(params=[n for n in attention.names() if attention.get(n).p] + [ADDED.name])
def reweighted(request, monkeypatch):
    """The variants in which a row can be dead."""
    if request.param == ADDED.name:
        monkeypatch.setattr(spec, "CATALOGUE", (*spec.CATALOGUE, ADDED))
    return request.param


def test_rows_are_distributions_over_the_past(name, tensors):
    q, k, _ = tensors(17)
    matrix = weights(q, k, name)
    assert torch.all(matrix >= 0)
    assert torch.all(matrix.triu(1) == 0)
    torch.testing.assert_close(matrix.sum(-1), torch.ones(2, 3, 17, dtype=torch.float64))
    assert torch.all(matrix[..., 0, 0] == 1)


def test_gradients_are_those_of_finite_differences(name, tensors):
    q, k, v = (x.requires_grad_() for x in tensors(6, batch=1, heads=2, dim=4, seed=3))
    arguments = {} if attention.get(name).p is None else {"p": 2.5}
    assert torch.autograd.gradcheck(
        lambda *x: attend(*x, name, backend="reference", **arguments), (q, k, v)
    )
    assert torch.autograd.gradcheck(lambda *x: attend(*x, name, **arguments), (q, k, v))


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize("edited", [1, 7, 15])
def test_a_later_token_changes_no_earlier_output_by_a_bit(name, tensors, dtype, edited):
    q, k, v = tensors(16, dtype=dtype)
    before = attend(q, k, v, name)
    for x in (q, k, v):
        x[:, :, edited:] += 3 * torch.rand_like(x[:, :, edited:])
    after = attend(q, k, v, name)
    assert torch.equal(before[:, :, :edited], after[:, :, :edited])
    assert not torch.equal(before[:, :, edited:], after[:, :, edited:])


def test_heads_and_sequences_do_not_mix(name, tensors):
    q, k, v = tensors(10)
    out = attend(q, k, v, name)
    heads, rows = torch.tensor([2, 0, 1]), torch.tensor([1, 0])
    moved = attend(*(x[rows][:, heads] for x in (q, k, v)), name)
    torch.testing.assert_close(moved, out[rows][:, heads], rtol=0, atol=1e-13)


def test_decoding_row_by_row_equals_the_whole(name, tensors):
    q, k, v = tensors(13)
    whole = attend(q, k, v, name)
    for i in range(13):
        one = attend(q[:, :, i : i + 1], k[:, :, : i + 1], v[:, :, : i + 1], name)
        torch.testing.assert_close(one[:, :, 0], whole[:, :, i], rtol=0, atol=1e-12)
    tail = attend(q[:, :, 9:], k, v, name)
    torch.testing.assert_close(tail, whole[:, :, 9:], rtol=0, atol=1e-12)


def test_output_is_linear_in_the_values_and_takes_their_width(name, tensors):
    q, k, v = tensors(8)
    wide = torch.cat([v, 2 * v[..., :1]], dim=-1)
    out = attend(q, k, wide, name)
    assert out.shape == (2, 3, 8, 9)
    torch.testing.assert_close(out[..., -1], 2 * out[..., 0], rtol=0, atol=1e-12)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_low_precision_is_near_and_keeps_its_type(name, tensors, dtype):
    q, k, v = tensors(40, dtype=dtype)
    arguments = {} if attention.get(name).p is None else {"p": 1}
    out = attend(q, k, v, name, **arguments)
    assert out.dtype == dtype
    exact = attend(q.double(), k.double(), v.double(), name, **arguments)
    # A key at the mean weight amplifies rounding: i a - 1 is a difference of near numbers.
    tolerance = 8 * torch.finfo(dtype).eps if dtype != torch.float32 else 2e-5
    assert (out.double() - exact).abs().max() < tolerance * v.abs().max()


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_long_rows_stay_finite(name, tensors, dtype):
    q, k, v = (4 * x for x in tensors(512, batch=1, heads=1, dim=16, dtype=dtype))
    arguments = {} if attention.get(name).p is None else {"p": 100}
    q, k, v = (x.requires_grad_() for x in (q, k, v))
    out = attend(q, k, v, name, **arguments)
    out.float().square().sum().backward()
    assert out.isfinite().all()
    for x in (q, k, v):
        assert x.grad.isfinite().all()
    assert v.grad.abs().max() > 0


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
@pytest.mark.parametrize("p", [0.5, 1, 15, 100])
@pytest.mark.parametrize("case", ["identical tokens", "zero query", "zero keys"])
def test_dead_rows_give_nothing(reweighted, tensors, dtype, p, case):
    length = 300  # beyond 256, where bfloat16 cannot count rows
    q, k, v = tensors(length, batch=1, heads=2, dtype=dtype)
    if case == "identical tokens":
        q, k = (x[:, :, :1].expand(-1, -1, length, -1).clone() for x in (q, k))
    elif case == "zero query":
        q[:, :, 3:] = 0
    else:
        k[:] = 0
    q, k, v = (x.requires_grad_() for x in (q, k, v))
    out = attend(q, k, v, reweighted, p=p)
    assert torch.all(out[:, :, 3:] == 0)
    assert out.isfinite().all()
    out[:, :, 3:].float().square().sum().backward()
    for x in (q, k, v):
        assert torch.all(x.grad == 0)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_dead_rows_do_not_disturb_the_living(reweighted, tensors, dtype):
    q, k, v = tensors(12, dtype=dtype)
    q[:, :, 6] = 0
    q, k, v = (x.requires_grad_() for x in (q, k, v))
    out = attend(q, k, v, reweighted, p=3)
    assert torch.all(out[:, :, 6] == 0)
    assert torch.all(out[:, :, 7:].abs().sum(-1) > 0)
    out.square().sum().backward()
    assert all(x.grad.isfinite().all() for x in (q, k, v))
    assert torch.all(q.grad[:, :, 6] == 0)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_row_is_dead_within_rounding_of_equal_scores_only(dtype):
    q, k = torch.ones(1, 1, 8, 4, dtype=dtype), torch.zeros(1, 1, 8, 4, dtype=dtype)
    k[:, :, 2] = 2.0  # the score of one key exceeds the others by the size of the query
    for size, dead in ((2e-6, True), (1e-4, False)):
        matrix = weights(size * q, k, "softmax_reweighted")[0, 0, 3:]
        assert torch.all((matrix == 0).all(-1) == dead)
        assert dead or torch.all(matrix[:, 2] == 1)


def test_gradients_of_a_root_stay_finite_where_keys_vanish(reweighted, tensors):
    q, k, v = (x.requires_grad_() for x in tensors(12))
    matrix = weights(q, k, reweighted, p=0.5)
    assert torch.any(matrix[..., 11, :] == 0)
    (matrix @ v).square().sum().backward()
    assert all(x.grad.isfinite().all() for x in (q, k, v))


def test_module_round_trip(name, tensors, tmp_path):
    torch.manual_seed(0)
    arguments = {} if attention.get(name).p is None else {"p": 3}
    first = attention.build(name, n_head=2, head_dim=8, **arguments)
    x = torch.randn(2, 12, 16)
    torch.save(first.state_dict(), tmp_path / "state.pt")
    second = attention.build(name, n_head=2, head_dim=8, **arguments)
    assert not torch.equal(first(x), second(x))
    second.load_state_dict(torch.load(tmp_path / "state.pt", weights_only=True))
    assert torch.equal(first(x), second(x))
    assert first(x).shape == x.shape
    assert repr(name) in repr(first)


def test_module_is_causal(name):
    torch.manual_seed(0)
    module = attention.build(name, n_head=2, head_dim=8)
    x = torch.randn(1, 10, 16)
    edited = x.clone()
    edited[:, 6:] += 1
    torch.testing.assert_close(module(x)[:, :6], module(edited)[:, :6], rtol=0, atol=1e-6)
    assert not torch.allclose(module(x)[:, 6:], module(edited)[:, 6:], atol=1e-3)


def test_catalogue_line_is_complete(name):
    variant = attention.get(name)
    assert variant.name == name
    assert attention.names().count(name) == 1
    if name != ADDED.name:
        assert variant.source
        assert variant.about.endswith(".")
