import math

import numpy as np
import pytest

from orbits import kepler, nbody
from orbits.systems import Systems

G = 39.4784176044
DTS = (1 / 64, 1 / 32, 1 / 16)
SUN_AND_PLANETS = {
    "planet_mass": [1.652e-7, 2.447e-6, 3.003e-6, 3.213e-7, 9.544e-4, 2.857e-4, 4.354e-5, 5.165e-5],
    "semi_major_axis": [0.387, 0.723, 1.0, 1.524, 5.203, 9.537, 19.189, 30.069],
    "eccentricity": [0.205, 0.007, 0.017, 0.093, 0.048, 0.054, 0.047, 0.009],
}


def world(planet_mass, semi_major_axis, eccentricity, star_mass=1.0, seed=0):
    """Return one system with random angles."""
    n = len(planet_mass)
    angles = np.random.default_rng(seed).uniform(0, 2 * np.pi, (2, 1, n))
    return Systems(
        star_mass=np.array([star_mass]),
        planet_mass=np.array([planet_mass], float),
        semi_major_axis=np.array([semi_major_axis], float),
        eccentricity=np.array([eccentricity], float),
        periapsis=angles[0],
        mean_anomaly=angles[1],
        n_planets=np.array([n]),
        centre_of_mass=np.zeros((1, 2)),
        dt_index=np.zeros(1, np.int64),
        pinned_planet=np.zeros(1, np.int64),
        pinned_anomaly=np.zeros(1),
        coupling=np.ones(1),
    )


def system(many, i):
    return Systems(*(x[i : i + 1] for x in many))


def masses(one):
    return np.r_[one.star_mass, one.planet_mass[0, : one.n_planets[0]]]


def conserved(mass, positions, velocities):
    """Return energy [T], angular momentum [T], total momentum [T, 2], centre of mass [T, 2]."""
    energy = 0.5 * np.einsum("b,tbi,tbi->t", mass, velocities, velocities)
    for i in range(len(mass)):
        for j in range(i):
            gap = positions[:, i] - positions[:, j]
            energy -= G * mass[i] * mass[j] / np.hypot(gap[:, 0], gap[:, 1])
    turning = positions[..., 0] * velocities[..., 1] - positions[..., 1] * velocities[..., 0]
    centre = np.einsum("b,tbi->ti", mass, positions)
    return energy, turning @ mass, np.einsum("b,tbi->ti", mass, velocities), centre


def ias15(one, times):
    """Integrate with the fifteenth-order peer, from each planet's elements; [T, B, 2]."""
    rebound = pytest.importorskip("rebound")
    simulation = rebound.Simulation()
    simulation.G, simulation.integrator = G, "ias15"
    mass = masses(one)
    simulation.add(m=mass[0])
    for k in range(one.n_planets[0]):
        place, motion = kepler.relative_orbit(
            *(x[0, k : k + 1] for x in (one.semi_major_axis, one.eccentricity)),
            *(x[0, k : k + 1] for x in (one.periapsis, one.mean_anomaly)),
            [mass[0] + mass[k + 1]],
            [[0.0]],
        )
        (x, y), (vx, vy) = place[0, 0], motion[0, 0]
        simulation.add(m=mass[k + 1], x=x, y=y, vx=vx, vy=vy)
    simulation.move_to_com()
    found = np.empty((len(times), len(mass), 2))
    for t, time in enumerate(times):
        simulation.integrate(time)
        found[t] = [[body.x, body.y] for body in simulation.particles]
    return found


@pytest.mark.parametrize(
    ("e", "planet_mass"), [(0.0, 1e-9), (0.8, 1e-9), (0.3, 1e-3), (0.0, 0.7), (0.8, 0.7)]
)
def test_one_planet_moves_by_keplers_closed_form(e, planet_mass):
    one = world([planet_mass], [0.9], [e], star_mass=1.3)
    times = np.linspace(0, 40, 101)[None]
    positions, velocities = nbody.trajectories(one, times)
    expected = kepler.relative_orbit(
        one.semi_major_axis[0],
        one.eccentricity[0],
        one.periapsis[0],
        one.mean_anomaly[0],
        [1.3 + planet_mass],
        times,
    )
    for found, exact in zip((positions[0], velocities[0]), expected, strict=True):
        # The phase drifts with rounding over some 60 turns: 1.1e-10 measured at e = 0.8.
        tolerance = 5e-10 * np.abs(exact).max()
        np.testing.assert_allclose(found[:, 1] - found[:, 0], exact[0], rtol=0, atol=tolerance)
        centre = 1.3 * found[:, 0] + planet_mass * found[:, 1]
        np.testing.assert_allclose(centre, 0, atol=1e-14)


