import math

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import solve_ivp

from orbits import kepler

G = 39.4784176044


def exact_anomaly(mean, eccentricity):
    """Newton's method on E - e sin E = M, to 40 digits."""
    with mpmath.workdps(40):
        m, e = mpmath.mpf(mean), mpmath.mpf(eccentricity)
        whole = 2 * mpmath.pi * mpmath.nint(m / (2 * mpmath.pi))
        rest = abs(m - whole)
        # On [0, pi] the left side is convex: from the right of the root, no step overshoots.
        x = min(rest + e, +mpmath.pi)
        for _ in range(200):
            step = (x - e * mpmath.sin(x) - rest) / (1 - e * mpmath.cos(x))
            x -= step
            if abs(step) < mpmath.mpf(10) ** -38:
                return whole + mpmath.sign(m - whole) * x
    raise AssertionError(f"no convergence at M = {mean}, e = {eccentricity}")


@pytest.mark.parametrize(
    ("eccentricity", "tolerance"),
    [
        (0.0, 1e-16),
        (1e-9, 1e-15),
        (0.1, 1e-15),
        (0.5, 1e-15),
        (0.9, 1e-15),
        (0.99, 4e-15),
        (0.999, 1e-14),
        (0.999999, 4e-13),
    ],
)
def test_anomaly_equals_forty_digit_solution(eccentricity, tolerance):
    rng = np.random.default_rng(1)
    mean = np.r_[0, np.pi, rng.uniform(0, np.pi, 60), 10.0 ** rng.uniform(-12, 0, 60)]
    mean = np.r_[mean, -mean]
    found = kepler.eccentric_anomaly(mean, eccentricity)
    for m, x in zip(mean, found, strict=True):
        assert abs(mpmath.mpf(float(x)) - exact_anomaly(m, eccentricity)) < tolerance, m


@pytest.mark.parametrize(
    ("eccentricity", "tolerance"), [(0.0, 2e-15), (0.9, 2e-15), (0.999, 1e-14)]
)
def test_cosine_and_sine_come_with_the_anomaly(eccentricity, tolerance):
    rng = np.random.default_rng(2)
    turns = np.r_[0.0, 0.5, -0.5, rng.uniform(-0.5, 0.5, 60), 10.0 ** rng.uniform(-10, -1, 30)]
    cosine, sine = kepler.anomaly_cos_sin(turns, eccentricity)
    for t, c, s in zip(turns, cosine, sine, strict=True):
        with mpmath.workdps(40):
            anomaly = exact_anomaly(2 * mpmath.pi * mpmath.mpf(float(t)), eccentricity)
            assert abs(mpmath.mpf(float(c)) - mpmath.cos(anomaly)) < tolerance, t
            assert abs(mpmath.mpf(float(s)) - mpmath.sin(anomaly)) < tolerance, t


def test_whole_turns_are_dropped_exactly():
    turns = np.array([0.0, 0.125, 0.3125, -0.4375])
    for whole in (1, -7, 1500):
        for once, again in zip(
            kepler.anomaly_cos_sin(turns, 0.7),
            kepler.anomaly_cos_sin(turns + whole, 0.7),
            strict=True,
        ):
            np.testing.assert_array_equal(once, again)


@pytest.mark.parametrize(
    ("mean", "eccentricity"),
    [(25.0, 0.0), (-33.3, 0.9), (9000.5, 0.3), (-1e4, 0.9), (1e6, 0.0), (1e6, 0.9)],
)
def test_anomaly_stays_in_the_revolution_of_a_large_mean_anomaly(mean, eccentricity):
    found = float(kepler.eccentric_anomaly(mean, eccentricity))
    # M itself is known to half a unit in the last place, which 1 - e amplifies.
    tolerance = 4 * math.ulp(abs(mean)) / (1 - eccentricity) + 1e-14
    assert abs(found - float(exact_anomaly(mean, eccentricity))) < tolerance


