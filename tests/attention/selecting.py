"""A layer that selects its keys, and what its indexer scores and chooses, by loops."""

import math

import torch
from torch.nn import functional

import attention
from attention.positions import rope

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
