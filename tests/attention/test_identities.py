"""The identities of the papers, and what the variants are to each other."""

import pytest
import torch

import attention
from attention import stages, weights
from attention.reference import stages as stages_of


def test_large_p_is_argmax(tensors, variant, reweighted):
    q, k, _ = tensors(12)
    best = weights(q, k, reweighted, **variant(reweighted, q, p=1).given).argmax(-1, keepdim=True)
    hard = torch.zeros(2, 3, 12, 12, dtype=torch.float64).scatter(-1, best, 1.0)
    found = weights(q, k, reweighted, **variant(reweighted, q, p=1e6).given)
    torch.testing.assert_close(found, hard, rtol=0, atol=1e-9)


def test_a_sink_far_below_is_softmax_and_one_far_above_takes_all(tensors):
    q, k, _ = tensors(9)
    for sink, factor in ((-1e4, 1.0), (1e4, 0.0)):
        found = weights(q, k, "sink_bias", {"sink": torch.full((3,), sink, dtype=torch.float64)})
        torch.testing.assert_close(found, factor * weights(q, k, "softmax"), rtol=0, atol=1e-14)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("size", [0.0, 1.0, 300.0])
@pytest.mark.parametrize("name", ["sparsemax", "entmax"])
def test_projections_stay_on_the_simplex(name, size, dtype):
    """Also far from zero, where sums of scores would lose the 1 they must reach."""
    scores = size + torch.randn(5, 400, dtype=torch.float64).to(dtype)
    project = {
        "sparsemax": attention.reference.sparsemax,
        "entmax": attention.reference.entmax15,
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


def test_without_reweighting_is_the_first_stage(tensors, reweighted, variant):
    q, k, _ = tensors(9)
    these = variant(reweighted, q)
    stage = these.spec.without_reweighting()
    found = stages_of(q, k, stage, these.parameters).weights
    assert torch.equal(found, stages(q, k, reweighted, **these.given).normalised)
    names = {"lssar": "lssa", "softmax_reweighted": "softmax"}
    if reweighted in names:
        assert torch.equal(found, weights(q, k, names[reweighted]))
