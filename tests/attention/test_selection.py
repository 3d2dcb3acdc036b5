"""Selection of keys by an indexer (DSA), against loops, with any variant inside."""

import math
import pickle

import pytest
import torch

import attention
from attention import reference
from attention.parts.selection import largest, picked
from attention.positions import rope
from tests.attention.selecting import (
    DSA,
    LENGTH,
    built,
    chosen_by_loops,
    heads_of,
    index_by_loops,
    inputs,
)

DECODED = {
    "softmax": {},
    "lssar": {"p": 3.0},
    "lazy": {"max_distance": 7},
    "sigmoid": {"length": 14},
    "alibi": {},
    "zeros_sm": {},
}


def lssar_row(q, k, p):
    """Return the weights of one row over its selected keys alone, from Algorithm 1 as written."""
    n, dim = len(k), len(q)
    first = []
    for key in k:
        cosine = float(q @ key / (q.norm() * key.norm()))
        first.append(math.log1p(math.exp(math.log(dim) * math.log(n) * cosine)))
    total = sum(first)
    first = [each / total for each in first]
    offset = 1.0 if n > 3 else 0.0
    excess = [max(n * each - offset, 0.0) for each in first]
    top = max(excess)
    if top == 0:
        return [0.0] * n
    second = [(each / top) ** p for each in excess]
    return [each / sum(second) for each in second]


def softmax_row(q, k, p):
    return torch.softmax(k @ q / math.sqrt(len(q)), dim=0).tolist()


@pytest.mark.parametrize(("name", "row"), [("lssar", lssar_row), ("softmax", softmax_row)])
@pytest.mark.parametrize("top_k", [1, 3, 5, 13])
@torch.no_grad()
def test_a_row_is_the_variant_over_its_selected_keys(name, row, top_k):
    """Row length, mean weight, largest entry and both sums are those of the selected keys."""
    args = {"p": 3.0} if name == "lssar" else {}
    layer, x = built(name, n_head=2, top_k=top_k, **args), inputs(width=16)
    index, (q, k, v) = index_by_loops(layer, x), heads_of(layer, x)
    mixed = torch.zeros_like(q)
    weights = torch.zeros(2, 2, LENGTH, LENGTH, dtype=x.dtype)
    for b in range(2):
        for t, keys in enumerate(chosen_by_loops(index[b], top_k)):
            assert len(keys) == min(top_k, t + 1)
            for h in range(2):
                for s, weight in zip(keys, row(q[b, h, t], k[b, h, keys], 3.0), strict=True):
                    weights[b, h, t, s] = weight
                    mixed[b, h, t] += weight * v[b, h, s]
    torch.testing.assert_close(layer.weights(x), weights, rtol=0, atol=1e-11)
    expected = mixed.transpose(1, 2).flatten(-2) @ layer.project.weight.T
    torch.testing.assert_close(layer(x), expected, rtol=0, atol=1e-11)


UNBIASED = [
    name
    for name in attention.names()
    if attention.get(name).mask == "causal" and attention.get(name).bias == "none"
]


@pytest.mark.full
@pytest.mark.parametrize("name", UNBIASED)
def test_selected_keys_are_a_sequence_of_their_own(name):
    args = {"length": LENGTH} if "length" in attention.arguments(name) else {}
    layer, x = built(name, **args), inputs()
    found, (q, k, _) = layer.weights(x), heads_of(layer, x)
    parameters = layer._parameters_of(x)
    for t, keys in enumerate(chosen_by_loops(index_by_loops(layer, x[:1])[0], 5)):
        own = {key: x[:, :, t : t + 1] if key == "gates" else x for key, x in parameters.items()}
        alone = reference.weights(q[..., t : t + 1, :], k[..., keys, :], layer.spec, own)
        torch.testing.assert_close(found[:1, :, t, keys], alone[:1, :, 0], rtol=0, atol=1e-12)
        others = [s for s in range(LENGTH) if s not in keys]
        assert torch.all(found[:1, :, t, others] == 0)


