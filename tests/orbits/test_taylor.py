"""Motion by Taylor series against closed forms, conservation laws and another integrator."""

import math

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from orbits import kepler, taylor

G = 39.4784176044
TRIPLE = (
    np.array([[1.0, 0.4, 0.5]]),
    np.array([[[0.0, 0], [1, 0], [0, 5]]]),
    np.array([[[0.0, -2], [0, 6], [-3, 0]]]),
)
UNLIKE = np.array([[[1, 0.5, 1], [0.5, 1, 1], [1, 1, 1]]])


def binary(a, e, rate, times, g_rate=0.0):
    """Return planet - star of masses 0.4 and 1, place and velocity [T, 2]."""
    start = [x[:, 0] for x in kepler.relative_orbit([a], [e], [0.3], [2.0], [1.4], [[0.0]])]
    mass = np.array([[0.4, 1.0]])
    place, velocity = (np.stack([x / 1.4, -0.4 * x / 1.4], axis=1) for x in start)
    moved = taylor.trajectories(
        mass, place, velocity, np.asarray(times, float)[None], drag_rate=rate, g_rate=g_rate
    )
    return [x[0, :, 0] - x[0, :, 1] for x in moved]


def integrated(mass, place, velocity, times, coupling, drag_rate, g_rate):
    """Return places [T, B, 2] by DOP853, of the equation as it stands in the docstring."""
    bodies = len(mass)

    def motion(t, y):
        x, v = y.reshape(2, bodies, 2)
        apart = x[None] - x[:, None]
        cube = (np.linalg.norm(apart, axis=-1) + np.eye(bodies)) ** 3
        pull = np.einsum("ij,j,ijk->ik", coupling, mass, apart / cube[..., None])
        return np.concatenate([v.ravel(), (G * (1 + g_rate * t) * pull - drag_rate * v).ravel()])

    start = np.concatenate([place.ravel(), velocity.ravel()])
    found = solve_ivp(motion, (0, times[-1]), start, "DOP853", times, rtol=1e-13, atol=1e-14)
    return found.y.T[:, : 2 * bodies].reshape(-1, bodies, 2)


@pytest.mark.full
@pytest.mark.parametrize(
    ("coupling", "drag_rate", "g_rate"),
    [(np.ones((1, 3, 3)), 0, 0), (UNLIKE, 0, 0), (UNLIKE, 0.1, 0), (UNLIKE, 0.1, -0.04)],
)
def test_bodies_equal_integrated_ones(coupling, drag_rate, g_rate):
    times = np.linspace(0, 6, 25)
    found, _ = taylor.trajectories(*TRIPLE, times[None], coupling, drag_rate, g_rate)
    expected = integrated(*(x[0] for x in TRIPLE), times, coupling[0], drag_rate, g_rate)
    # 8e-10 over eight years measured, which is DOP853's own and moves with the processor.
    np.testing.assert_allclose(found[0], expected, rtol=0, atol=1e-8)


@pytest.mark.full
@pytest.mark.parametrize("e", [0.0, 0.2, 0.8, 0.95])
def test_two_bodies_alone_are_kepler(e):
    times = np.linspace(0, 50, 201)
    position, velocity = binary(0.8, e, 0.0, times)
    expected = kepler.relative_orbit([0.8], [e], [0.3], [2.0], [1.4], times[None])
    # 6.6e-11 measured at e = 0.95, where a rounding of the anomaly is many of the position.
    np.testing.assert_allclose(position, expected[0][0], rtol=0, atol=4e-10)
    scale = np.abs(expected[1]).max()
    np.testing.assert_allclose(velocity, expected[1][0], rtol=0, atol=2e-9 * scale)


@pytest.mark.full
@pytest.mark.parametrize(("e", "rate"), [(0.0, 1e-3), (0.5, 0.1), (0.95, 1e-3), (0.95, 0.1)])
def test_angular_momentum_decays_exponentially_and_energy_only_falls(e, rate):
    times = np.linspace(0, 10, 101)
    position, velocity = binary(2.0, e, rate, times)
    momentum = position[:, 0] * velocity[:, 1] - position[:, 1] * velocity[:, 0]
    expected = math.sqrt(G * 1.4 * 2 * (1 - e**2)) * np.exp(-rate * times)
    np.testing.assert_allclose(momentum, expected, rtol=1e-11)
    energy = 0.5 * np.sum(velocity**2, axis=1) - G * 1.4 / np.hypot(*position.T)
    assert np.all(np.diff(energy) < 0)