@pytest.mark.full
def test_the_solar_system_for_243_years():
    one = world(**SUN_AND_PLANETS)
    times = np.arange(501) * 0.486
    positions, velocities = nbody.trajectories(one, times[None])
    np.testing.assert_allclose(positions[0], ias15(one, times), rtol=0, atol=3e-9)
    energy, turning, momentum, centre = conserved(masses(one), positions[0], velocities[0])
    np.testing.assert_allclose(energy, energy[0], rtol=1e-12)
    np.testing.assert_allclose(turning, turning[0], rtol=1e-12)
    np.testing.assert_allclose(momentum, 0, atol=1e-15)
    np.testing.assert_allclose(centre, 0, atol=1e-15)
    # The planets do pull: Saturn is not where Kepler has it.
    alone = world(*([values[5]] for values in SUN_AND_PLANETS.values()))
    alone = alone._replace(periapsis=one.periapsis[:, 5:6], mean_anomaly=one.mean_anomaly[:, 5:6])
    kepler_only, _ = nbody.trajectories(alone, times[None])
    assert np.abs(kepler_only[0, :, 1] - positions[0, :, 6]).max() > 0.1


@pytest.mark.parametrize("i", range(3))
def test_hill_stable_systems_equal_the_peer(i):
    one = system(nbody.hill_stable(7, 0, np.arange(3), DTS), i)
    n, times = one.n_planets[0], np.linspace(0, 30, 61)
    positions, _ = nbody.trajectories(one, times[None])
    np.testing.assert_allclose(positions[0, :, : n + 1], ias15(one, times), rtol=0, atol=1e-8)
    assert np.all(np.isnan(positions[0, :, n + 1 :]))


@pytest.mark.full
def test_many_hill_stable_systems_equal_the_peer():
    many = nbody.hill_stable(11, 0, np.arange(60), DTS)
    times = np.linspace(0, 100, 201)
    for i in range(60):
        one = system(many, i)
        positions, _ = nbody.trajectories(one, times[None])
        exact = ias15(one, times)
        np.testing.assert_allclose(positions[0, :, : exact.shape[1]], exact, rtol=0, atol=1e-7)


def test_the_error_falls_with_a_high_power_of_the_step():
    one = world([1e-3, 5e-4], [1.0, 2.2], [0.05, 0.05])
    times = np.linspace(0, 20, 81)[None]
    best, _ = nbody.trajectories(one, times, steps_per_orbit=80)
    errors = [
        np.abs(nbody.trajectories(one, times, steps_per_orbit=n)[0] - best).max() for n in (6, 12)
    ]
    assert errors[0] / errors[1] > 2**5.5
    assert errors[1] < 1e-6


def test_output_times_and_the_order_of_planets_do_not_matter():
    one = world([1e-4, 3e-4, 2e-4], [1.0, 1.8, 3.5], [0.02, 0.05, 0.01])
    times = np.linspace(0, 10, 41)
    positions, velocities = nbody.trajectories(one, times[None])
    some = np.array([0, 3, 3, 17, 40])
    again, _ = nbody.trajectories(one, times[None, some])
    np.testing.assert_allclose(again[0], positions[0, some], rtol=0, atol=1e-10)
    np.testing.assert_array_equal(again[0, 1], again[0, 2])

    order = np.array([2, 0, 1])
    per_planet = ("planet_mass", "semi_major_axis", "eccentricity", "periapsis", "mean_anomaly")
    shuffled = one._replace(**{name: getattr(one, name)[:, order] for name in per_planet})
    others, speeds = nbody.trajectories(shuffled, times[None])
    bodies = np.r_[0, 1 + order]
    np.testing.assert_array_equal(others[0], positions[0][:, bodies])
    np.testing.assert_array_equal(speeds[0], velocities[0][:, bodies])


