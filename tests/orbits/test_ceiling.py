import numpy as np
import pytest

from orbits import laws, protocols
from orbits.ceiling import _Orbits, best_fit, fit, implied_force, typical_systems
from orbits.implied.pulls import of_path
from orbits.implied.within import within
from orbits.observation import times


def exponents(protocol, n):
    """Fit log F = c + x log m1 + y log m2 + z log r by least squares over all planet rows."""
    batch = protocol.batch(0, "test", np.arange(n), "force")
    force = implied_force(protocol, best_fit(protocol, 0, "test", np.arange(n)))
    planet = batch["body"] == 1
    state = batch["state"][planet]
    columns = [state[:, 4], state[:, 5], np.hypot(state[:, 0], state[:, 1])]
    design = np.column_stack([np.ones(len(state)), np.log(columns).T])
    return np.linalg.lstsq(design, np.log(force[planet]), rcond=None)[0][1:]


def test_identifiable_world_shows_newtons_exponents():
    found = exponents(protocols.get("identifiable"), 500)
    np.testing.assert_allclose(found, [1, 1, -2], rtol=0, atol=0.02)


def test_coarser_bins_lower_the_ceiling():
    fine = exponents(protocols.get("identifiable"), 60)
    coarse = exponents(protocols.get("identifiable", {"n_bins": 12}), 60)
    assert np.abs(coarse - [1, 1, -2]).max() > 2 * np.abs(fine - [1, 1, -2]).max()


@pytest.mark.full
def test_planet_mass_is_invisible_in_the_paper_world():
    found = exponents(protocols.get("paper", {"n_points": 60}), 60)
    assert found[0] < 0.5


@pytest.mark.parametrize("n_points", [47, 48])
def test_ceiling_is_given_on_planet_rows_only(n_points):
    protocol = protocols.get("identifiable", {"n_points": n_points})
    batch = protocol.batch(0, "test", np.arange(12), "force")
    force = implied_force(protocol, best_fit(protocol, 0, "test", np.arange(12)))
    np.testing.assert_array_equal(np.isfinite(force), batch["body"] == 1)
    truth = np.hypot(*np.moveaxis(batch["force"], -1, 0))
    share = force[batch["body"] == 1] / truth[batch["body"] == 1]
    assert np.median(np.abs(np.log(share))) < 0.05


def test_an_orbit_goes_on_as_its_first_points_say():
    protocol = protocols.get("identifiable")
    world = protocol.systems(0, "test", np.arange(200))
    truth = protocol.observe(world)["coordinates"][:, 1:]

    def missed(n_seen):
        error = np.linalg.norm(fit(protocol, world, n_seen).points - truth, axis=-1)
        return np.median(error[:, :n_seen]), np.median(error[:, -1])

    inside, ahead = missed(24)
    assert inside < protocol.tokens.width / 2
    assert ahead < 2 * protocol.tokens.width
    assert missed(12)[1] > 2 * ahead, "a shorter arc says less"
    assert missed(48)[1] < ahead


def test_a_fit_reads_nothing_but_what_it_may_see():
    protocol = protocols.get("identifiable")
    world = protocol.systems(0, "test", np.arange(20))
    longer = protocols.get("identifiable", {"n_points": 60})
    np.testing.assert_allclose(
        fit(longer, world, 24).points[:, :48], fit(protocol, world, 24).points, rtol=0, atol=1e-12
    )


def test_impossible_fits_are_refused():
    protocol = protocols.get("identifiable")
    world = protocol.systems(0, "test", np.arange(2))
    for n_seen in (0, 49):
        with pytest.raises(ValueError, match=rf"n_seen must be in \[1, 48\], got {n_seen}"):
            fit(protocol, world, n_seen)
    fixed = protocols.get("fixed")
    with pytest.raises(ValueError, match="one planet"):
        fit(fixed, fixed.systems(0, "test", np.arange(20)))


def test_systems_that_are_not_typical_need_the_population_they_come_from():
    protocol = protocols.get("identifiable")
    population = protocol.systems(0, "test", np.arange(60))
    alike = population._replace(star_mass=np.full(60, 1.0))
    found = fit(protocol, alike, population=population)
    np.testing.assert_allclose(found.m2, 1, rtol=0.2)
    assert np.std(found.m2) > 0, "a mass is fitted, not known"


