"""The identities of the papers, and what the variants are to each other."""

import dataclasses
import math

import pytest
import torch

from attention import attend, get, reference, stages, weights
from attention.parts import simplex
from attention.reference import stages as stages_of


@pytest.mark.parametrize("p", [2.5, 15, 100])
def test_power_form_is_a_softmax_in_log_space(tensors, variant, reweighted, p):
    """softmax(p log x) with x = ReLU(i a - o), minus infinity where x = 0."""
    q, k, _ = tensors(12)
    these = variant(reweighted, q, p=p)
    first = stages(q, k, reweighted, **these.given).normalised
    count = torch.arange(1.0, 13.0, dtype=torch.float64)[:, None]
    excess = (first * count - (count > 3).double()).relu().tril()
    expected = torch.softmax(p * excess.log(), dim=-1)
    found = weights(q, k, reweighted, **these.given)
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-12)


def test_large_p_is_argmax(tensors, variant, reweighted):
    q, k, _ = tensors(12)
    best = weights(q, k, reweighted, **variant(reweighted, q, p=1).given).argmax(-1, keepdim=True)
    hard = torch.zeros(2, 3, 12, 12, dtype=torch.float64).scatter(-1, best, 1.0)
    found = weights(q, k, reweighted, **variant(reweighted, q, p=1e6).given)
    torch.testing.assert_close(found, hard, rtol=0, atol=1e-9)


def test_keys_below_the_mean_weight_get_exactly_nothing(tensors, variant, reweighted):
    q, k, _ = tensors(20)
    found = stages(q, k, reweighted, **variant(reweighted, q).given)
    count = torch.arange(1.0, 21.0, dtype=torch.float64)[:, None]
    below = found.normalised * count < 1
    assert torch.all(found.weights[..., 3:, :][below[..., 3:, :]] == 0)
    assert torch.all(found.weights[..., :3, :].sum(-1) > 0.999)
    assert (found.weights[..., 2, :3] > 0).all()


@pytest.mark.parametrize(
    ("one", "other"),
    [("phi_exp", "softmax"), ("relu_li", "phi_relu")],
)
def test_two_names_of_one_function(tensors, one, other):
    q, k, _ = tensors(14)
    assert torch.equal(weights(q, k, one), weights(q, k, other))


def test_softmax_is_scenario_two_then_three(tensors):
    """The l1 norm of the exponentials: scenario IV is II followed by III."""
    q, k, _ = tensors(14)
    powers = weights(q, k, "exp")
    expected = powers / powers.abs().sum(-1, keepdim=True)
    torch.testing.assert_close(weights(q, k, "softmax"), expected, rtol=0, atol=1e-14)
    raw = weights(q, k, "raw")
    expected = raw / raw.abs().sum(-1, keepdim=True)
    torch.testing.assert_close(weights(q, k, "l1"), expected, rtol=0, atol=1e-14)


def test_sigmoid_shifts_down_with_the_length(tensors):
    q, k, _ = tensors(10)
    short, long = (weights(q, k, "sigmoid", length=length) for length in (10, 1000))
    seen = torch.ones(10, 10, dtype=torch.bool).tril()
    assert torch.all(long[..., seen] < short[..., seen])
    one = weights(q, k, "sigmoid", length=1)[..., seen]
    torch.testing.assert_close(one, torch.sigmoid(weights(q, k, "raw")[..., seen]))
    last = weights(q, k, "sigmoid_rowlen")[..., 9, :]
    torch.testing.assert_close(last, short[..., 9, :], rtol=0, atol=1e-14)


def test_elastic_removes_uniform_rows_and_a_larger_tau_removes_more(tensors):
    q, k, _ = tensors(16)

    def elastic(queries, tau):
        parameters = {"tau": torch.full((3,), tau, dtype=torch.float64)}
        return weights(queries, k, "elastic", parameters)

    assert elastic(0 * q, 1.0).abs().max() < 1e-15
    assert torch.all(elastic(0 * q, 0.9)[..., 0, 0] > 0)
    zeros = [int((elastic(q, tau) == 0).sum()) for tau in (-0.5, 0.0, 0.5, 1.0, 2.0)]
    assert zeros[0] == zeros[1] == 6 * 16 * 15 // 2  # the masked ones alone
    assert zeros == sorted(zeros)
    assert zeros[1] < zeros[2] < zeros[3] < zeros[4]
    torch.testing.assert_close(elastic(q, 0.0), weights(q, k, "softmax"))
    for form, arguments in (("elastic_head", {}), ("elastic_seqlen", {"length": 16})):
        nothing = {"tau": torch.zeros(3, dtype=torch.float64)}
        found = weights(q, k, form, nothing, **arguments)
        torch.testing.assert_close(found, weights(q, k, "softmax"))


def test_zero_sum_attention_is_softmax_and_a_linear_term(tensors, variant):
    """O = gh softmax(S) V + (g1 - gh) / t (S V - mean(s) sum v) - gh / t sum v."""
    q, k, v = tensors(13)
    these = variant("zeros_sm", q)
    g1, gh = these.parameters["gates"].split(1, dim=-1)
    t = torch.arange(1.0, 14.0, dtype=torch.float64)[:, None]
    scores = ((q @ k.transpose(-1, -2)) / math.sqrt(8)).tril()
    mean = (q * k.cumsum(dim=-2)).sum(-1, keepdim=True) / (t * math.sqrt(8))
    total = v.cumsum(dim=-2)
    expected = (
        gh * attend(q, k, v, "softmax")
        + (g1 - gh) / t * (scores @ v - mean * total)
        - gh / t * total
    )
    found = attend(q, k, v, "zeros_sm", **these.given)
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-12)
    assert found[:, :, 0].abs().max() < 1e-15  # the first token attends to nothing
    shifted = v + 5.0  # zero-sum weights do not see a constant
    torch.testing.assert_close(attend(q, k, shifted, "zeros_sm", **these.given), found)