@settings(max_examples=60, deadline=None)
@given(st.floats(-1e4, 1e4), st.floats(0, 0.999))
def test_anomaly_satisfies_keplers_equation_and_is_odd(mean, eccentricity):
    found = kepler.eccentric_anomaly(mean, eccentricity)
    residual = found - eccentricity * np.sin(found) - mean
    assert abs(residual) < 1e-14 + 4 * math.ulp(abs(mean))
    assert kepler.eccentric_anomaly(-mean, eccentricity) == -found


def test_anomaly_at_the_apsides_and_its_shapes():
    ecc = np.array([0, 0.3, 0.9, 0.999])
    np.testing.assert_array_equal(kepler.eccentric_anomaly(0.0, ecc), 0.0)
    np.testing.assert_allclose(kepler.eccentric_anomaly(np.pi, ecc), np.pi, rtol=0, atol=1e-15)
    np.testing.assert_allclose(kepler.eccentric_anomaly(-np.pi, ecc), -np.pi, rtol=0, atol=1e-15)
    assert kepler.eccentric_anomaly(1.0, 0.2).shape == ()
    assert kepler.eccentric_anomaly(np.ones((3, 1)), np.zeros(4)).shape == (3, 4)
    assert kepler.eccentric_anomaly([], 0.5).shape == (0,)


@pytest.mark.parametrize("bad", [1.0, 1.5, -0.1, math.nan, math.inf])
def test_unbound_eccentricity_is_refused_by_value(bad):
    with pytest.raises(ValueError, match="eccentricity") as error:
        kepler.eccentric_anomaly([0.1, 0.2], [0.5, bad])
    assert str(bad) in str(error.value)
    with pytest.raises(ValueError, match="eccentricity"):
        kepler.relative_orbit([1.0], [bad], [0.0], [0.0], [1.0], [[0.0]])


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_mean_anomaly_must_be_finite(bad):
    with pytest.raises(ValueError, match="mean_anomaly"):
        kepler.eccentric_anomaly([0.0, bad], 0.1)


@pytest.mark.parametrize(("a", "mass"), [(0.0, 1.0), (-1.0, 1.0), (1.0, -2.0), (math.nan, 1.0)])
def test_axes_and_masses_must_be_positive(a, mass):
    bad = mass if a == 1 else a
    with pytest.raises(ValueError, match=f"must be positive and finite, got {bad}"):
        kepler.period([1.0, a], [1.0, mass])
    with pytest.raises(ValueError, match=f"must be positive and finite, got {bad}"):
        kepler.relative_orbit([a], [0.1], [0.0], [0.0], [mass], [[0.0]])


def orbit(a, e, omega, phase, mass, times):
    position, velocity = kepler.relative_orbit([a], [e], [omega], [phase], [mass], times[None])
    return position[0], velocity[0]


@pytest.mark.parametrize(
    ("a", "e", "omega", "phase", "mass"),
    [
        (1.0, 0.0, 0.0, 0.0, 1.0),
        (0.7, 0.3, 1.0, 2.0, 0.5),
        (2.0, 0.6, -2.5, 5.5, 6.0),
        (1.5, 0.75, 4.0, 1.0, 1.0),
        (5.0, 0.9, 0.4, 3.0, 2.5),
        (30.0, 0.5, 3.0, 6.0, 0.1),
    ],
)
def test_positions_equal_an_integrated_orbit_for_twenty_years(a, e, omega, phase, mass):
    times = np.linspace(0, 20, 41)
    position, velocity = orbit(a, e, omega, phase, mass, times)

    # The starting point is written down at the periapsis, where nothing has to be solved, and
    # integrated from the time of periapsis passage.
    mu = G * mass
    passage = -phase * math.sqrt(a**3 / mu)
    speed = math.sqrt(mu / a * (1 + e) / (1 - e))
    towards, along = (
        np.array([math.cos(omega), math.sin(omega)]),
        np.array([-math.sin(omega), math.cos(omega)]),
    )
    start = np.r_[a * (1 - e) * towards, speed * along]

    def motion(_, y):
        x0, x1 = y[0], y[1]
        pull = -mu / (x0 * x0 + x1 * x1) ** 1.5
        return [y[2], y[3], pull * x0, pull * x1]

    found = solve_ivp(
        motion, (passage, 20), start, method="DOP853", t_eval=times, rtol=3e-14, atol=1e-14
    ).y.T
    np.testing.assert_allclose(position, found[:, :2], rtol=0, atol=1e-9)
    np.testing.assert_allclose(velocity, found[:, 2:], rtol=0, atol=1e-7)


