"""What layers do with their attention, against what hooks see in an ordinary forward pass."""

import numpy as np
import pytest
import torch

from attention.layer import Attention
from worldmodel.maps import by_position, layer_states
from worldmodel.models.text import TextModel

B, L, HEADS, DIM = 3, 9, 2, 4


@pytest.fixture
def tokens():
    return torch.randint(257, (B, L), generator=torch.Generator().manual_seed(3))


def model(name, **changes):
    torch.manual_seed(0)
    size = {"n_layer": 3, "n_head": HEADS, "head_dim": DIM}
    task = TextModel("bytes", attention=name, **{**size, **changes}).double().eval()
    torch.nn.init.normal_(task.embedding.weight)
    return task


def seen(task, tokens):
    """Return, by block, what enters it, its projections [B, L, width] and what attention adds."""
    found = [{} for _ in task.gpt.blocks]
    handles = []
    for record, block in zip(found, task.gpt.blocks, strict=True):
        parts = {
            name: getattr(block.attention, name) for name in ("query", "key", "value", "project")
        }
        handles.append(
            block.register_forward_pre_hook(lambda _, x, r=record: r.update(hidden=x[0]))
        )
        for name, part in parts.items():
            handles.append(
                part.register_forward_hook(lambda _, __, y, r=record, n=name: r.update({n: y}))
            )
    with torch.no_grad():
        task({"tokens": tokens})
    for handle in handles:
        handle.remove()
    return found


@pytest.mark.parametrize("mlp", ["gelu", "none"])
@pytest.mark.parametrize("name", ["softmax", "lssar", "elastic", "sink_bias", "alibi", "zeros_sm"])
def test_states_are_those_of_a_forward_pass(name, mlp, tokens):
    task = model(name, mlp=mlp)
    states, expected = list(layer_states(task, tokens)), seen(task, tokens)
    assert len(states) == len(expected) == 3
    for state, record, block in zip(states, expected, task.gpt.blocks, strict=True):
        torch.testing.assert_close(state.hidden, record["hidden"])
        for part in ("query", "key", "value"):
            heads = record[part].reshape(B, L, HEADS, DIM).permute(0, 2, 1, 3)
            torch.testing.assert_close(getattr(state, part), heads)
        assert state.weights.shape == (B, HEADS, L, L)
        assert (state.weights.triu(1) == 0).all()
        mixed = torch.einsum("bhij,bhjd->bihd", state.weights, state.value).reshape(B, L, -1)
        torch.testing.assert_close(mixed @ block.attention.project.weight.T, record["project"])


def test_weights_follow_the_schedule_of_re_weighting(tokens):
    task = model("lssar")
    for layer in task.modules():
        if isinstance(layer, Attention):
            layer.set_sharpen(0.0)
    plain = model("lssa")
    plain.load_state_dict(task.state_dict())
    pairs = zip(layer_states(task, tokens), layer_states(plain, tokens), strict=True)
    for found, expected in pairs:
        torch.testing.assert_close(found.weights, expected.weights)
        assert (found.weights.tril() > 0).sum() == B * HEADS * L * (L + 1) // 2


def test_no_gradient_is_kept(tokens):
    assert not any(state.weights.requires_grad for state in layer_states(model("softmax"), tokens))


@pytest.mark.parametrize("shape", [(B, L, 8), (B, HEADS, L, DIM), (2, B, HEADS, L, DIM)])
def test_by_position_averages_over_all_but_the_position(shape):
    values = np.random.default_rng(0).normal(size=shape).astype(np.float32)
    found = by_position(torch.from_numpy(values))
    rows = np.moveaxis(values.astype(np.float64), -2, 0).reshape(L, -1, shape[-1])
    for place in range(L):
        norms = [sum(x * x for x in vector) ** 0.5 for vector in rows[place]]
        spreads = [
            sum((x - vector.mean()) ** 2 for x in vector) / (len(vector) - 1)
            for vector in rows[place]
        ]
        assert float(found["norm"][place]) == pytest.approx(sum(norms) / len(norms))
        assert float(found["var"][place]) == pytest.approx(sum(spreads) / len(spreads))
    assert found["norm"].dtype == found["var"].dtype == torch.float64
    assert found["norm"].shape == found["var"].shape == (L,)
