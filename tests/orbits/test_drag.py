import math

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from orbits import drag, kepler
from orbits.elements import Elements

pytestmark = pytest.mark.full  # nothing is made with drag yet
G = 39.4784176044


def orbit(a, e, rate, times):
    times, one = np.asarray(times, float)[None], Elements([a], [e], [0.3], [2.0], [0.4], [1.0])
    position, velocity = drag.relative_orbit(one, [rate], times)
    return position[0], velocity[0]


@pytest.mark.parametrize(
    ("a", "e", "rate"), [(1.0, 0.0, 0.02), (3.0, 0.2, 0.05), (5.0, 0.8, 0.02), (12.0, 0.95, 0.1)]
)
def test_orbits_equal_integrated_ones(a, e, rate):
    times = np.linspace(0, 20, 41)
    position, velocity = orbit(a, e, rate, times)
    start = [x[0, 0] for x in kepler.relative_orbit([a], [e], [0.3], [2.0], [1.4], [[0.0]])]

    def motion(_, y):
        pull = G * 1.4 / math.hypot(y[0], y[1]) ** 3
        return [y[2], y[3], -pull * y[0] - rate * y[2], -pull * y[1] - rate * y[3]]

    found = solve_ivp(
        motion, (0, 20), np.concatenate(start), "DOP853", times, rtol=1e-13, atol=1e-14
    ).y.T
    # DOP853's own error over the turns of the innermost orbit, up to 9.6e-10 of the velocity, moves
    # with the processor's rounding.
    np.testing.assert_allclose(position, found[:, :2], rtol=0, atol=3e-9)
    np.testing.assert_allclose(velocity, found[:, 2:], rtol=0, atol=3e-9 * np.abs(velocity).max())


@pytest.mark.parametrize("e", [0.0, 0.2, 0.8, 0.95])
def test_without_drag_it_is_kepler(e):
    times = np.linspace(0, 50, 201)
    position, velocity = orbit(0.8, e, 0.0, times)
    expected = kepler.relative_orbit([0.8], [e], [0.3], [2.0], [1.4], times[None])
    # 6.6e-11 measured at e = 0.95, where a rounding of the anomaly is many of the position.
    np.testing.assert_allclose(position, expected[0][0], rtol=0, atol=2e-10)
    scale = np.abs(expected[1]).max()
    np.testing.assert_allclose(velocity, expected[1][0], rtol=0, atol=1e-9 * scale)


@pytest.mark.parametrize(("e", "rate"), [(0.0, 1e-3), (0.5, 0.1), (0.95, 1e-3), (0.95, 0.1)])
def test_angular_momentum_decays_exponentially_and_energy_only_falls(e, rate):
    times = np.linspace(0, 10, 101)
    position, velocity = orbit(2.0, e, rate, times)
    momentum = position[:, 0] * velocity[:, 1] - position[:, 1] * velocity[:, 0]
    expected = math.sqrt(G * 1.4 * 2 * (1 - e**2)) * np.exp(-rate * times)
    np.testing.assert_allclose(momentum, expected, rtol=1e-12)
    energy = 0.5 * np.sum(velocity**2, axis=1) - G * 1.4 / np.hypot(*position.T)
    assert np.all(np.diff(energy) < 0)


def test_a_circular_orbit_spirals_in_slowly():
    position, _ = orbit(1.0, 0.0, 1e-3, [0, 10, 20])
    # L^2 = G m a along a circle, and L falls as exp(-rate t).
    np.testing.assert_allclose(np.hypot(*position.T), np.exp([0, -0.02, -0.04]), rtol=1e-3)


def test_velocity_is_the_derivative_of_the_position():
    times, step = np.linspace(0.1, 6, 30), 1e-4
    _, velocity = orbit(1.5, 0.6, 0.1, times)
    shifted = [orbit(1.5, 0.6, 0.1, times + k * step)[0] for k in (-2, -1, 1, 2)]
    slope = (shifted[0] - 8 * shifted[1] + 8 * shifted[2] - shifted[3]) / (12 * step)
    np.testing.assert_allclose(velocity, slope, rtol=0, atol=1e-8 * np.abs(velocity).max())


def test_a_trajectory_depends_on_neither_its_batch_nor_its_other_times():
    rng = np.random.default_rng(2)
    n = 11
    limits = ((0.5, 5), (0, 0.95), (0, 6), (0, 6), (0, 1), (0.1, 4), (0, 0.05))
    *orbits, rate = (rng.uniform(*r, n) for r in limits)
    times = np.sort(rng.uniform(0, 20, (n, 9)), axis=1)
    together = drag.relative_orbit(Elements(*orbits), rate, times)
    for i in range(n):
        one_orbit = Elements(*(x[i : i + 1] for x in orbits))
        alone = drag.relative_orbit(one_orbit, rate[i : i + 1], times[i : i + 1, ::2])
        for one, many in zip(alone, together, strict=True):
            assert one[0].tobytes() == many[i, ::2].tobytes()


@pytest.mark.parametrize(
    ("rate", "times", "message"),
    [
        (-0.1, [0, 1], "drag_rate must be between 0 and 2 over the last time 1, got -0.1"),
        (0.2, [0, 11], "over the last time 11, got 0.2 for trajectory 0"),
        (math.nan, [0, 1], "drag_rate must be"),
        (0.1, [1, 0], "not decrease"),
        (0.1, [-1, 0], "start at 0 or later"),
        (0.1, [0, math.inf], "times must be finite"),
    ],
)
def test_bad_input_is_refused_by_value(rate, times, message):
    with pytest.raises(ValueError, match=message):
        orbit(1.0, 0.1, rate, times)


def test_an_unbound_start_is_refused():
    with pytest.raises(ValueError, match=r"eccentricity .*1\.0"):
        orbit(1.0, 1.0, 0.1, [0, 1])
