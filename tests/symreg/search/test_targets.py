import numpy as np
import pytest
import sympy

from symreg.formula.evaluation import evaluate
from symreg.formula.parsing import parse
from symreg.search.targets import LogTarget
from symreg.search.units import exponential

NAMES = ("r", "m1", "m2")


def test_scaling_and_its_inverse(sample):
    """A formula for ln y in scaled inputs comes back as y in physical units, whatever it is."""
    target = LogTarget.of(sample.X, sample.newton, NAMES)
    assert np.log(target.inputs).mean(axis=0) == pytest.approx([0, 0, 0], abs=1e-12)
    assert target.values.mean() == pytest.approx(0, abs=1e-12)
    for text in ("log(m1*m2) - 2*log(r)", "0.5*(log(2*m1) + sin(r))", "m1*log(r + m2)", "r*m1/m2"):
        expected = np.exp(evaluate(text, NAMES, target.inputs))
        got = evaluate(target.physical(text), NAMES, target.X)
        expected *= np.median(target.y / expected)
        np.testing.assert_allclose(got, expected, rtol=1e-10)


def test_a_power_law_comes_out_as_one(sample):
    target = LogTarget.of(sample.X, sample.newton, NAMES)
    text = "0.1 + 0.9999999*(log((-3.2*m1)*(-3.1*m2)) - log((1.7*r))*2)"
    constant, rest = target.physical(text).split("*", 1)
    assert rest == "m1*m2/r**2"
    assert float(constant) == pytest.approx(39.4784176044, rel=1e-6)


def test_the_constant_is_the_median_and_not_the_biased_mean_of_logarithms(sample):
    y = sample.noisy(sample.newton, 0.2)
    target = LogTarget.of(sample.X, y, NAMES)
    constant = float(target.physical("log(m1*m2/r**2)").split("*")[0])
    shape = sample.newton / 39.4784176044
    keep = y > 0
    assert constant == pytest.approx(np.median(y[keep] / shape[keep]), rel=1e-9)
    least_squares = np.exp(np.mean(np.log(y[keep] / shape[keep])))
    assert abs(constant / 39.4784176044 - 1) < 0.5 * abs(least_squares / 39.4784176044 - 1)


def test_exponential_does_not_blow_up():
    text = "square(square(square(square(r + m1 + m2))))"
    logarithm = parse(text)
    size = sum(1 for _ in sympy.preorder_traversal(exponential(logarithm)))
    assert size < 20


def test_dropped_share_and_too_few_points(sample):
    y = sample.newton
    y[::4] = -1
    assert LogTarget.of(sample.X, y, NAMES).dropped == 0.25
    y[19:] = np.nan
    with pytest.raises(ValueError, match="need 20"):
        LogTarget.of(sample.X, y, NAMES)


def test_only_rounding_errors_are_no_variation(sample):
    for relative, constant in ((1e-15, True), (1e-9, False)):
        y = 3.0 * (1 + relative * np.sin(np.arange(len(sample.X))))
        found = LogTarget.of(sample.X, y, NAMES).constant
        assert (found is not None) == constant
        assert found is None or float(found) == pytest.approx(3.0, rel=1e-12)


def test_a_formula_that_is_nowhere_positive_is_refused(sample):
    target = LogTarget.of(sample.X, sample.newton, NAMES)
    with pytest.raises(ValueError, match="not positive anywhere"):
        target.physical("log(r - 1000)*0.5 + log(log(r - 1000))")
    with pytest.raises(ValueError, match="not a real number"):
        target.physical("log(-r)*0.5 + log(log(0.5 - 1 - r))")


def test_exponential_takes_the_logarithm_of_an_exponential_apart():
    m1, r = sympy.symbols("m1 r", positive=True)
    for inner in (sympy.exp(-0.38 * r), m1**2 * sympy.exp(-0.38 * r), 3 * sympy.exp(r)):
        logarithm = 2 * sympy.log(inner) + 0.5
        found = exponential(logarithm)
        at = {m1: 0.7, r: 1.3}
        expected = float(sympy.exp(logarithm).subs(at))
        assert float(found.subs(at)) == pytest.approx(expected, rel=1e-12)


def test_a_formula_whose_powers_leave_the_grammar_is_refused() -> None:
    """Planets of a thousandth of a percent of a star: ``m1*log(r)`` is ``r**(27000*m1)``."""
    rng = np.random.default_rng(0)
    X = np.exp(rng.normal(size=(50, 3))) * [1, 1e-5, 1]
    target = LogTarget.of(X, X[:, 0] ** -2, NAMES)
    assert target.physical("-2*log(r)") == "1.0/r**2"
    with pytest.raises(ValueError, match="is too large"):
        target.physical("0.3*m1*log(r)")
