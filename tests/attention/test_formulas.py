"""Every variant against its equation, written out in loops of plain Python numbers."""

import math
from dataclasses import dataclass

import pytest
import torch

import attention
from attention import attend, weights


@dataclass
class Row:
    """One query q at position i = len(keys), its keys, and the numbers of its head."""

    q: list
    keys: list
    head: int
    n_head: int
    given: dict  # arguments
    learned: dict  # tau, sink: numbers; bias: list; gates: (g1, gh)

    @property
    def i(self):
        return len(self.keys)

    def products(self):
        return [sum(a * b for a, b in zip(self.q, k, strict=True)) for k in self.keys]

    def dot(self):
        return [x / math.sqrt(len(self.q)) for x in self.products()]

    def cos(self):
        def norm(x):
            return math.sqrt(sum(y * y for y in x))

        return [x / norm(self.q) / norm(k) for x, k in zip(self.products(), self.keys, strict=True)]


def sigmoid(x):
    return 1 / (1 + math.exp(-x))


def softplus(x):
    return math.log(1 + math.exp(x))


PHI = {
    "relu": lambda x: max(x, 0),
    "relu2": lambda x: max(x, 0) ** 2,
    "relu6": lambda x: min(max(x, 0), 6),
    "gelu": lambda x: x * (1 + math.erf(x / math.sqrt(2))) / 2,
    "sigmoid": sigmoid,
    "softplus": softplus,
    "mish": lambda x: x * math.tanh(softplus(x)),
    "exp": math.exp,
}


def l1(row):
    norm = sum(abs(x) for x in row)
    return [x / norm if norm else 0 for x in row]


def softmax(scores):
    return l1([math.exp(s) for s in scores])


def lssa(r):
    scale = math.log(len(r.q)) * math.log(r.i)
    return l1([softplus(scale * c) for c in r.cos()])


def sharpened(row, p):
    """ReLU(i a - o)^p, l1-normalised; o = 0 in rows 1 to 3 and 1 after."""
    offset = 0 if len(row) <= 3 else 1
    return l1([max(len(row) * a - offset, 0) ** p for a in row])


def recentred(row):
    mean = sum(row) / len(row)
    return row if len(row) <= 3 else [a - mean for a in row]


def elastic(row, offset):
    return [max(a - offset, 0) for a in row]


def bisected(scores, power):
    """Project on the simplex: the threshold t with sum of max(s - t, 0)^power = 1."""
    low, high = min(scores) - 2, max(scores)
    for _ in range(200):
        middle = (low + high) / 2
        if sum(max(s - middle, 0) ** power for s in scores) > 1:
            low = middle
        else:
            high = middle
    return [max(s - low, 0) ** power for s in scores]


def distance_bias(r, scores):
    """Scores minus b[i - j]; past the table 0, or the last."""
    table, rule = r.learned["bias"], r.given.get("beyond", "zero")
    past = table[-1] if rule == "last" else 0
    distances = range(r.i - 1, -1, -1)
    return [
        s - (table[d] if d < len(table) else past) for s, d in zip(scores, distances, strict=True)
    ]


def some(r, keep):
    """Softmax over the keys j (from 1) that are kept, and zero elsewhere."""
    powers = [math.exp(s) if keep(j) else 0 for j, s in enumerate(r.dot(), start=1)]
    return l1(powers)


def with_sink(r):
    powers = [math.exp(s) for s in r.dot()]
    total = sum(powers) + math.exp(r.learned["sink"])
    return [x / total for x in powers]


def alibi(r):
    slopes = {3: [2**-4, 2**-8, 2**-2], 6: [*(2 ** (-2 * h) for h in range(1, 5)), 0.5, 0.125]}
    slopes[12] = [*(2.0**-h for h in range(1, 9)), *(2 ** (-h / 2) for h in (1, 3, 5, 7))]
    slopes = slopes[r.n_head]
    return softmax([s - slopes[r.head] * (r.i - j) for j, s in enumerate(r.dot(), start=1)])


def zero_sum(r):
    """g1 times first order plus gh times the rest, softmax being 1/t + first order + rest."""
    s, t = r.dot(), r.i
    first = [(x - sum(s) / t) / t for x in s]
    rest = [a - 1 / t - d for a, d in zip(softmax(s), first, strict=True)]
    g1, gh = r.learned["gates"]
    return [g1 * d + gh * e for d, e in zip(first, rest, strict=True)]


def shifted(r):
    return [sigmoid(x - math.log(r.i)) for x in r.dot()]