@pytest.mark.full
@pytest.mark.parametrize(
    ("law", "shift"),
    [
        ("newton", None),
        ("power_1_5", "closer"),
        ("newton", "more_eccentric"),
        ("power_1_5", "planet_lighter"),
    ],
)
def test_no_fit_ends_worse_than_it_began_and_all_end_at_a_minimum(law, shift):
    protocol = protocols.get("identifiable", {"law": law, "shift": shift})
    world = protocol.systems(0, "test", np.arange(100), "force")
    seen = protocol.tokens.decode(protocol.observe(world)["tokens"][:, 1:26])
    typical = typical_systems(protocol)

    def cost(steps):
        found = fit(protocol, world, 25, typical, steps)
        return np.sum((found.points[:, :25] - seen) ** 2, axis=(1, 2)), found

    begin, _ = cost(0)
    end, found = cost(300)
    assert found.converged.all()
    # The prior has a share in what is lowered, worth a noise variance or so.
    assert np.all(end <= begin + 10 * protocol.tokens.width**2 / 12)
    assert np.mean(end < begin) > 0.9
    twice = fit(protocol, world, 25, typical, 400)
    np.testing.assert_array_equal(twice.m1, found.m1)


def test_a_fit_that_is_stopped_early_says_that_it_has_not_converged():
    protocol = protocols.get("identifiable")
    world = protocol.systems(0, "test", np.arange(20), "force")
    assert not fit(protocol, world, 25, iterations=1).converged.any()


def test_derivatives_of_the_points_are_their_differences():
    protocol = protocols.get("identifiable", {"law": "yukawa"})
    world = protocol.systems(0, "test", np.arange(10), "force")
    when = times(world, protocol.dts, 48, n_planets=1)
    orbits = _Orbits(laws.get("yukawa"), when, 48, world.mean_anomaly[:, 0])
    theta, step = orbits.parameters(world), 1e-5
    jacobian = orbits.jacobian(theta)
    for k in range(8):
        shift = step * np.eye(8)[k]
        above, below = (orbits.observe(theta + sign * shift)[0] for sign in (1, -1))
        expected = ((above - below) / (2 * step)).reshape(10, -1)
        np.testing.assert_allclose(jacobian[..., k], expected, rtol=0, atol=1e-5)


def test_who_believes_another_law_fits_an_orbit_of_that_law():
    protocol = protocols.get("identifiable", {"law": "power_1_5"})
    world = protocol.systems(0, "test", np.arange(40))
    batch = protocol.observe(world)
    own, same, other = (
        fit(protocol, world, 24, believed=law) for law in (None, "power_1_5", "newton")
    )
    np.testing.assert_array_equal(own.points, same.points)
    assert other.converged.mean() > 0.9
    path = of_path(other.points[:, ::2] - other.points[:, 1::2], batch["dt"], 12)
    assert within(path).value == pytest.approx(-2, abs=0.01)
    own_error, error = (
        np.median(np.linalg.norm(x.points - batch["coordinates"][:, 1:], axis=-1), axis=0)
        for x in (own, other)
    )
    assert error[:24].mean() < 3 * own_error[:24].mean(), "what it saw it fits nearly as well"
    assert error[-1] > 10 * own_error[-1]


def test_a_belief_that_binds_no_such_orbit_is_refused():
    protocol = protocols.get("identifiable")
    world = protocol.systems(0, "test", np.arange(40))
    with pytest.raises(ValueError, match="'inverse_cube' does not bind"):
        fit(protocol, world, 24, believed="inverse_cube")


@pytest.mark.full
def test_neither_starts_nor_steps_leave_the_bound_orbits():
    # No circular orbit beyond (1 + sqrt 5) / 2 lengths, here 2.4 AU, is stable.
    protocol = protocols.get("neutral_step", {"law": "yukawa_length_2"})
    world = protocol.systems(0, "test", [15, 31, 85])  # whose fits would step beyond
    typical = typical_systems(protocol)

    def fitted(start=None):
        return fit(protocol, world, 8, typical, 20, believed="yukawa_length_1.5", start=start)

    found = fitted()
    assert np.isfinite(found.points).all()
    assert np.isfinite(found.log_volume).all()
    again = fitted(start=found.theta + 3 * np.eye(8)[2])
    np.testing.assert_array_equal(again.points, found.points)


def test_derivatives_beside_the_last_bound_orbit_are_to_one_side():
    protocol = protocols.get("neutral_step", {"law": "yukawa_length_1.5"})
    world = protocol.systems(0, "test", range(3))
    when = times(world, protocol.dts, 48, n_planets=1)
    orbits = _Orbits(laws.get(protocol.law), when, 48, world.mean_anomaly[:, 0])
    theta = orbits.parameters(world)
    low, high = theta.copy(), theta + 3 * np.eye(8)[2]
    for _ in range(60):
        middle = (low + high) / 2
        bound = np.isfinite(orbits.observe(middle)[0]).all(axis=(1, 2))[:, None]
        low, high = np.where(bound, middle, low), np.where(bound, high, middle)
    assert np.isnan(orbits.observe(high)[0]).all()
    jacobian = orbits.jacobian(low)
    assert np.isfinite(jacobian).all()
    assert (np.abs(jacobian[:, :, 2]).max(axis=1) > 1).all()
