"""Attention of an encoder: every row sees all keys, and is the last row of a causal matrix."""

import pytest
import torch

import attention
from attention import reference
from worldmodel.models.backbone import GPT

BIASED = {"alibi", "lazy", "lazy_no_elastic"}
ENCODERS = [name for name in attention.names() if attention.get(name).mask == "causal"]


def module(name, **args):
    more = {"length": 9} if "length" in attention.arguments(name) else {}
    torch.manual_seed(0)
    built = attention.build(name, n_head=2, head_dim=4, causal=False, **more, **args)
    return built.double()


@pytest.mark.parametrize("name", sorted(set(ENCODERS) - BIASED))
def test_a_row_of_an_encoder_is_the_last_row_with_its_query(name):
    layer, x = module(name, rope_base=None), torch.randn(2, 9, 8, dtype=torch.float64)
    weights = layer.weights(x)
    q, k, *_ = layer._heads(x, None)
    parameters = layer._parameters_of(x)
    for row in range(9):
        # Alone, the last query sees as many keys and stands in the same row number.
        own = dict(parameters)
        if "gates" in own:
            own["gates"] = own["gates"][..., row : row + 1, :]
        alone = reference.weights(q[..., row : row + 1, :], k, layer.spec, own)
        torch.testing.assert_close(weights[..., row : row + 1, :], alone)


@pytest.mark.parametrize("name", sorted(BIASED))
def test_distances_count_in_both_directions(name):
    layer = module(name, rope_base=None)
    if "bias" in layer.learned:
        torch.nn.init.normal_(layer.learned["bias"])
    x = torch.ones(1, 9, 8, dtype=torch.float64)  # equal tokens: distance alone tells keys apart
    weights = layer.weights(x)
    torch.testing.assert_close(weights, weights.flip(-1, -2))
    assert weights[0, 0, 0].std() > 0


@pytest.mark.parametrize("name", ["softmax", "lssar", "zeros", "tnn", "hgrn1", "hgrn2"])
def test_an_encoder_reads_ahead_and_a_gpt_does_not(name):
    torch.manual_seed(0)
    x = torch.randn(1, 8, 8)
    changed = x.clone()
    changed[:, -1] *= -1  # a constant added to all channels would be lost to the norm
    for causal in (True, False):
        model = GPT(name, None, 1, 2, 4, causal=causal)
        moved = (model(x) - model(changed))[:, :3].abs().max()
        assert (moved < 1e-6) == causal  # a Fourier transform rounds by what comes later


def test_what_cannot_be_is_one_line():
    words = "gla has no causal; every quadratic variant, hgrn1, hgrn2, tnn and zeros take one"
    with pytest.raises(TypeError, match=words):
        GPT("gla", None, 1, 2, 4, causal=False)
    for name in ("softmax", "hgrn1", "tnn", "zeros"):
        with pytest.raises(ValueError, match=f"^{name} causal=False sees what a GPT predicts"):
            GPT(name, {"causal": False}, 1, 2, 4)
    with pytest.raises(ValueError, match="streaming looks back through a window"):
        attention.build("streaming", n_head=2, head_dim=4, causal=False)
    layer = module("softmax")
    with pytest.raises(ValueError, match="reads a whole sequence"):
        layer(torch.ones(1, 9, 8, dtype=torch.float64), layer.new_cache())