@pytest.mark.parametrize("e", [0.0, 0.2, 0.6, 0.9])
def test_energy_and_angular_momentum_are_constant(e):
    a, mass = 1.7, 2.3
    position, velocity = orbit(a, e, 0.8, 1.1, mass, np.linspace(0, 50, 1001))
    distance = np.hypot(*position.T)
    energy = 0.5 * np.sum(velocity**2, axis=1) - G * mass / distance
    momentum = position[:, 0] * velocity[:, 1] - position[:, 1] * velocity[:, 0]
    # Kinetic and potential energy cancel near the periapsis: relative to the larger of the two.
    scale = G * mass / (a * (1 - e))
    np.testing.assert_allclose(energy, -G * mass / (2 * a), rtol=0, atol=1e-12 * scale)
    np.testing.assert_allclose(momentum, math.sqrt(G * mass * a * (1 - e**2)), rtol=1e-12)


@pytest.mark.parametrize("e", [0.0, 0.3, 0.8])
def test_velocity_is_the_derivative_of_the_position(e):
    times, step = np.linspace(0, 3, 25), 1e-5
    _, velocity = orbit(1.0, e, 2.0, 0.5, 1.3, times)
    ahead, _ = orbit(1.0, e, 2.0, 0.5, 1.3, times + step)
    behind, _ = orbit(1.0, e, 2.0, 0.5, 1.3, times - step)
    slope = (ahead - behind) / (2 * step)
    np.testing.assert_allclose(velocity, slope, rtol=0, atol=3e-5 * np.abs(velocity).max())
    assert np.all(np.isfinite(slope))


@pytest.mark.parametrize(("a", "mass"), [(1.0, 1.0), (5.2, 1.0), (0.4, 3.0)])
def test_period_law_and_closure(a, mass):
    expected = 2 * math.pi * math.sqrt(a**3 / (G * mass))
    np.testing.assert_allclose(kepler.period(a, mass), expected, rtol=1e-15)
    position, _ = orbit(a, 0.7, 0.3, 0.9, mass, np.array([0, expected, 0.5 * expected]))
    np.testing.assert_allclose(position[0], position[1], rtol=0, atol=1e-12 * a)
    assert np.abs(position[0] - position[2]).max() > 0.1 * a


def test_motion_is_prograde_and_starts_at_the_periapsis():
    position, velocity = orbit(2.0, 0.4, 0.6, 0.0, 1.0, np.array([0.0]))
    np.testing.assert_allclose(position[0], 1.2 * np.array([math.cos(0.6), math.sin(0.6)]))
    assert position[0, 0] * velocity[0, 1] - position[0, 1] * velocity[0, 0] > 0


def test_a_trajectory_does_not_depend_on_its_batch():
    rng = np.random.default_rng(0)
    n = 13
    orbits = [rng.uniform(*r, n) for r in ((0.5, 5), (0, 0.9), (0, 6), (0, 6), (0.1, 5))]
    times = rng.uniform(0, 20, (n, 7))
    together = kepler.relative_orbit(*orbits, times)
    for i in range(n):
        alone = kepler.relative_orbit(*(x[i : i + 1] for x in orbits), times[i : i + 1])
        for one, many in zip(alone, together, strict=True):
            assert one[0].tobytes() == many[i].tobytes()