def test_a_sink_far_below_is_softmax_and_one_far_above_takes_all(tensors):
    q, k, _ = tensors(9)
    for sink, factor in ((-1e4, 1.0), (1e4, 0.0)):
        found = weights(q, k, "sink_bias", {"sink": torch.full((3,), sink, dtype=torch.float64)})
        torch.testing.assert_close(found, factor * weights(q, k, "softmax"), rtol=0, atol=1e-14)


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("sliding_window", {"window": 9}),
        ("sliding_window", {"window": 500}),
        ("streaming", {"window": 9}),
        ("streaming", {"window": 1, "sinks": 8}),
    ],
)
def test_a_window_over_everything_is_softmax(tensors, name, arguments):
    q, k, _ = tensors(9)
    assert torch.equal(weights(q, k, name, **arguments), weights(q, k, "softmax"))


def test_a_bias_of_alibi_slopes_is_alibi(tensors):
    q, k, _ = tensors(9, heads=2)
    bias = torch.tensor([[2.0**-4], [2.0**-8]], dtype=torch.float64) * torch.arange(9)
    found = weights(q, k, "lazy_no_elastic", {"bias": bias}, max_distance=9)
    torch.testing.assert_close(found, weights(q, k, "alibi"), rtol=0, atol=1e-14)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("size", [0.0, 1.0, 300.0])
@pytest.mark.parametrize("name", ["sparsemax", "entmax"])
def test_projections_stay_on_the_simplex(name, size, dtype):
    """Also far from zero, where sums of scores would lose the 1 they must reach."""
    scores = size + torch.randn(5, 400, dtype=torch.float64).to(dtype)
    project = {
        "sparsemax": simplex.sparsemax,
        "entmax": simplex.entmax15,
    }
    rows = project[name](scores)
    assert torch.all(rows >= 0)
    torch.testing.assert_close(rows.sum(-1), torch.ones(5, dtype=dtype), rtol=0, atol=2e-6)
    assert torch.all((rows == 0).any(-1))
    assert torch.equal(rows.argmax(-1), scores.argmax(-1))
    order = torch.randperm(400)
    torch.testing.assert_close(project[name](scores[:, order]), rows[:, order])
    flat = project[name](torch.full((1, 4096), 64.3, dtype=dtype))
    torch.testing.assert_close(flat, torch.full_like(flat, 1 / 4096), rtol=1e-4, atol=0)


def test_sparsemax_is_sparser_than_entmax_and_softmax(tensors):
    q, k, _ = tensors(30)
    zeros = [int((weights(3 * q, k, n) == 0).sum()) for n in ("sparsemax", "entmax", "softmax")]
    assert zeros[0] > zeros[1] > zeros[2]


@pytest.mark.parametrize(("length", "queries"), [(16, 16), (16, 5), (16, 1)])
def test_sdpa_equals_the_reference(tensors, length, queries):
    q, k, v = tensors(length, queries=queries)
    torch.testing.assert_close(
        attend(q, k, v, "softmax", backend="sdpa"),
        attend(q, k, v, "softmax", backend="reference"),
        rtol=0,
        atol=1e-12,
    )


def test_cosine_scores_ignore_the_length_of_queries_and_keys(tensors):
    q, k, v = tensors(9)
    for name in ("lssa", "lssar", "cosine"):
        torch.testing.assert_close(attend(7 * q, 0.1 * k, v, name), attend(q, k, v, name))
    assert not torch.allclose(attend(7 * q, k, v, "softmax"), attend(q, k, v, "softmax"))


def test_without_reweighting_is_the_first_stage(tensors, reweighted, variant):
    q, k, _ = tensors(9)
    these = variant(reweighted, q)
    stage = these.spec.without_reweighting()
    found = stages_of(q, k, stage, these.parameters).weights
    assert torch.equal(found, stages(q, k, reweighted, **these.given).normalised)
    names = {"lssar": "lssa", "softmax_reweighted": "softmax"}
    if reweighted in names:
        assert torch.equal(found, weights(q, k, names[reweighted]))


@pytest.mark.parametrize(
    "name", ["lssa", "lssar", "softmax_reweighted", "elastic", "lazy", "sigmoid_reweighted"]
)
def test_a_row_of_a_window_is_computed_as_if_its_keys_were_all_there_are(name):
    spec = dataclasses.replace(get(name), mask="window", window=6)
    whole = dataclasses.replace(spec, mask="causal")
    q, k, v = (torch.randn(1, 2, 15, 8, dtype=torch.float64) for _ in range(3))
    learned = {}
    if spec.learn_tau and spec.sharpen.startswith("elastic"):
        learned["tau"] = torch.tensor([0.7, 1.3], dtype=torch.float64)
    if spec.bias == "learned":
        learned["bias"] = torch.randn(2, 9, dtype=torch.float64)
    out = reference.attend(q, k, v, spec, learned)
    for row in range(15):
        seen = slice(max(0, row - 5), row + 1)
        alone = reference.attend(
            q[:, :, row : row + 1], k[:, :, seen], v[:, :, seen], whole, learned
        )
        torch.testing.assert_close(out[:, :, row], alone[:, :, 0])