@pytest.mark.full
@pytest.mark.parametrize("closest", [1e-4, 1e-6, 1e-8])
def test_two_bodies_pass_each_other_as_closely_as_they_do(closest):
    """One turn later they are where they began, at the far end: no passage is too close."""
    mass, axis = np.array([[0.3, 1.2]]), 1.0
    total, far = mass.sum(), 2 * axis - closest
    speed = np.sqrt(G * total * closest / (axis * far))
    place = np.array([[[far, 0.0], [0.0, 0.0]]])
    velocity = np.array([[[0.0, speed], [0.0, 0.0]]])
    period = axis**1.5 / np.sqrt(total)
    drift = velocity[0, 0] * mass[0, 0] / total  # of the centre
    places, velocities = taylor.trajectories(
        mass, place, velocity, [[0.25 * period, 0.75 * period, period]]
    )
    apart = places[0, :, 0] - places[0, :, 1]
    np.testing.assert_allclose(apart[2], [far, 0], atol=1e-6)
    np.testing.assert_allclose(np.hypot(*apart[0]), np.hypot(*apart[1]), atol=1e-6)
    moved = mass[0] / total @ places[0, 2] - mass[0] / total @ place[0]
    np.testing.assert_allclose(moved, drift * period, atol=1e-8)
    assert np.isfinite(velocities).all()


def test_a_circle_widens_as_g_falls_and_keeps_its_angular_momentum():
    position, velocity = binary(1.0, 0.0, 0.0, [0, 5, 10], g_rate=-1e-3)
    momentum = position[:, 0] * velocity[:, 1] - position[:, 1] * velocity[:, 0]
    np.testing.assert_allclose(momentum, momentum[0], rtol=1e-12)
    # L^2 = G m a along a circle.
    np.testing.assert_allclose(np.hypot(*position.T) * (1 - 1e-3 * np.r_[0, 5, 10]), 1, rtol=1e-3)


@pytest.mark.full
def test_momentum_of_bodies_that_pull_unlike_is_kept():
    times = np.linspace(0, 5, 11)
    _, velocity = taylor.trajectories(*TRIPLE, times[None], UNLIKE)
    momentum = np.einsum("b,tbc->tc", TRIPLE[0][0], velocity[0])
    np.testing.assert_allclose(momentum, np.broadcast_to(momentum[0], momentum.shape), atol=1e-10)


@pytest.mark.full
def test_velocity_is_the_derivative_of_the_position():
    times, step = np.linspace(0.1, 6, 30), 1e-4
    _, velocity = binary(1.5, 0.6, 0.1, times, -0.02)
    shifted = [binary(1.5, 0.6, 0.1, times + k * step, -0.02)[0] for k in (-2, -1, 1, 2)]
    slope = (shifted[0] - 8 * shifted[1] + 8 * shifted[2] - shifted[3]) / (12 * step)
    np.testing.assert_allclose(velocity, slope, rtol=0, atol=1e-8 * np.abs(velocity).max())


@pytest.mark.full
def test_a_system_depends_on_neither_its_batch_nor_its_other_times():
    rng = np.random.default_rng(2)
    mass, place = rng.uniform(0.1, 2, (7, 3)), rng.normal(0, 3, (7, 3, 2))
    velocity, times = rng.normal(0, 3, (7, 3, 2)), np.sort(rng.uniform(0, 2, (7, 9)), axis=1)
    together = taylor.trajectories(mass, place, velocity, times, None, 0.1, 0.05)
    for i in range(7):
        rows = slice(i, i + 1)
        alone = taylor.trajectories(
            mass[rows], place[rows], velocity[rows], times[rows, ::2], None, 0.1, 0.05
        )
        for one, many in zip(alone, together, strict=True):
            assert one[0].tobytes() == many[i, ::2].tobytes()


@pytest.mark.parametrize(
    ("rates", "times", "message"),
    [
        ((-0.1, 0), [0, 1], "drag_rate must be between 0 and 2 over the last time 1, got -0.1"),
        ((0.2, 0), [0, 11], "over the last time 11, got 0.2"),
        ((math.nan, 0), [0, 1], "drag_rate must be"),
        ((0, -0.1), [0, 10], "g_rate must leave G positive until the last time 10, got -0.1"),
        ((0, math.nan), [0, 1], "g_rate must"),
        ((0.1, 0), [1, 0], "not decrease"),
        ((0.1, 0), [-1, 0], "start at 0 or later"),
        ((0.1, 0), [0, math.inf], "times must be finite"),
    ],
)
def test_bad_input_is_refused_by_value(rates, times, message):
    with pytest.raises(ValueError, match=message):
        taylor.trajectories(*TRIPLE, np.array([times], float), None, *rates)


@pytest.mark.parametrize("shape", [(1, 2, 2), (1, 3, 1), (3, 3)])
def test_a_coupling_of_another_shape_is_refused(shape):
    mass, place = np.ones((1, 3)), np.zeros((1, 3, 2))
    with pytest.raises(ValueError, match="coupling must be symmetric"):
        taylor.trajectories(mass, place, place, [[0.0]], coupling=np.ones(shape))
    lower = np.tril(np.ones((1, 3, 3)))
    with pytest.raises(ValueError, match="coupling must be symmetric"):
        taylor.trajectories(mass, place, place, [[0.0]], coupling=lower)
    with pytest.raises(ValueError, match="velocity must be"):
        taylor.trajectories(mass, place, place[:, :2], [[0.0]])
