"""The indexer that selects keys learns the attention of all heads, and from nothing else."""

import math

import pytest
import torch

from attention.parts.selection import index_loss, index_losses
from tests.attention.selecting import LENGTH, built, chosen_by_loops, index_by_loops, inputs


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


@pytest.mark.full
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
