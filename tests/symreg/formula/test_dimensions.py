import re

import numpy as np
import pytest

from orbits import laws
from symreg import score
from symreg.formula import symbolic
from symreg.formula.dimensions import consistent, dimensions
from symreg.formula.evaluation import evaluate
from symreg.formula.parsing import parse

CONSISTENT = {  # (length, mass), by hand
    "39.4784*m1*m2/r**2": (-2, 2),
    "3.0*r": (1, 0),
    "m1 + 2*m2": (0, 1),
    "sqrt(m1*m2)/r": (-1, 1),
    "m1**0.7*m1**0.3*m2/r**2.25": (-2.25, 2),
    "exp(3.6 + log(m1) + log(m2) - 2*log(r))": (-2, 2),
    "m1*m2*exp(-m1/m2)*sin(3*m2/m1)/r**2": (-2, 2),
    "m1*m2*(0.3 + m1/m2)/r**2": (-2, 2),
    "abs(m1 - m2)*m1/r": (-1, 2),
    "inv(square(r))*m1**2*tan(1 + m1/(m1 + m2))": (-2, 2),
    "(m1/m2)**(m2/m1)*r": (1, 0),
    "2**(m2/m1)*r": (1, 0),
    "7.5": (0, 0),
    "cos(m1/m2) + 1": (0, 0),
}
INCONSISTENT = [
    "r + 1",
    "39.5*m1*m2/r**2 + 4.0",
    "r + m1",
    "m1*m2/r**2 + m1*m2/r**3",
    "exp(r)",
    "log(r)",
    "sin(m1)",
    "m1**r",
    "(m1/m2)**r",
    "r**(m1/m2)",
    "2**r",
    "sqrt(r + m1)",
    "abs(r - 1)",
    "r/(r - 0.1)",
    "m1*m2*exp(-r/20)/r**2",
]


@pytest.mark.parametrize(("text", "expected"), CONSISTENT.items())
def test_the_dimensions_of_a_formula(text, expected):
    found = dimensions(parse(text))
    assert found == pytest.approx(expected, abs=1e-12)
    # A change of units multiplies a consistent formula by the same powers of the units.
    length, mass, at = 1.7, 0.3, np.array([[0.9, 0.4, 1.3]])
    scaled = evaluate(text, ("r", "m1", "m2"), at * [length, mass, mass])
    value = evaluate(text, ("r", "m1", "m2"), at)
    assert scaled == pytest.approx(length ** expected[0] * mass ** expected[1] * value, rel=1e-12)


@pytest.mark.parametrize("text", INCONSISTENT)
def test_an_inconsistent_formula_has_none(text):
    assert dimensions(parse(text)) is None


@pytest.mark.parametrize("name", laws.names())
def test_a_law_is_consistent_with_itself_unless_it_has_two_dimensional_constants(name):
    law = symbolic.of_law(laws.get(name))
    # Every parameter of the catalogue has a unit, and one of them stands in front.
    expected = "not defined" if len(laws.get(name).units) > 1 else "yes"
    assert consistent(law, law) == expected
    assert consistent(parse("r + 1"), law) == ("no" if expected == "yes" else expected)


@pytest.mark.parametrize("name", [n for n in laws.names() if laws.get(n).exponents])
def test_the_dimensions_of_a_law_are_those_of_a_force_over_its_constant(name):
    law = laws.get(name)
    (unit,) = law.units.values()
    length, mass, year = 1.7, 0.3, 2.9
    python = re.sub(r"(?<=[\w)]) (?=\w)", "*", unit.replace("solar mass", "M")).replace("^", "**")
    constant = eval(python, {"AU": length, "M": mass, "year": year})
    found = dimensions(symbolic.of_law(law))
    force = mass * length / year**2
    assert length ** found[0] * mass ** found[1] == pytest.approx(force / constant)


def test_only_the_right_dimensions_are_a_yes():
    newton, harmonic = (symbolic.of_law(laws.get(name)) for name in ("newton", "harmonic"))
    assert consistent(parse("2.0*m1**2/r**2"), newton) == "yes"
    assert consistent(parse("2.0*m1**2/r**2"), harmonic) == "no"
    assert consistent(parse("0.5*m2**2*r"), harmonic) == "yes"
    assert consistent(parse("39.4784*m1**0.9998*m2/r**2.01"), newton) == "no"
    assert consistent(parse("0"), newton) == "no"


@pytest.mark.full
def test_a_row_snaps_fitted_exponents_first(sample):
    fitted = "39.4*m1**0.9998*m2/r**2.0003"
    noisy = sample.noisy(sample.newton, 0.05)
    assert score(fitted, X=sample.X, y=noisy).dimensions == "yes"
    assert score(fitted, X=sample.X, y=sample.newton).dimensions == "no"
    assert score(fitted, "yukawa", X=sample.X, y=noisy).dimensions == "not defined"
    assert score("39.4*m1*m2/r**2 + 4.0", X=sample.X, y=noisy).dimensions == "no"
    assert score("39.4*m1*m2/r", X=sample.X, y=noisy).dimensions == "no"