ROWS = {
    "softmax": lambda r: softmax(r.dot()),
    "softmax_neg": lambda r: [-a for a in softmax(r.dot())],
    "softmax_recentred": lambda r: recentred(softmax(r.dot())),
    "softmax_recentred_l1": lambda r: l1(recentred(softmax(r.dot()))),
    "raw": lambda r: r.dot(),
    "exp": lambda r: [math.exp(s) for s in r.dot()],
    "l1": lambda r: l1(r.dot()),
    "sigmoid": lambda r: [sigmoid(s - math.log(r.given["length"])) for s in r.dot()],
    "sigmoid_rowlen": shifted,
    "sigmoid_rowlen_l1": lambda r: l1(shifted(r)),
    "relu_wortsman": lambda r: [max(s, 0) / r.given["length"] for s in r.dot()],
    "relu_li": lambda r: l1([max(s, 0) for s in r.dot()]),
    "relu_shen": lambda r: [
        max(s, 0) / (r.given.get("gamma", 1) * math.sqrt(r.i / 2)) for s in r.dot()
    ],
    **{
        f"phi_{phi}": lambda r, function=function: l1([function(s) for s in r.dot()])
        for phi, function in PHI.items()
    },
    "lssa": lssa,
    "lssar": lambda r: sharpened(lssa(r), r.given.get("p", 15)),
    "softmax_reweighted": lambda r: sharpened(softmax(r.dot()), r.given.get("p", 15)),
    "sigmoid_reweighted": lambda r: sharpened(l1(shifted(r)), r.given.get("p", 15)),
    "log_scaled": lambda r: softmax([math.log(r.given["length"]) * s for s in r.dot()]),
    "cosine": lambda r: softmax([r.given.get("g", 10) * c for c in r.cos()]),
    "sparsemax": lambda r: bisected(r.dot(), 1),
    "entmax": lambda r: bisected([s / 2 for s in r.dot()], 2),
    "elastic": lambda r: elastic(softmax(r.dot()), r.learned["tau"] / r.i),
    "elastic_head": lambda r: elastic(softmax(r.dot()), r.learned["tau"]),
    "elastic_seqlen": lambda r: elastic(softmax(r.dot()), r.learned["tau"] / r.given["length"]),
    "elastic_fixed": lambda r: elastic(softmax(r.dot()), r.given.get("tau", 1) / r.given["length"]),
    "lazy": lambda r: elastic(softmax(distance_bias(r, r.dot())), r.learned["tau"] / r.i),
    "lazy_no_elastic": lambda r: softmax(distance_bias(r, r.dot())),
    "sink_bias": with_sink,
    "sliding_window": lambda r: some(r, lambda j: j > r.i - r.given["window"]),
    "streaming": lambda r: some(r, lambda j: j > r.i - r.given["window"] or j <= r.given["sinks"]),
    "alibi": alibi,
    "zeros_sm": zero_sum,
    "added_by_this_test": lambda r: sharpened(
        l1([softplus(s) for s in distance_bias(r, r.dot())]), r.given.get("p", 2)
    ),
}


def matrix(name, q, k, variant):
    """Return the attention matrix [B, H, Lq, Lk] row by row."""
    batch, heads, queries, _ = q.shape
    total = k.shape[2]
    found = torch.zeros(batch, heads, queries, total, dtype=torch.float64)
    for b in range(batch):
        for h in range(heads):
            own = {n: x[h].tolist() for n, x in variant.parameters.items() if n != "gates"}
            keys = k[b, h].tolist()
            for i in range(queries):
                seen = total - queries + i + 1
                if "gates" in variant.parameters:
                    own["gates"] = variant.parameters["gates"][b, h, i].tolist()
                row = Row(q[b, h, i].tolist(), keys[:seen], h, heads, variant.arguments, own)
                found[b, h, i, :seen] = torch.tensor(ROWS[name](row), dtype=torch.float64)
    return found


def test_every_variant_has_an_equation_here(added):
    assert set(ROWS) == set(attention.names())


@pytest.mark.parametrize(("length", "queries"), [(1, 1), (3, 3), (11, 11), (11, 4), (9, 1)])
def test_equations(tensors, variant, name, length, queries):
    q, k, v = tensors(length, queries=queries)
    these = variant(name, q)
    expected = matrix(name, q, k, these)
    torch.testing.assert_close(weights(q, k, name, **these.given), expected, rtol=0, atol=1e-9)
    for backend in ("auto", "reference"):
        out = attend(q, k, v, name, backend=backend, **these.given)
        torch.testing.assert_close(out, expected @ v, rtol=0, atol=1e-9)


CHANGED = [
    *(
        (name, {"p": p})
        for name in ("lssar", "softmax_reweighted", "sigmoid_reweighted")
        for p in (0.5, 1, 2.5, 3, 50)
    ),
    ("cosine", {"g": 3.0}),
    ("relu_shen", {"gamma": 0.3}),
    *((name, {"tau": (-1.5, 1.2)}) for name in ("elastic", "elastic_head", "elastic_seqlen")),
    ("elastic_fixed", {"tau": 4.0}),
    ("elastic_fixed", {"tau": -2.0}),
    ("lazy", {"tau": (-1.0, 1.1), "beyond": "last"}),
    ("lazy_no_elastic", {"beyond": "last", "max_distance": 1}),
    ("lazy_no_elastic", {"beyond": "refuse", "max_distance": 11}),
    ("lazy", {"beyond": "refuse", "max_distance": 30}),
    ("sliding_window", {"window": 1}),
    ("sliding_window", {"window": 10}),
    ("sliding_window", {"window": 500}),
    ("streaming", {"window": 1, "sinks": 1}),
    ("streaming", {"window": 3, "sinks": 9}),
    *((name, {"length": length}) for name in ("sigmoid", "log_scaled") for length in (2, 1000)),
]


@pytest.mark.parametrize(("name", "changes"), CHANGED, ids=str)
def test_equations_with_other_arguments(tensors, variant, name, changes):
    q, k, _ = tensors(11, heads=3, dim=5, seed=2)
    if name == "elastic_fixed":  # a number here, a parameter elsewhere
        these = variant(name, q, length=20)
        these.arguments["tau"] = changes["tau"]
    else:
        these = variant(name, q, **changes)
    expected = matrix(name, q, k, these)
    torch.testing.assert_close(weights(q, k, name, **these.given), expected, rtol=0, atol=1e-9)


@pytest.mark.parametrize("heads", [6, 12])
def test_alibi_with_other_numbers_of_heads(tensors, variant, heads):
    q, k, _ = tensors(9, batch=1, heads=heads)
    expected = matrix("alibi", q, k, variant("alibi", q))
    torch.testing.assert_close(weights(q, k, "alibi"), expected, rtol=0, atol=1e-12)
