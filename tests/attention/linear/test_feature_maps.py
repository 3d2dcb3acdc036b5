"""HedgeHog and Performer against sums over pairs of positions."""

import pytest
import torch

from attention import linear
from attention.linear.performer import orthogonal_normal
from tests.attention.linear.published import built, check, few_cases, turned


def published(weight):
    """Return the loop over pairs of positions of the weight of (mixer, head, query, key)."""

    def recurrence(mixer, sequence):
        rows = []
        for t in range(len(sequence)):
            heads = []
            for h in range(mixer.n_head):
                part = slice(4 * h, 4 * h + 4)
                q = turned(mixer.query.weight[part] @ sequence[t], t)
                weights, values = [], []
                for i in range(t + 1):
                    k = turned(mixer.key.weight[part] @ sequence[i], i)
                    weights.append(weight(mixer, h, q, k))
                    values.append(mixer.value.weight[part] @ sequence[i])
                weights = torch.stack(weights)
                heads.append(weights / weights.sum() @ torch.stack(values))
            rows.append(mixer.project.weight @ torch.cat(heads))
        return torch.stack(rows)

    return recurrence


def hedgehog(mixer, h, q, k):
    features = []
    for which, x in enumerate((q, k)):
        z = mixer.maps[which, h] @ x + mixer.offsets[which, h, 0]
        e = torch.cat([z.exp(), (-z).exp()])
        features.append(e / e.sum())
    return features[0] @ features[1]


def performer(mixer, h, q, k):
    w = mixer.directions
    q, k = q / 4**0.25, k / 4**0.25
    stabilise = 1e-6
    of_query = (w @ q - (w @ q).max()).exp() + stabilise
    of_key = (w @ k - k @ k / 2).exp() + stabilise
    return of_query @ of_key


@few_cases
@pytest.mark.parametrize(
    ("weight", "arguments"),
    [(hedgehog, {}), (performer, {"state": 6})],
    ids=["hedgehog", "performer"],
)
def test_both_forms_are_the_published_sum(weight, arguments, length, seen):
    check(weight.__name__, published(weight), length, seen, **arguments)


def test_hedgehog_starts_from_the_identity():
    mixer = linear.build("hedgehog", n_head=2, head_dim=4)
    x = torch.randn(1, 2, 3, 4)
    expected = torch.cat([x, -x], -1).softmax(-1)
    for found in mixer._features(x, x):
        torch.testing.assert_close(found, expected)


@pytest.mark.full
def test_hedgehog_has_the_features_of_fla():
    feature_map = pytest.importorskip("fla.modules.feature_map")
    theirs = feature_map.HedgehogFeatureMap(4).double()
    mixer = built("hedgehog")
    x = torch.randn(1, 2, 3, 4, dtype=torch.float64)
    with torch.no_grad():
        theirs.layer.weight.copy_(mixer.maps[0, 1])
        theirs.layer.bias.copy_(mixer.offsets[0, 1, 0])
    # fla doubles what the softmax sees.
    mixer.maps.data *= 2
    mixer.offsets.data *= 2
    torch.testing.assert_close(mixer._features(x, x)[0][:, 1], theirs(x)[:, 1])


def test_directions_are_orthogonal_and_normally_long():
    torch.manual_seed(0)
    w = orthogonal_normal(20, 8)
    for block in w.split(8):
        product = block @ block.T
        assert (product - product.diag().diag()).abs().max() < 1e-4
    assert orthogonal_normal(4000, 8).square().sum(-1).mean() == pytest.approx(8, rel=0.05)


@pytest.mark.full
def test_performers_weights_tend_to_softmaxs():
    torch.manual_seed(0)
    mixer = linear.build("performer", n_head=1, head_dim=8, state=40_000)
    q, k = torch.randn(2, 1, 1, 5, 8) / 2
    of_query, of_key = mixer._features(q, k)
    found = of_query @ of_key.mT
    found = found / found.sum(-1, keepdim=True)
    expected = (q @ k.mT / 8**0.5).softmax(-1)
    torch.testing.assert_close(found, expected, rtol=0.05, atol=0)
    assert (expected * 5 - 1).abs().max() > 0.2, "equal weights would not pass"


def test_performers_features_of_wide_heads_fit_into_float32():
    mixer = linear.build("performer", n_head=1, head_dim=512)
    assert mixer.directions.square().sum(-1).max() / 2 > 88, "whose exponential is infinite"
    # The key of the largest feature.
    longest = mixer.directions[mixer.directions.norm(dim=-1).argmax()] * 512**0.25
    _, of_key = mixer._features(longest, longest)
    assert of_key.isfinite().all()
    assert of_key.max() > 1e20
