import ast
import inspect

import mpmath
import numpy as np
import pytest

from orbits import arithmetic, protocols  # noqa: F401, protocols imports all that is shared


def worst(found, exact, values):
    """Largest absolute difference from a 30-digit function."""
    with mpmath.workdps(30):
        return max(
            abs(mpmath.mpf(float(y)) - exact(mpmath.mpf(float(x))))
            for x, y in zip(values, found, strict=True)
        )


RNG = np.random.default_rng(0)
QUADRANT = np.r_[0.0, -np.pi / 2, np.pi / 2, RNG.uniform(-np.pi / 2, np.pi / 2, 400)]
ANGLES = np.r_[0.0, np.pi, -np.pi, 2 * np.pi, RNG.uniform(-7, 7, 400)]


def test_sine_and_cosine_of_a_quadrant():
    sine, cosine = arithmetic.sin_cos_quadrant(QUADRANT)
    assert worst(sine, mpmath.sin, QUADRANT) < 3e-16
    assert worst(cosine, mpmath.cos, QUADRANT) < 4e-16


def test_a_small_sine_is_relatively_exact():
    small = 10.0 ** RNG.uniform(-300, -1, 200)
    sine, _ = arithmetic.sin_cos_quadrant(small)
    np.testing.assert_allclose(sine, np.sin(small), rtol=3e-16)


def test_cosine_and_sine_of_any_angle():
    cosine, sine = arithmetic.cos_sin(ANGLES)
    assert worst(cosine, mpmath.cos, ANGLES) < 2e-15
    assert worst(sine, mpmath.sin, ANGLES) < 2e-15


def test_exponential():
    x = np.r_[0.0, 1.0, -1.0, RNG.uniform(-5, 5, 300), RNG.uniform(-700, 700, 300)]
    found = arithmetic.exp(x)
    with mpmath.workdps(30):
        for value, y in zip(x, found, strict=True):
            assert abs(mpmath.mpf(float(y)) / mpmath.exp(mpmath.mpf(float(value))) - 1) < 3e-16
    assert found[0] == 1


def test_cube_root_is_good_enough_to_start_from():
    x = 10.0 ** RNG.uniform(-60, 60, 2000)
    # The error of the method itself, the same on every machine.
    np.testing.assert_allclose(arithmetic.cbrt_estimate(x), np.cbrt(x), rtol=2.2e-5)


def test_clipped_moves_values_into_the_interval():
    x = np.array([-np.inf, -1.0, 0.0, 0.3, 1.0, 2.0, np.inf])
    np.testing.assert_array_equal(arithmetic.clipped(x, 0.0, 1.0), [0, 0, 0, 0.3, 1, 1, 1])


@pytest.mark.parametrize("function", arithmetic.SHARED, ids=lambda f: f.__name__)
def test_shared_functions_use_no_math_library(function):
    """np.sqrt, np.floor and np.abs are exact by IEEE 754; powers and numpy's exp are not."""
    tree = ast.parse(inspect.getsource(function))
    used = {
        node.attr
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)
        if node.value.id in ("np", "math")
    }
    assert used <= {"sqrt", "floor", "abs"}
    for node in ast.walk(tree):
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow):
            assert isinstance(node.left, ast.Constant), "a power is the math library's"


def test_shared_functions_are_found():
    names = {function.__name__ for function in arithmetic.SHARED}
    assert names >= {"exp", "solve", "philox", "quantile", "bin_number", "exoplanet"}
