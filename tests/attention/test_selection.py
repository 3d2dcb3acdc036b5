"""Selection of keys by an indexer (DSA), against loops, with any variant inside."""

import math
import pickle

import pytest
import torch
from torch.nn import functional

import attention
from attention import reference
from attention.parts.selection import index_loss, index_losses, largest, picked
from attention.positions import rope

DECODED = {
    "softmax": {},
    "lssar": {"p": 3.0},
    "lazy": {"max_distance": 7},
    "sigmoid": {"length": 14},
    "alibi": {},
    "zeros_sm": {},
}
DSA = {"select": "dsa", "top_k": 5, "index_heads": 3, "index_dim": 12}
LENGTH = 14


def built(name="softmax", n_head=4, head_dim=8, seed=0, **args):
    torch.manual_seed(seed)
    args = {**DSA, **args}
    layer = attention.build(name, n_head=n_head, head_dim=head_dim, **args).double()
    with torch.no_grad():
        for number in layer.learned.values():
            number += 0.1 * torch.randn_like(number)
    return layer


def inputs(length=LENGTH, width=32, batch=2, dtype=torch.float64):
    generator = torch.Generator().manual_seed(3)
    return torch.randn(batch, length, width, generator=generator, dtype=torch.float64).to(dtype)


@torch.no_grad()
def index_by_loops(layer, x, turned=True):
    """Return I[t, s] = sum_j w[t, j] relu(q[t, j] . k[s]) / sqrt(heads channels), s <= t."""
    indexer = layer.selection
    heads, dim = indexer.n_head, indexer.head_dim
    scores = torch.full((len(x), x.shape[1], x.shape[1]), -math.inf, dtype=x.dtype)

    def placed(vector, place):
        if turned:
            half = dim // 2
            vector = vector.clone()
            vector[half:] = rope(vector[None, half:], torch.tensor([place]))[0]
        return vector

    for b in range(len(x)):
        for t in range(x.shape[1]):
            weight = indexer.weight.weight @ x[b, t]
            for s in range(t + 1):
                key = functional.layer_norm(indexer.key.weight @ x[b, s], [dim])
                total = 0.0
                for j in range(heads):
                    query = indexer.query.weight[j * dim : (j + 1) * dim] @ x[b, t]
                    product = placed(query, t) @ placed(key, s)
                    total += weight[j] * max(product, 0.0)
                scores[b, t, s] = total / math.sqrt(heads * dim)
    return scores


def chosen_by_loops(scores, top_k):
    """Return the selected positions of each row in order; of equal scores the nearer ones."""
    rows = []
    for t, row in enumerate(scores):
        best = sorted(range(t + 1), key=lambda s: (-float(row[s]), -s))
        rows.append(sorted(best[:top_k]))
    return rows


def heads_of(layer, x):
    """Return turned queries and keys, and values."""
    places = torch.arange(x.shape[1])
    q, k, v = (
        projection(x).unflatten(-1, (-1, layer.head_dim)).transpose(1, 2)
        for projection in (layer.query, layer.key, layer.value)
    )
    if layer.rope_base is not None:
        q, k = rope(q, places), rope(k, places)
    return q, k, v


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


@pytest.mark.parametrize("name", ["lssar", "softmax"])
def test_the_loss_of_a_model_reaches_all_but_the_indexer(name):
    layer = built(name, **({"p": 1.0} if name == "lssar" else {}))
    layer(inputs()).square().sum().backward()
    for part, parameter in layer.named_parameters():
        if part.startswith("selection."):
            assert parameter.grad is None
        else:
            assert parameter.grad.abs().max() > 0


@torch.no_grad()
def kl_by_loops(index, weights, keys_of):
    """Return the mean over rows of KL(p || softmax(I)), p the attention of all heads, on keys."""
    total, count = 0.0, 0
    for b in range(len(index)):
        for t, keys in enumerate(keys_of[b]):
            count += 1
            summed = [float(weights[b, :, t, s].abs().sum()) for s in keys]
            norm = sum(math.exp(float(index[b, t, s])) for s in keys)
            for s, each in zip(keys, summed, strict=True):
                if each:
                    p = each / sum(summed)
                    total += p * (math.log(p) - float(index[b, t, s]) + math.log(norm))
    return total / count


@pytest.mark.parametrize("name", ["lssar", "softmax", "phi_gelu"])
@pytest.mark.parametrize("active", [True, False])
def test_the_indexer_learns_the_attention_of_all_heads(name, active):
    layer, x = built(name), inputs()
    layer.selection.set_active(active)
    with index_losses(torch.nn.ModuleList([layer])) as losses:
        found = layer(x)
    (loss,) = losses
    assert not layer.selection.learns
    torch.testing.assert_close(found, layer(x), rtol=0, atol=1e-12)
    index = index_by_loops(layer, x)
    keys = [chosen_by_loops(each, 5 if active else LENGTH) for each in index]
    assert float(loss.detach()) == pytest.approx(
        kl_by_loops(index, layer.weights(x), keys), abs=1e-11
    )
    loss.backward()
    for part, parameter in layer.named_parameters():
        if part.startswith("selection."):
            assert parameter.grad.isfinite().all()
            assert parameter.grad.abs().max() > 0
        else:
            assert parameter.grad is None


def test_a_row_without_weights_asks_nothing():
    scores = torch.randn(1, 3, 3, requires_grad=True)
    loss = index_loss(scores, torch.zeros(1, 2, 3, 3))
    loss.backward()
    assert loss == 0
    assert torch.all(scores.grad == 0)


def test_an_indexer_that_learns_finds_the_keys_of_a_layer():
    layer, x = built(n_head=1, index_dim=8), inputs(length=40, width=8, batch=4)
    with torch.no_grad():
        layer.query.weight *= 4  # some keys matter more than others
    layer.selection.set_active(False)
    optimizer = torch.optim.Adam(layer.selection.parameters(), lr=3e-2)

    def mass():
        """Return how much of the attention to all keys lies on those that would be selected."""
        with torch.no_grad():
            weights = layer.weights(x).mean(dim=1)
            layer.selection.set_active(True)
            chosen = layer._heads(x, None).selected
            layer.selection.set_active(False)
            return float((weights * chosen).sum(dim=-1)[:, 10:].mean())

    before = mass()
    for _ in range(40):
        with index_losses(layer) as losses:
            layer(x)
        optimizer.zero_grad()
        sum(losses).backward()
        optimizer.step()
    assert mass() > before + 0.1


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
