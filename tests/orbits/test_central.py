import math

import mpmath
import numpy as np
import pytest
import sympy
from scipy.integrate import solve_ivp

from orbits import central, kepler, laws
from orbits.central_kernel import evaluate, evaluate_plain
from orbits.elements import Elements
from tests.tiers import corners

G = 39.4784176044
BOUND = tuple(name for name in laws.names() if name != "inverse_cube")


def orbit(name, a, e, omega, phase, times, m1=0.3, m2=1.1):
    one = Elements([a], [e], [omega], [phase], [m1], [m2])
    position, velocity = central.relative_orbit(laws.get(name), one, np.asarray(times, float)[None])
    return position[0], velocity[0]


def speed_at_periapsis(law, a, e, m1, m2):
    """Return it by the conservation of energy and angular momentum between the turning points."""
    reduced = m1 * m2 / (m1 + m2)
    if e == 0:
        return math.sqrt(a * law.magnitude(a, m1, m2) / reduced)
    near, far = a * (1 - e), a * (1 + e)
    gap = law.potential_energy(far, m1, m2) - law.potential_energy(near, m1, m2)
    return math.sqrt(2 * gap / reduced / (1 - (near / far) ** 2))


def integrated(name, a, e, omega, times, m1, m2):
    """Integrate from the periapsis at time 0."""
    law = laws.get(name)
    along = speed_at_periapsis(law, a, e, m1, m2)
    cosine, sine = math.cos(omega), math.sin(omega)
    start = [a * (1 - e) * cosine, a * (1 - e) * sine, -along * sine, along * cosine]

    def motion(_, y):
        r = math.hypot(y[0], y[1])
        pull = float(law.magnitude(r, m1, m2)) * (m1 + m2) / (m1 * m2) / r
        return [y[2], y[3], -pull * y[0], -pull * y[1]]

    found = solve_ivp(
        motion, (0, times[-1]), start, method="DOP853", t_eval=times, rtol=1e-13, atol=1e-14
    )
    return found.y.T


@pytest.mark.full
@pytest.mark.parametrize("name", corners(BOUND, "newton", "yukawa", "mond", "power_1_5"))
def test_orbits_equal_integrated_ones(name):
    for e, years in ((0.0, 5), (0.2, 5), (0.8, 3)):
        check_against_integration(name, 3.0, e, years, most_turns=6)


@pytest.mark.full
@pytest.mark.parametrize("name", BOUND)
@pytest.mark.parametrize(("a", "e"), [(3.0, 0.8), (12.0, 0.0), (12.0, 0.5)])
def test_orbits_equal_integrated_ones_for_twenty_years(name, a, e):
    check_against_integration(name, a, e, 20, most_turns=30)


def check_against_integration(name, a, e, years, most_turns):
    """Compare so many radial turns at most: an integrator drifts with each."""
    (period,) = central.radial_period(laws.get(name), a, e, 0.3, 1.1)
    times = np.linspace(0, min(years, most_turns * period), 41)
    position, velocity = orbit(name, a, e, 0.7, 0.0, times)
    found = integrated(name, a, e, 0.7, times, 0.3, 1.1)
    np.testing.assert_allclose(position, found[:, :2], rtol=0, atol=1e-9)
    np.testing.assert_allclose(velocity, found[:, 2:], rtol=0, atol=1e-9 * np.abs(velocity).max())


def exact_period_and_advance(law, a, e, m1, m2, n=600):
    """Return both by quadrature over r = a (1 - e cos u), in 40 digits, from the potential."""
    with mpmath.workdps(40):
        symbols = {s: sympy.Symbol(s, positive=True) for s in (*laws.VARIABLES, *law.parameters)}
        known = {**law.parameters, "m1": m1, "m2": m2}
        text = sympy.sympify(law.potential, locals=symbols).subs(
            {symbols[key]: sympy.Float(value, 40) for key, value in known.items()}
        )
        a, e, m1, m2 = (mpmath.mpf(x) for x in (a, e, m1, m2))
        energy_of = sympy.lambdify(symbols["r"], text * 2 * (m1 + m2) / (m1 * m2), "mpmath")
        near, far = a * (1 - e), a * (1 + e)
        squared = (energy_of(far) - energy_of(near)) / (near**-2 - far**-2)
        energy = energy_of(near) + squared / near**2
        time = angle = mpmath.mpf(0)
        for j in range(n):
            u = (j + mpmath.mpf(0.5)) * mpmath.pi / n
            r = a * (1 - e * mpmath.cos(u))
            rate = a * e * mpmath.sin(u) / mpmath.sqrt(energy - energy_of(r) - squared / r**2)
            time, angle = time + rate, angle + rate * mpmath.sqrt(squared) / r**2
        return float(2 * mpmath.pi * time / n), float(angle / n)