@torch.no_grad()
def test_distances_stay_those_of_the_sequence():
    layer, x = built("lazy", max_distance=7, rope_base=None), inputs()
    with torch.no_grad():
        layer.learned["tau"].zero_()
    found, (q, k, _) = layer.weights(x), heads_of(layer, x)
    bias = layer.learned["bias"]
    keys_of = chosen_by_loops(index_by_loops(layer, x[:1], turned=False)[0], 5)
    for t, keys in enumerate(keys_of):
        for h in range(4):
            scores = [
                float(q[0, h, t] @ k[0, h, s]) / math.sqrt(8)
                - (float(bias[h, t - s]) if t - s < 7 else 0.0)
                for s in keys
            ]
            expected = torch.softmax(torch.tensor(scores, dtype=x.dtype), 0)
            torch.testing.assert_close(found[0, h, t, keys], expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("name", DECODED)
def test_no_fewer_keys_than_positions_is_all_of_them(name):
    x = inputs()
    narrow, plain = built(name, **DECODED[name]), built(name, select="none", top_k=None,
                                                        index_heads=None, index_dim=None,
                                                        **DECODED[name])  # fmt: skip
    plain.load_state_dict(narrow.state_dict(), strict=False)
    with torch.no_grad():
        torch.testing.assert_close(narrow(x[:, :5]), plain(x[:, :5]), rtol=0, atol=0)
        assert not torch.allclose(narrow(x)[:, 5:], plain(x)[:, 5:], atol=1e-6)
        wide = built(name, top_k=LENGTH, **DECODED[name])
        torch.testing.assert_close(wide(x), plain(x), rtol=0, atol=0)
        # The same by the path that selects: every row selects all that it sees.
        q, k, _ = heads_of(plain, x)
        everything = torch.ones(2, LENGTH, LENGTH, dtype=torch.bool).tril()
        parameters = plain._parameters_of(x)
        chosen = reference.weights(q, k, plain.spec, parameters, selected=everything)
        assert torch.equal(chosen, reference.weights(q, k, plain.spec, parameters))


@pytest.mark.parametrize("tpa", [{}, {"projections": "tpa"}, {"n_kv_head": 2}])
@pytest.mark.parametrize("name", DECODED)
@pytest.mark.parametrize(("dtype", "bound"), [(torch.float64, 1e-10), (torch.float32, 1e-5)])
def test_decoding_is_the_full_forward(name, tpa, dtype, bound):
    layer = built(name, **DECODED[name], **tpa).to(dtype)
    x = inputs(dtype=dtype)
    with torch.no_grad():
        whole = layer(x)
        for steps in ([1] * LENGTH, [4, 1, 8, 1]):
            cache = layer.new_cache()
            parts = [layer(part, cache) for part in x.split(steps, dim=1)]
            torch.testing.assert_close(torch.cat(parts, dim=1), whole, rtol=0, atol=bound)
            held = sum(part[:, :, :LENGTH].numel() for part in cache._kept) / (2 * LENGTH)
            assert held == layer.kept


def test_decoding_follows_a_base_that_grows():
    layer, x = built(ntk_train_length=4), inputs()
    cache = layer.new_cache()
    with torch.no_grad():
        for i in range(LENGTH):
            step = layer(x[:, i : i + 1], cache)[:, 0]
            torch.testing.assert_close(step, layer(x[:, : i + 1])[:, -1], rtol=0, atol=1e-12)


@pytest.mark.parametrize("name", ["lssar", "lazy"])
def test_no_later_position_counts(name):
    layer, x = built(name), inputs()
    changed = x.clone()
    changed[:, 9:] += 1.0
    assert torch.equal(layer(x)[:, :9], layer(changed)[:, :9])
    assert not torch.allclose(layer(x)[:, 9:], layer(changed)[:, 9:])


def test_of_equal_scores_the_nearer_keys_are_taken():
    scores = torch.zeros(1, 6, 6)
    scores[0, 5] = torch.tensor([1.0, 0.0, 0.0, -1.0, 0.0, 0.0])
    chosen = largest(scores, 3)
    assert chosen[0].nonzero().tolist() == [
        [t, s]
        for t, keys in enumerate([[0], [0, 1], [0, 1, 2], [1, 2, 3], [2, 3, 4], [0, 4, 5]])
        for s in keys
    ]
    tensor = torch.arange(12).reshape(1, 2, 6)
    assert picked(tensor, chosen[:, 5:], 3).tolist() == [[[0, 4, 5], [6, 10, 11]]]


def test_rows_of_any_scores_select_as_sorting_does():
    generator = torch.Generator().manual_seed(1)
    scores = torch.randint(-2, 3, (3, 20, 20), generator=generator).double()  # many are equal
    for top_k in (1, 4, 19, 20, 50):
        chosen = largest(scores, top_k)
        for b in range(3):
            rows = [row.nonzero().flatten().tolist() for row in chosen[b]]
            assert rows == chosen_by_loops(scores[b], top_k)
        assert torch.equal(largest(scores[:, 13:], top_k), chosen[:, 13:])


def test_gradients_are_those_of_finite_differences():
    layer = built("lssar", n_head=2, head_dim=2, p=2.5, top_k=4, index_dim=4)
    names = [n for n, _ in layer.named_parameters() if not n.startswith("selection.")]
    weights = [layer.get_parameter(name) for name in names]
    x = inputs(6, 4, batch=1)

    def call(*weights):
        return torch.func.functional_call(layer, dict(zip(names, weights, strict=True)), (x,))

    assert torch.autograd.gradcheck(call, weights)


def test_the_switch_and_the_arguments_travel(tmp_path):
    layer, x = built("lssar"), inputs()
    assert "'select': 'dsa'" in repr(layer)
    assert "top_k=5" in repr(layer)
    layer.selection.set_active(False)
    torch.save(layer.state_dict(), tmp_path / "state.pt")
    other = built("lssar", seed=1)
    assert not torch.allclose(other(x), layer(x))
    other.load_state_dict(torch.load(tmp_path / "state.pt", weights_only=True))
    assert not other.selection.narrows(LENGTH)
    assert torch.equal(other(x), layer(x))
    assert torch.equal(pickle.loads(pickle.dumps(layer))(x), layer(x))


def test_half_precision_selects_and_decodes():
    layer, x = built("lssar", p=3.0).bfloat16(), inputs(dtype=torch.bfloat16)
    with torch.no_grad():
        cache = layer.new_cache()
        parts = [layer(part, cache) for part in x.split(1, dim=1)]
        whole = layer(x)
        assert whole.dtype == torch.bfloat16
        # A key at the border may be another one: most rows are the same.
        same = (torch.cat(parts, dim=1) - whole).abs().amax(dim=-1) < 2e-2
        assert same.float().mean() > 0.8
    with torch.autocast("cpu", torch.bfloat16):
        assert built("lssar").float()(inputs(dtype=torch.float32)).isfinite().all()


def test_an_empty_sequence_is_empty():
    layer = built()
    cache = layer.new_cache()
    layer(inputs(8), cache)
    assert layer(inputs(0), cache).shape == (2, 0, 32)


def test_what_cannot_be_is_one_line():
    for message, args in (
        ("top_k must be at least 1, got 0", {"top_k": 0}),
        ("top_k must be a whole number, got 2.5", {"top_k": 2.5}),
        ("select dsa needs the number of keys: top_k=64, for example", {"top_k": None}),
        ("index_heads must be at least 1, got 0", {"index_heads": 0}),
        ("index_dim must be a multiple of 4", {"index_dim": 6}),
        ("unknown select 'nsa'; choose from none, dsa", {"select": "nsa"}),
        ("top_k is of select dsa: add select=dsa, or leave top_k out", {"select": "none"}),
        ("select dsa looks back alone: it has no causal=False", {"causal": False}),
        ("select dsa is computed eagerly: leave backend='sdpa' out", {"backend": "sdpa"}),
    ):
        with pytest.raises(ValueError, match=message):
            built(**args)
    with pytest.raises(ValueError, match="streaming with a window and select dsa both leave keys"):
        built("streaming")
    with pytest.raises(TypeError, match="gla has no top_k; every quadratic variant takes one"):
        attention.build("gla", n_head=2, head_dim=8, top_k=4)


@torch.no_grad()
def test_it_is_the_naive_form_of_flash_linear_attention():
    reason = "needs fla-core (the extra fla)"
    naive = pytest.importorskip("fla.ops.dsa.naive", reason=reason)
    layer, x = built(n_head=2).float(), inputs(width=16, dtype=torch.float32)
    indexer, places = layer.selection, torch.arange(LENGTH)

    def half_turned(rows):
        plain, turning = rows.chunk(2, dim=-1)
        return torch.cat([plain, rope(turning, places)], dim=-1)

    queries = indexer.query(x).unflatten(-1, (indexer.n_head, -1)).transpose(1, 2)
    q_idx, k_idx = half_turned(queries).transpose(1, 2), half_turned(indexer.norm(indexer.key(x)))
    heads = (part.transpose(1, 2) for part in heads_of(layer, x))
    index = q_idx, k_idx, indexer.weight(x)
    theirs, chosen = naive.naive_dsa(*heads, *index, topk=DSA["top_k"], return_indices=True)
    torch.testing.assert_close(layer(x), layer.project(theirs.flatten(-2)), rtol=0, atol=1e-6)
    ours = chosen_by_loops(index_by_loops(layer, x)[0], DSA["top_k"])
    assert [sorted(row[row >= 0].tolist()) for row in chosen[0]] == ours
