"""The ideal observer's posterior of the planet's mass, against simulation of the observation."""

import numpy as np
import pytest
from scipy import stats

from orbits import protocols
from orbits.posterior import _constraints, implied_force, mass_posterior

pytestmark = pytest.mark.full

G = 39.4784176044
GAMMA = stats.gamma(0.3202016451781988, 6.009814999999999e-08, 0.001105594954623053)


def prior_masses(rng, n):
    return np.clip(GAMMA.rvs(n, random_state=rng), 1e-9, 1e-3)


def likelihood(protocol, indices, m1):
    """Return the probability of the tokens if the planets had the masses ``m1`` [N, K]."""
    return _constraints(protocol, protocol.systems(0, "test", indices, "force")).likelihood(m1)


def accepted_draws(rng, protocol, index, n=60_000):
    """Prior masses with which a star is seen as it is, and the prior's weight of their centres.

    Centres of mass are drawn from the box that the planet's bins leave of them.
    """
    world = protocol.systems(0, "test", [index], "force")
    seen = protocol.batch(0, "test", [index], "force")
    bins, width = seen["tokens"][0, 1:], (protocol.high - protocol.low) / protocol.n_bins
    path = seen["coordinates"][0, 1::2] - world.centre_of_mass
    left = protocol.low + bins[::2] * width - path
    masses = prior_masses(rng, n)
    centres = rng.uniform(left.max(axis=0), (left + width).min(axis=0), (n, 2))
    star = centres[:, None] - (masses / world.star_mass)[:, None, None] * path[: len(bins) // 2]
    accepted = (np.floor((star - protocol.low) / width) == bins[1::2]).all(axis=(1, 2))
    return masses[accepted], stats.norm.pdf(centres[accepted]).prod(axis=1)


def star_moves(protocol, n):
    """Sequences whose star is seen in several bins."""
    star = protocol.batch(0, "test", np.arange(n), "force")["tokens"][:, 2::2]
    return np.flatnonzero((star != star[:, :1]).any(axis=(1, 2)))


@pytest.mark.parametrize("star", ["moves", "rests"])
def test_posterior_is_that_of_accepted_prior_draws(star):
    protocol = protocols.get("fixed", {"n_points": 40})
    moving = star_moves(protocol, 200)
    resting = np.setdiff1d(np.arange(12), moving)
    rng, compared = np.random.default_rng(0), 0
    for index in moving if star == "moves" else resting:
        m1, weight = accepted_draws(rng, protocol, index)
        if len(m1) < 400:
            continue
        found = mass_posterior(protocol, 0, "test", [index])
        for value, sample in ((found.m1_mean, m1), (found.m1_log_mean, np.log(m1))):
            mean = np.average(sample, weights=weight)
            spread = np.sqrt(np.average((sample - mean) ** 2, weights=weight))
            assert abs(value[0] - mean) < 5 * spread / np.sqrt(len(m1))
        assert found.m1_log_sd[0] == pytest.approx(spread, rel=0.1, abs=0.01)
        compared += 1
        if compared == 6:
            return
    pytest.fail(f"only {compared} sequences compared")


@pytest.mark.full
def test_posterior_is_that_of_a_riemann_sum_where_the_mass_is_sharp():
    protocol = protocols.get("fixed", {"n_points": 300})
    found = mass_posterior(protocol, 0, "test", np.arange(50))
    sharp = np.argsort(found.m1_log_sd)[:3]
    assert np.all(found.m1_log_sd[sharp] < 0.1)
    for index in sharp:
        truth = protocol.systems(0, "test", [index], "force").planet_mass[0]
        m1 = np.linspace(max(0.3 * truth, 1e-6), np.minimum(3 * truth, 1e-3), 10_000)[:, 0]
        seen = likelihood(protocol, [index], m1[None])[0]
        weight = seen * GAMMA.pdf(m1) * np.gradient(m1)
        weight[-1] += seen[-1] * GAMMA.sf(1e-3) * (m1[-1] == 1e-3)
        expected = np.average(m1, weights=weight)
        assert found.m1_mean[index] == pytest.approx(expected, rel=1e-3)


@pytest.mark.full
@pytest.mark.parametrize("name", ["fixed", pytest.param("paper", marks=pytest.mark.full)])
def test_errors_are_as_large_as_the_posterior_says(name):
    protocol, many = protocols.get(name, {"n_points": 48}), np.arange(500)
    truth = protocol.systems(1, "test", many, "force").planet_mass[:, 0]
    found = mass_posterior(protocol, 1, "test", many)
    for error in (truth - found.m1_mean, np.log(truth) - found.m1_log_mean):
        assert abs(error.mean()) < 4 * error.std() / np.sqrt(len(many))
    excess = error**2 - found.m1_log_sd**2
    assert abs(excess.mean()) < 4 * excess.std() / np.sqrt(len(many))
    assert 0.05 < np.mean(found.m1_log_sd < 0.3) < 0.6  # both kinds of sequences are there


@pytest.mark.parametrize(
    ("name", "changes", "n"),
    [
        pytest.param("paper", {"n_points": 999}, 20, marks=pytest.mark.full),
        pytest.param("fixed", {"n_points": 999}, 20, marks=pytest.mark.full),
        ("fixed", {"n_points": 31, "n_bins": 60_000}, 400),
        ("fixed", {"n_points": 31, "n_bins": 2}, 200),
    ],
)
def test_the_true_mass_is_always_possible(name, changes, n):
    protocol, many = protocols.get(name, changes), np.arange(n)
    truth = protocol.systems(0, "test", many, "force").planet_mass
    assert np.all(likelihood(protocol, many, truth) > 0)
    assert np.all(np.isfinite(mass_posterior(protocol, 0, "test", many)))


def test_a_planet_beyond_the_box_bounds_nothing_on_that_side():
    protocol, many = protocols.get("fixed", {"n_points": 99}), np.arange(6000)
    tokens = protocol.batch(0, "test", many, "force")["tokens"][:, 1:]
    outside = np.flatnonzero(((tokens == 0) | (tokens == 6999)).any(axis=(1, 2)))
    assert len(outside) >= 3
    truth = protocol.systems(0, "test", outside, "force").planet_mass
    assert np.all(likelihood(protocol, outside, truth) > 0)


def test_a_blind_observer_is_left_with_the_prior():
    blind = protocols.get("fixed", {"n_points": 12, "n_bins": 2})
    found = mass_posterior(blind, 0, "test", np.arange(50))
    draws = prior_masses(np.random.default_rng(0), 2_000_000)
    unmoved = np.setdiff1d(np.arange(50), star_moves(blind, 50))
    assert np.median(found.m1_mean[unmoved]) == pytest.approx(draws.mean(), rel=0.02)
    assert np.median(found.m1_log_mean[unmoved]) == pytest.approx(np.log(draws).mean(), abs=0.05)
    assert np.median(found.m1_log_sd[unmoved]) == pytest.approx(np.log(draws).std(), abs=0.05)


@pytest.mark.full
def test_finer_bins_determine_more():
    spreads = [
        mass_posterior(
            protocols.get("fixed", {"n_points": 64, "n_bins": bins}), 0, "test", np.arange(100)
        ).m1_log_sd.mean()
        for bins in (1000, 7000, 60_000)
    ]
    assert spreads[0] > spreads[1] > spreads[2]


@pytest.mark.parametrize("n_points", [31, 32])
def test_force_is_newtons_for_the_mass_it_is_given(n_points):
    protocol = protocols.get("fixed", {"n_points": n_points})
    batch = protocol.batch(0, "test", np.arange(20), "force")
    m1 = np.logspace(-9, -3, 20)
    force = implied_force(protocol, 0, "test", np.arange(20), m1)
    np.testing.assert_array_equal(np.isfinite(force), batch["body"] == 1)
    r, m2 = np.hypot(batch["state"][..., 0], batch["state"][..., 1]), batch["state"][..., 5]
    np.testing.assert_allclose(force, G * m1[:, None] * m2 / r**2, rtol=1e-9)


def test_a_protocol_with_another_prior_is_refused():
    with pytest.raises(ValueError, match=r"identifiable.*take paper or fixed"):
        mass_posterior(protocols.get("identifiable"), 0, "test", [0])