@pytest.mark.full
@pytest.mark.parametrize("name", corners(BOUND, "newton", "softened", "power_2_5"))
def test_period_and_advance_equal_forty_digit_quadrature(name):
    for a, e in ((1.0, 0.2), (15.0, 0.7), (0.8, 0.97)):
        law = laws.get(name)
        period, advance = exact_period_and_advance(law, a, e, 0.3, 1.1)
        np.testing.assert_allclose(central.radial_period(law, a, e, 0.3, 1.1), period, rtol=1e-13)
        position, _ = orbit(name, a, e, 0.0, 0.0, [period])
        angle = 2 * math.pi * advance
        expected = a * (1 - e) * np.array([math.cos(angle), math.sin(angle)])
        # Near the periapsis a relative error of the period moves the planet the farthest.
        speed = speed_at_periapsis(law, a, e, 0.3, 1.1)
        np.testing.assert_allclose(position[0], expected, rtol=0, atol=1e-13 * (period * speed + a))


@pytest.mark.parametrize("e", [0.0, 1e-9, 1e-3, 0.2, 0.6, 0.9, 0.99])
def test_newton_is_kepler(e):
    rng = np.random.default_rng(5)
    n = 20
    a, omega, phase, m1, m2 = (
        rng.uniform(low, high, n) for low, high in ((1, 30), (0, 6), (-7, 7), (1e-6, 2), (0.1, 4))
    )
    times = rng.uniform(0, 20, (n, 60))
    ecc = np.full(n, e)
    position, velocity = central.relative_orbit(
        laws.get("newton"), Elements(a, ecc, omega, phase, m1, m2), times
    )
    kepler_position, kepler_velocity = kepler.relative_orbit(a, ecc, omega, phase, m1 + m2, times)
    np.testing.assert_allclose(position, kepler_position, rtol=0, atol=1e-10)
    scale = np.abs(kepler_velocity).max()
    np.testing.assert_allclose(velocity, kepler_velocity, rtol=0, atol=1e-10 * scale)
    period = central.radial_period(laws.get("newton"), a, ecc, m1, m2)
    np.testing.assert_allclose(period, kepler.period(a, m1 + m2), rtol=1e-12)


@pytest.mark.parametrize("name", BOUND)
def test_energy_and_angular_momentum_are_constant(name):
    for e in (0.0, 1e-8, 1e-4, 0.2, 0.8, 0.9):
        law, a, m1, m2 = laws.get(name), 2.5, 0.3, 1.1
        times = np.linspace(0, 50, 1001)
        position, velocity = orbit(name, a, e, 0.8, 1.1, times)
        reduced = m1 * m2 / (m1 + m2)
        kinetic = 0.5 * reduced * np.sum(velocity**2, axis=1)
        potential = law.potential_energy(np.hypot(*position.T), m1, m2)
        # They cancel near the periapsis: relative to the larger of the two.
        scale = max(np.abs(potential).max(), kinetic.max())
        along = speed_at_periapsis(law, a, e, m1, m2) if e > 1e-3 or e == 0 else None
        energy, momentum = kinetic + potential, np.cross(position, velocity)
        np.testing.assert_allclose(energy, energy[0], rtol=0, atol=1e-12 * scale)
        np.testing.assert_allclose(momentum, momentum[0], rtol=1e-12)
        if along is not None:
            np.testing.assert_allclose(momentum, a * (1 - e) * along, rtol=1e-12)


@pytest.mark.parametrize("name", BOUND)
def test_turning_points_and_radial_period(name):
    a, e, omega, law = 1.4, 0.45, 0.6, laws.get(name)
    (period,) = central.radial_period(law, a, e, 0.3, 1.1)
    position, velocity = orbit(
        name, a, e, omega, 0.0, [0, period / 2, period, -period, 40.5 * period]
    )
    distance = np.hypot(*position.T)
    expected = a * np.array([1 - e, 1 + e, 1 - e, 1 - e, 1 + e])
    np.testing.assert_allclose(distance, expected, rtol=1e-12)
    np.testing.assert_allclose(np.sum(position * velocity, axis=1), 0, atol=1e-10)
    np.testing.assert_allclose(np.arctan2(*position[0, ::-1]), omega, rtol=1e-14)
    assert np.all(np.cross(position, velocity) > 0)


