"""Every variant against its equations, written out in loops of plain Python numbers."""

import math

import pytest
import torch

from attention import attend, weights


def softmax_row(q, keys):
    scores = [sum(a * b for a, b in zip(q, k, strict=True)) / math.sqrt(len(q)) for k in keys]
    exponentials = [math.exp(s) for s in scores]
    return [x / sum(exponentials) for x in exponentials]


def lssa_row(q, keys):
    """Softplus((log d log i) q^ k^T), l1-normalised; i is the number of keys."""

    def unit(x):
        return [value / math.sqrt(sum(y * y for y in x)) for value in x]

    scale = math.log(len(q)) * math.log(len(keys))
    scores = [scale * sum(a * b for a, b in zip(unit(q), unit(k), strict=True)) for k in keys]
    positive = [math.log(1 + math.exp(s)) for s in scores]
    return [x / sum(positive) for x in positive]


def reweighted(row, p):
    """ReLU(i a - o)^p, l1-normalised; o = 0 in rows 1 to 3 and 1 after."""
    offset = 0 if len(row) <= 3 else 1
    powers = [max(len(row) * a - offset, 0) ** p for a in row]
    return [x / sum(powers) for x in powers]


CASES = [
    ("softmax", {}, softmax_row),
    ("lssa", {}, lssa_row),
    ("lssar", {}, lambda q, k: reweighted(lssa_row(q, k), 15)),
    ("softmax_reweighted", {}, lambda q, k: reweighted(softmax_row(q, k), 15)),
]
for _p in (0.5, 1, 2.5, 3, 15):
    CASES.append(("lssar", {"p": _p}, lambda q, k, p=_p: reweighted(lssa_row(q, k), p)))
    CASES.append(
        ("softmax_reweighted", {"p": _p}, lambda q, k, p=_p: reweighted(softmax_row(q, k), p))
    )
every_case = pytest.mark.parametrize(
    ("name", "arguments", "row"), CASES, ids=[f"{n}-{a.get('p', 'default')}" for n, a, _ in CASES]
)


def matrix(q, k, row):
    """Return the attention matrix [B, H, Lq, Lk] row by row."""
    batch, heads, queries, _ = q.shape
    total = k.shape[2]
    found = torch.zeros(batch, heads, queries, total, dtype=torch.float64)
    for b in range(batch):
        for h in range(heads):
            for i in range(queries):
                seen = total - queries + i + 1
                values = row(q[b, h, i].tolist(), k[b, h, :seen].tolist())
                found[b, h, i, :seen] = torch.tensor(values, dtype=torch.float64)
    return found


@every_case
@pytest.mark.parametrize(("length", "queries"), [(1, 1), (3, 3), (11, 11), (11, 4), (9, 1)])
def test_equations(tensors, name, arguments, row, length, queries):
    q, k, v = tensors(length, queries=queries)
    expected = matrix(q, k, row)
    torch.testing.assert_close(weights(q, k, name, **arguments), expected, rtol=0, atol=1e-12)
    for backend in ("auto", "reference"):
        out = attend(q, k, v, name, backend=backend, **arguments)
        torch.testing.assert_close(out, expected @ v, rtol=0, atol=1e-9)


@pytest.mark.parametrize("name", ["lssar", "softmax_reweighted"])
@pytest.mark.parametrize("p", [2.5, 15, 100])
def test_power_form_is_a_softmax_in_log_space(tensors, name, p):
    """softmax(p log x) with x = ReLU(i a - o), minus infinity where x = 0."""
    q, k, _ = tensors(12)
    first = weights(q, k, "lssa" if name == "lssar" else "softmax")
    count = torch.arange(1.0, 13.0, dtype=torch.float64)[:, None]
    excess = (first * count - (count > 3).double()).relu().tril()
    expected = torch.softmax(p * excess.log(), dim=-1)
    torch.testing.assert_close(weights(q, k, name, p=p), expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("name", ["lssar", "softmax_reweighted"])
def test_large_p_is_argmax(tensors, name):
    q, k, _ = tensors(12)
    best = weights(q, k, name, p=1).argmax(dim=-1, keepdim=True)
    hard = torch.zeros(2, 3, 12, 12, dtype=torch.float64).scatter(-1, best, 1.0)
    torch.testing.assert_close(weights(q, k, name, p=1e6), hard, rtol=0, atol=1e-9)


@pytest.mark.parametrize("name", ["lssar", "softmax_reweighted"])
def test_keys_below_the_mean_weight_get_exactly_nothing(tensors, name):
    q, k, _ = tensors(20)
    first = weights(q, k, "lssa" if name == "lssar" else "softmax")
    count = torch.arange(1.0, 21.0, dtype=torch.float64)[:, None]
    sharpened = weights(q, k, name)
    below = first * count < 1
    assert torch.all(sharpened[..., 3:, :][below[..., 3:, :]] == 0)
    assert torch.all(sharpened[..., :3, :].sum(-1) > 0.999)
    assert (sharpened[..., 2, :3] > 0).all()


@pytest.mark.parametrize(("length", "queries"), [(16, 16), (16, 5), (16, 1)])
def test_sdpa_equals_the_reference(tensors, length, queries):
    q, k, v = tensors(length, queries=queries)
    torch.testing.assert_close(
        attend(q, k, v, "softmax", backend="sdpa"),
        attend(q, k, v, "softmax", backend="reference"),
        rtol=0,
        atol=1e-12,
    )


def test_lssa_ignores_the_length_of_queries_and_keys(tensors):
    q, k, v = tensors(9)
    torch.testing.assert_close(attend(7 * q, 0.1 * k, v, "lssar"), attend(q, k, v, "lssar"))
    assert not torch.allclose(attend(7 * q, k, v, "softmax"), attend(q, k, v, "softmax"))
