"""Heads of next points: densities against scipy, one scale of nats, medians, rollouts."""

import math

import numpy as np
import pytest
import torch
from scipy.special import logsumexp
from scipy.stats import norm
from torch.nn import functional

from orbits import protocols
from worldmodel.data.orbit_sequences import OrbitSequences
from worldmodel.models import next_point
from worldmodel.models.next_point import BinHead, DensityHead, next_point_head
from worldmodel.models.orbit import NextTokenModel
from worldmodel.models.rollout import rollout, rollout_with_places
from worldmodel.probes.motion.held_out import rolled_out

ARGS = {"n_points": 20, "n_bins": 40}
PROTOCOL = protocols.get("identifiable", ARGS)
LAYOUT = PROTOCOL.tokens
DENSITIES = ("mixture", "gaussian")
WIDTH = 6


def head(predicts):
    """Return a head with random weights in double precision."""
    torch.manual_seed(0)
    made = next_point_head(predicts, WIDTH, LAYOUT).double()
    for weights in made.parameters():
        torch.nn.init.normal_(weights, std=0.5)
    return made


def output(predicts, n=3, rows=4):
    made = head(predicts)
    hidden = torch.randn(n, rows, WIDTH, dtype=torch.float64)
    with torch.no_grad():
        return made, made(hidden)


def truth(n=3, rows=4):
    places = torch.rand(n, rows, 2, dtype=torch.float64) * 6 - 3
    return torch.from_numpy(LAYOUT.encode(places).astype(np.int64)), places


def components(found):
    """Return weight, mean and sd of each component, as numpy arrays."""
    weight, mean, sd = (x.numpy() for x in found.unbind(-1))
    return np.exp(weight), mean, sd


@pytest.mark.parametrize("predicts", DENSITIES)
def test_a_density_integrates_to_one(predicts):
    made, found = output(predicts, n=1, rows=1)
    grid = torch.linspace(-80, 80, 200_001, dtype=torch.float64)
    places = grid[:, None, None].expand(-1, 1, 2)
    nats = made.nats(found.expand(len(grid), -1, -1, -1, -1), None, places)
    density = (-nats).exp() / LAYOUT.width
    assert (density > 0).any()
    total = torch.trapezoid(density, grid, dim=0)
    torch.testing.assert_close(total, torch.ones_like(total), rtol=1e-4, atol=0)


@pytest.mark.parametrize("predicts", DENSITIES)
def test_nats_of_a_density_are_those_of_a_sum_over_its_gaussians(predicts):
    made, found = output(predicts)
    tokens, places = truth()
    weight, mean, sd = components(found)
    each = np.log(weight) + norm.logpdf(places.numpy()[..., None], mean, sd)
    expected = -logsumexp(each, axis=-1) - math.log(LAYOUT.width)
    np.testing.assert_allclose(made.nats(found, tokens, places), expected, rtol=1e-10)
    np.testing.assert_allclose(made.loss(found, tokens, places), expected.mean(), rtol=1e-10)
    np.testing.assert_allclose(made.expected(found), (weight * mean).sum(-1), rtol=1e-10)


def test_nats_of_a_density_are_on_the_scale_of_bins():
    made, found = output("mixture")
    found[..., 2] += 20 * LAYOUT.width  # so wide that a bin holds its density times its width
    tokens, _ = truth()
    centres = torch.from_numpy(LAYOUT.decode(tokens.numpy()))
    weight, mean, sd = components(found)
    edges = centres.numpy()[..., None] + LAYOUT.width * np.array([[[[-0.5]]], [[[0.5]]]])[:, None]
    below, above = (weight * norm.cdf(edge, mean, sd) for edge in edges)
    mass = torch.from_numpy((above - below).sum(-1))
    bins = BinHead(WIDTH, LAYOUT)
    logits = torch.full((3, 4, 2, LAYOUT.n_bins), -1e9, dtype=torch.float64)
    logits.scatter_(-1, tokens[..., None], mass.log()[..., None])
    rest = ((tokens + 1) % LAYOUT.n_bins)[..., None]
    logits.scatter_(-1, rest, torch.log1p(-mass)[..., None])
    as_bins = bins.nats(logits, tokens, centres)
    torch.testing.assert_close(made.nats(found, tokens, centres), as_bins, rtol=0, atol=2e-3)


