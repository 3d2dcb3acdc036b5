import math

import mpmath
import numpy as np
import pytest
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
    [(0.0, 2e-15), (1e-9, 2e-15), (0.5, 2e-15), (0.9, 2e-15), (0.999, 1e-14), (0.999999, 4e-13)],
)
def test_cosine_and_sine_are_those_of_the_forty_digit_anomaly(eccentricity, tolerance):
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


@pytest.mark.parametrize("bad", [1.0, 1.5, -0.1, math.nan, math.inf])
def test_unbound_eccentricity_is_refused_by_value(bad):
    with pytest.raises(ValueError, match=f"eccentricity must be .*, got {bad}"):
        kepler.relative_orbit([1.0], [bad], [0.0], [0.0], [1.0], [[0.0]])


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


@pytest.mark.full
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


@pytest.mark.parametrize(("a", "mass"), [(1.0, 1.0), (5.2, 1.0), (0.4, 3.0)])
def test_period_law_and_closure(a, mass):
    expected = 2 * math.pi * math.sqrt(a**3 / (G * mass))
    np.testing.assert_allclose(kepler.period(a, mass), expected, rtol=1e-15)
    position, _ = orbit(a, 0.7, 0.3, 0.9, mass, np.array([0, expected, 0.5 * expected]))
    np.testing.assert_allclose(position[0], position[1], rtol=0, atol=1e-12 * a)
    assert np.abs(position[0] - position[2]).max() > 0.1 * a


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
