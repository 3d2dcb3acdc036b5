"""The posterior over laws: right where orbits tell it, calibrated, and blind to the truth."""

import dataclasses

import numpy as np
import pytest

from benchmarks.worlds.families import FAMILIES
from orbits import ceiling, protocols
from orbits.law_posterior import law_posterior, normalised
from orbits.laws.family import power_name

PROTOCOL = protocols.get("neutral_step")
FITTED = tuple(np.linspace(-2.75, 0.25, 10).round(4))


def posterior(exponent, n_seen, n, fitted=FITTED):
    world = dataclasses.replace(PROTOCOL, law=power_name(-exponent))
    return law_posterior(world, world.systems(0, "test", np.arange(n)), n_seen, fitted), world


def means(found):
    return np.trapezoid(found.density * found.exponents, found.exponents, axis=1)


def test_fits_under_a_believed_law_start_and_end_where_those_under_the_own_law_do():
    world = dataclasses.replace(PROTOCOL, law="power_1_5")
    some = world.systems(0, "test", np.arange(6))
    own = ceiling.fit(world, some, 24)
    same = ceiling.fit(world, some, 24, believed="power_1_5")
    np.testing.assert_array_equal(own.points, same.points)
    assert own.log_volume is None
    assert same.theta.shape == (6, 8)
    other = ceiling.fit(world, some, 24, believed=power_name(1.3))
    again = ceiling.fit(world, some, 24, believed=power_name(1.3), start=same.theta)
    there = other.converged & again.converged
    assert there.sum() >= 4
    np.testing.assert_allclose(other.points[there], again.points[there], atol=1e-3)


def test_a_density_is_one_in_all():
    grid = np.linspace(0, 2, 101)
    density = normalised(grid, np.stack([-(grid**2) - 900, 50 * grid]))
    assert np.trapezoid(density, grid, axis=1) == pytest.approx([1, 1])


@pytest.mark.full
def test_longer_prompts_tell_more_of_the_law_and_fits_go_on_as_the_truth():
    errors = []
    for n_seen in (8, 24):
        found, world = posterior(-1.0, n_seen, 16)
        assert np.trapezoid(found.density, found.exponents, axis=1) == pytest.approx(1)
        errors.append(np.median(np.abs(means(found) + 1)))
    assert errors[1] < 0.5 * errors[0]
    assert errors[1] < 0.1
    truth = world.batch(0, "test", np.arange(16))["coordinates"][:, 1:]
    off = np.linalg.norm(found.points - truth, axis=-1)
    assert np.median(off[:, :24]) < 2 * PROTOCOL.tokens.width
    # The nearest law of FITTED is 0.083 away: its orbits are off by more soon after the prompt.
    assert np.median(off[:, 24:36]) < 0.012


@pytest.mark.full
def test_laws_are_told_apart():
    shallow, steep = (np.median(means(posterior(x, 24, 8)[0])) for x in (-0.5, -2.0))
    assert shallow == pytest.approx(-0.5, abs=0.15)
    assert steep == pytest.approx(-2.0, abs=0.15)


@pytest.mark.parametrize("fitted", [(-2.0, -1.0), (-2.0, -1.5, -1.0, -0.5, -0.6)])
def test_too_few_laws_are_refused(fitted):
    with pytest.raises(ValueError, match="five or more ascending"):
        posterior(-1.0, 8, 2, fitted)


@pytest.mark.full
def test_the_parameter_of_another_family_is_found():
    family = FAMILIES["softened"]
    world = dataclasses.replace(PROTOCOL, law="softened_length_0.7")
    fitted = tuple(np.linspace(-1, np.log10(1.6), 8))
    some = world.systems(0, "test", np.arange(12))
    found = law_posterior(world, some, 24, fitted, family.name, np.log10(0.7))
    assert np.median(10 ** means(found)) == pytest.approx(0.7, rel=0.1)