@pytest.mark.parametrize("predicts", DENSITIES)
def test_gradients_of_nats_are_right(predicts):
    made = head(predicts)
    tokens, places = truth(2, 2)
    hidden = torch.randn(2, 2, WIDTH, dtype=torch.float64, requires_grad=True)
    weights = tuple(made.parameters())

    def nats(hidden, *_):
        return made.nats(made(hidden), tokens, places)

    assert torch.autograd.gradcheck(nats, (hidden, *weights))


def test_one_common_gaussian_is_least_squares():
    made = head("gaussian")
    tokens, places = truth()
    found = made(torch.randn(3, 4, WIDTH, dtype=torch.float64)).detach().requires_grad_()
    made.loss(found, tokens, places).backward()
    means, sd = found[..., 0, 1].detach(), found[0, 0, 0, 0, 2].detach()
    assert (found[..., 2] == sd).all(), "one standard deviation for all"
    expected = (means - places) / sd**2 / places.numel()
    torch.testing.assert_close(found.grad[..., 0, 1], expected)


@pytest.mark.parametrize("share", [0.5, 0.16, 0.84])
@pytest.mark.parametrize("predicts", DENSITIES)
def test_a_share_of_a_density_lies_below_its_quantile(predicts, share):
    made, found = output(predicts)
    quantile = made.quantile(found, share)
    weight, mean, sd = components(found)
    below = (weight * norm.cdf(quantile.numpy()[..., None], mean, sd)).sum(-1)
    np.testing.assert_allclose(below, share, atol=1e-9)
    assert quantile.dtype == torch.float64
    if share == 0.5:
        torch.testing.assert_close(made.median(found), quantile, rtol=0, atol=0)


@pytest.mark.parametrize("share", [0.5, 0.16, 0.84])
def test_a_share_of_bins_lies_below_their_quantile(share):
    made, found = output("bins")
    edges = np.linspace(made.layout.low, made.layout.high, made.n_bins + 1)
    for logits, place in zip(
        found.reshape(-1, made.n_bins), made.quantile(found, share).reshape(-1), strict=True
    ):
        below = np.concatenate([[0.0], logits.double().softmax(-1).cumsum(-1).numpy()])
        assert np.interp(place, edges, below) == pytest.approx(share, abs=1e-6)


def test_bins_have_the_likelihood_of_a_cross_entropy():
    made, found = output("bins")
    tokens, places = truth()
    expected = functional.cross_entropy(found.flatten(0, 2), tokens.flatten(), reduction="none")
    torch.testing.assert_close(made.nats(found, tokens, places).flatten(), expected)
    torch.testing.assert_close(made.loss(found, tokens, places), expected.mean())
    shares = found.softmax(-1).numpy()
    centres = LAYOUT.low + (np.arange(LAYOUT.n_bins) + 0.5) * LAYOUT.width
    np.testing.assert_allclose(made.expected(found), shares @ centres, atol=1e-6)
    edges = LAYOUT.low + np.arange(LAYOUT.n_bins + 1) * LAYOUT.width
    cumulative = np.concatenate([[0], np.cumsum(shares[1, 2, 0])])
    assert made.median(found)[1, 2, 0] == pytest.approx(np.interp(0.5, cumulative, edges))


def test_samples_have_the_moments_of_the_mixture():
    made, found = output("mixture", 1, 1)
    many = found.expand(20_000, -1, -1, -1, -1)
    draw = made.sample(many, torch.Generator().manual_seed(0))
    weight, mean, sd = components(found[0, 0])
    middle = (weight * mean).sum(-1)
    variance = (weight * (mean**2 + sd**2)).sum(-1) - middle**2
    seen = draw.place[:, 0]
    error = np.sqrt(variance / len(seen))
    assert (np.abs(seen.mean(0).numpy() - middle) < 5 * error).all()
    np.testing.assert_allclose(seen.var(0), variance, rtol=0.1)
    assert abs(np.corrcoef(seen.numpy().T)[0, 1]) < 0.04, "x and y are drawn independently"
    inside = (seen.abs() < 3.9).all(-1)
    np.testing.assert_array_equal(draw.bins[inside, 0], LAYOUT.encode(seen[inside]))
    assert draw.bins.min() >= 0
    assert draw.bins.max() < LAYOUT.n_bins