def test_velocity_is_the_derivative_of_the_position():
    one, step = world([1e-3, 5e-4], [1.0, 2.2], [0.05, 0.05]), 1e-3
    times = 3 + step * np.arange(-2, 3)
    positions, velocities = nbody.trajectories(one, times[None])
    slope = np.tensordot([1, -8, 0, 8, -1], positions[0], axes=1) / (12 * step)
    np.testing.assert_allclose(velocities[0, 2], slope, rtol=0, atol=1e-7)


def test_sampled_planets_keep_their_distance():
    many = nbody.hill_stable(3, 1, np.arange(2000), DTS)
    assert set(many.n_planets) == {2, 3, 4, 5}
    a, e, m = many.semi_major_axis, many.eccentricity, many.planet_mass
    there = np.arange(5) < many.n_planets[:, None]
    hill = np.cbrt((m[:, 1:] + m[:, :-1]) / (3 * many.star_mass[:, None])) * (a[:, 1:] + a[:, :-1])
    gap = (a * (1 - e))[:, 1:] - (a * (1 + e))[:, :-1]
    spacing = (gap / (hill / 2))[there[:, 1:]]
    assert spacing.min() > 10 - 1e-9
    assert np.median(spacing) < 20
    for values, low, high in (
        (a[:, 0], 0.3, 1.2),
        (a[there], 0.3, 32),
        (e, 0, 0.08),
        (m, 1e-5, 1e-3),
        (many.star_mass, 0.5, 2),
        (many.periapsis, 0, 2 * np.pi),
        (many.mean_anomaly, 0, 2 * np.pi),
    ):
        assert low <= values.min() < values.max() <= high
    period = kepler.period(a[:, 0], many.star_mass + m[:, 0])
    dt = np.array(DTS)[many.dt_index]
    assert np.all((dt * 12 <= period) | (many.dt_index == 0))
    assert np.all((dt * 24 > period) | (many.dt_index == 2))


def test_a_system_is_a_pure_function_of_its_address():
    together = nbody.hill_stable(5, 2, [9, 4, 7], DTS)
    alone = nbody.hill_stable(5, 2, [4], DTS)
    for one, many in zip(alone, together, strict=True):
        np.testing.assert_array_equal(one[0], many[1])
    for other in (nbody.hill_stable(6, 2, [4], DTS), nbody.hill_stable(5, 1, [4], DTS)):
        assert other.star_mass[0] != alone.star_mass[0]
    times = np.linspace(0, 3, 7)
    positions, _ = nbody.trajectories(together, np.tile(times, (3, 1)))
    np.testing.assert_array_equal(positions[1], nbody.trajectories(alone, times[None])[0][0])


@pytest.mark.parametrize("times", [np.linspace(0, 60, 61), [100.0], [99.0, 100.0]], ids=len)
def test_a_close_encounter_is_refused(times):
    crossing = world([1e-3, 1e-3], [1.0, 1.02], [0.3, 0.3])
    with pytest.raises(ValueError, match="trajectory 0 met too closely for 20 steps"):
        nbody.trajectories(crossing, np.asarray(times)[None])


@pytest.mark.parametrize(
    ("times", "steps", "message"),
    [
        ([0.0, 1.0], 20, r"times must have shape \[1, T\], got \[2\]"),
        ([[-1.0, 1.0]], 20, "start at 0 or later"),
        ([[1.0, 0.5]], 20, "not decrease"),
        ([[0.0, math.nan]], 20, "times must be finite"),
        ([[0.0, 1.0]], 3, "steps_per_orbit must be at least 4, got 3"),
    ],
)
def test_bad_times_are_refused(times, steps, message):
    with pytest.raises(ValueError, match=message):
        nbody.trajectories(world([1e-4], [1.0], [0.0]), times, steps)


def test_one_planet_cannot_be_spaced():
    with pytest.raises(ValueError, match="max_planets must be at least 2, got 1"):
        nbody.hill_stable(0, 0, [0], DTS, max_planets=1)


def test_a_star_alone_has_no_planet():
    with pytest.raises(ValueError, match="trajectory 0 has no planet"):
        nbody.trajectories(world([], [], []), np.array([[0.0, 1.0]]))