def random_orbits(n, seed=0, largest=0.97):
    rng = np.random.default_rng(seed)
    limits = ((0.5, 5), (0, largest), (0, 6), (-9, 9), (0.1, 2), (0.1, 5))
    return Elements(*(rng.uniform(*r, n) for r in limits)), rng.uniform(-20, 20, (n, 9))


@pytest.mark.parametrize("name", BOUND)
def test_a_trajectory_does_not_depend_on_its_batch(name):
    orbits, times = random_orbits(23)
    law = laws.get(name)
    together = central.relative_orbit(law, orbits, times)
    for i in range(len(times)):
        alone = central.relative_orbit(
            law, Elements(*(x[i : i + 1] for x in orbits)), times[i : i + 1]
        )
        for one, many in zip(alone, together, strict=True):
            assert one[0].tobytes() == many[i].tobytes()


@pytest.mark.parametrize("name", BOUND)
def test_compiled_points_equal_their_plain_twin(name):
    (a, e, omega, phase, m1, m2), times = random_orbits(60, seed=1, largest=0.95)
    for rows, series in central._expand(laws.get(name), a, e, m1, m2):
        inputs = (times[rows], phase[rows], omega[rows], *vars(series).values())
        for fast, plain in zip(evaluate(*inputs), evaluate_plain(*inputs), strict=True):
            np.testing.assert_allclose(fast, plain, rtol=0, atol=3e-11 * np.abs(plain).max())


@pytest.mark.parametrize("e", [0.0, 1e-12, 0.3, 0.9])
def test_inverse_cube_binds_nothing(e):
    with pytest.raises(ValueError, match="'inverse_cube' does not bind trajectory 0") as error:
        orbit("inverse_cube", 2.0, e, 0.0, 0.0, [0.0])
    assert f"eccentricity {e:g}" in str(error.value)
    assert str(error.value).endswith("; take another law")


def test_an_unbound_orbit_is_named_among_bound_ones():
    # Yukawa's circular orbits are unstable beyond (1 + sqrt 5) / 2 lengths, 32.36 AU.
    law, a = laws.get("yukawa"), np.array([1.0, 32.3, 32.4, 5.0])
    assert np.all(central.radial_period(law, a[[0, 1, 3]], 0, 0.3, 1.1) > 0)
    with pytest.raises(ValueError, match=r"'yukawa' does not bind trajectory 2: .*32\.4"):
        central.radial_period(law, a, 0, 0.3, 1.1)
    orbits = Elements(a, 0 * a, 0 * a, 0 * a, 0.3 + 0 * a, 1.1 + 0 * a)
    position, _ = central.relative_orbit(law, orbits, np.ones((4, 2)), refuse=False)
    np.testing.assert_array_equal(np.isnan(position).all(axis=(1, 2)), [False, False, True, False])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"eccentricity": [1.0]}, r"eccentricity must be in \[0, 1\), got 1\.0"),
        ({"eccentricity": [math.nan]}, "eccentricity must be"),
        ({"semi_major_axis": [0.0]}, "semi_major_axis must be positive"),
        ({"m2": [-1.0]}, r"m2 must be positive and finite, got -1\.0"),
        ({"m1": [math.inf]}, "m1 must be"),
        ({"mean_anomaly": [math.inf]}, "mean_anomaly must be finite"),
        ({"times": [[math.nan]]}, "times must be finite"),
        ({"times": [0.0]}, r"times must have shape \[1, T\], got \[1\]"),
    ],
)
def test_bad_input_is_refused_by_value(change, message):
    good = {
        "semi_major_axis": [1.0],
        "eccentricity": [0.1],
        "periapsis": [0.0],
        "mean_anomaly": [0.0],
        "m1": [0.1],
        "m2": [1.0],
        "times": [[0.0]],
    }
    given = {**good, **change}
    times = given.pop("times")
    with pytest.raises(ValueError, match=message):
        central.relative_orbit(laws.get("newton"), Elements(**given), times)