def test_an_unknown_head_is_refused():
    with pytest.raises(ValueError, match="'laplace'; choose from bins, mixture, gaussian"):
        NextTokenModel(predicts="laplace", protocol_args=ARGS, head_dim=8)


def model(**changes):
    torch.manual_seed(0)
    options = {"protocol_args": ARGS, "head_dim": 8, "input": "coordinates"}
    task = NextTokenModel(**{**options, "predicts": "mixture", **changes}).eval().double()
    torch.nn.init.normal_(task.head.density.weight)
    return task


def batch(n=4):
    made = OrbitSequences(PROTOCOL, "pretrain", "test", 0, n).as_batch()
    return {**made, "coordinates": made["coordinates"].double()}


@pytest.mark.parametrize("changes", [{}, {"predicts": "gaussian"}, {"window": 3}])
def test_a_rollout_of_a_density_feeds_its_medians_back(changes):
    task, n_prompt, n_rows = model(**changes), 7, 5
    prompt = {x: batch()[x][:, :n_prompt] for x in ("tokens", "coordinates")}
    tokens, places = rollout_with_places(task, prompt, n_rows)
    again = rollout_with_places(task, prompt, n_rows)
    assert torch.equal(tokens, again[0])
    assert torch.equal(places, again[1])
    slow = rollout_with_places(task, prompt, n_rows, use_cache=False)[1]
    torch.testing.assert_close(places, slow)
    seen = prompt["coordinates"]
    for row in range(n_rows):
        with torch.no_grad():
            hidden = task.hidden({"tokens": tokens[:, : n_prompt + row], "coordinates": seen})
            expected = task.head.median(task.head(hidden[:, -1:]))
        torch.testing.assert_close(places[:, row : row + 1], expected)
        seen = torch.cat([seen, expected], dim=1)
    assert len(places.unique()) > 20
    drawn = rollout(task, prompt, n_rows, generator=torch.Generator().manual_seed(1))
    assert not torch.equal(drawn, tokens)


@pytest.mark.parametrize("kind", ["coordinates", "bin_centres"])
def test_a_path_begins_with_what_the_model_read(kind):
    task = model(input=kind).float()
    observed = PROTOCOL.batch(0, "test", range(4))
    path = rolled_out(task, observed, 7)
    exact = observed["coordinates"][:, 1:7]
    centres = LAYOUT.decode(observed["tokens"][:, 1:7])
    np.testing.assert_array_equal(path[:, 1:7], exact if kind == "coordinates" else centres)
    assert not path[:, 0].any()
    on_centres = np.isclose((path[:, 7:] - LAYOUT.low) / LAYOUT.width % 1, 0.5).all()
    assert not on_centres, "a density's places are finer than bins"


def test_components_start_apart_and_inside_the_box():
    made = DensityHead(WIDTH, LAYOUT, next_point.COMPONENTS)
    means = made(torch.zeros(1, 1, WIDTH))[0, 0, :, :, 1]
    assert (means.diff(dim=-1) >= 0.49).all()
    assert means.abs().max() < LAYOUT.high


@pytest.mark.parametrize("predicts", ["mixture", "gaussian"])
def test_a_density_is_computed_in_full_precision_and_on_the_meta_device(predicts):
    layout = protocols.get("identifiable").tokens
    head, hidden = next_point_head(predicts, 16, layout), torch.randn(2, 5, 16)
    expected = head(hidden)
    with torch.autocast("cpu", torch.bfloat16):
        assert torch.equal(head(hidden), expected)
    assert head.to("meta")(hidden.to("meta")).shape == expected.shape
