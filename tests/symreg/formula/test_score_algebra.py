"""What computer algebra adds to a score, and what a score is without it."""

import functools
import json

import pytest
import sympy

from orbits import laws
from orbits.laws._grammar import FUNCTIONS
from symreg import score
from symreg.formula import bounded, symbolic
from symreg.formula.parsing import parse

pytestmark = pytest.mark.full

G = 39.4784176044


@pytest.fixture
def one_second(monkeypatch):
    """Let computer algebra have one second instead of five."""
    monkeypatch.setattr(bounded, "call", functools.partial(bounded.call, seconds=1.0))


def tower(depth):
    return "(r/(" * depth + "1" + " - 2.5))" * depth


@pytest.mark.full
@pytest.mark.usefixtures("one_second")
def test_a_verdict_needs_no_algebra(sample):
    """A formula that sympy cannot even read gets its verdict; timeout is not a no."""
    text = f"{G}*m1*m2/r**2*(1 + 1e-12*{tower(20)})"
    result = score(text, X=sample.X, y=sample.newton)
    assert (result.verdict, result.symbolic) == ("law", "timeout")
    assert (result.dimensions, result.shape) == ("timeout", "timeout")
    assert (result.complexity, result.offset, result.offset_share) == (None, None, None)
    assert result.constant == pytest.approx(G)
    other = score(f"{G}*m1/r**2*(1 + 1e-12*{tower(20)})", X=sample.X, y=sample.newton)
    assert (other.law, other.symbolic) == (False, "no")
    json.dumps(result.record(), allow_nan=False)


@pytest.mark.full
@pytest.mark.usefixtures("one_second")
@pytest.mark.parametrize(
    "factor",
    [
        "(1 + 1e-12*cos((r+m1+.3)**6)*sin(r)**5)",
        "(1 + 1e-12*sin(tan(-4*r**2-3)**3))",
    ],
)
def test_simplification_without_end_is_a_timeout_and_not_a_no(sample, factor):
    result = score(f"{G}*m1*m2/r**2*{factor}", X=sample.X, y=sample.newton)
    assert (result.verdict, result.dimensions) == ("law", "no")
    assert result.symbolic == "timeout"


@pytest.mark.parametrize(
    ("law", "text"),
    [
        ("yukawa", "41*(1+r/20.0)*m1*m2*exp(-r/20.0)/r**2"),
        ("yukawa", "41*m1*m2*(r+20.0)*exp(-r/20.0)/r**2"),
        ("newton_plus_inverse_cube", "40*m1*m2/r**2+4.0*m1*m2/r**3"),
        ("sum_squared_over_r1_5", "39.3*(m1**2+2*m1*m2+m2**2)/r**1.5"),
    ],
)
def test_sums_of_decimal_numbers_are_the_law_too(law, text):
    found = score(text, law)
    assert (found.verdict, found.symbolic) == ("law", "yes")
    assert score(text.replace("m2", "m2**1.001", 1), law).symbolic == "no"


@pytest.mark.parametrize(
    "text", ["(39.5*m1*m2+0.001*r**2)/r**2", "m1*m2*(39.5/r**2+0.001/(m1*m2))"]
)
def test_an_offset_may_hide_in_a_quotient(text):
    found = score(text)
    assert found.verdict == "law up to an offset"
    assert found.offset == pytest.approx(0.001)


@pytest.mark.parametrize("factor", ["(2+(r-2)/abs(r-2))", "(2+sin(31415.926535897932*log(r)))"])
def test_a_formula_with_the_laws_slopes_that_is_far_off_is_not_the_law(factor):
    assert not score(f"m1*m2/r**2*{factor}").law


def test_a_law_that_vanishes_at_one_has_no_constant_and_no_error():
    found = score("39*(m1-m2)**2/r**2", "k*(m1-m2)**2/r**2")
    assert found.verdict == "law"
    assert found.constant == 0


def test_running_out_of_memory_is_a_timeout_and_not_a_no(sample, monkeypatch):
    monkeypatch.setattr(sympy, "cancel", lambda expression: bytearray(3 * 1024**3))
    monkeypatch.setattr(symbolic, "of_law", lambda law: parse("39.5*m1*m2/r**2 + 1e-9*r"))
    result = score("39.5*m1*m2/r**2", X=sample.X, y=sample.newton)
    assert (result.verdict, result.symbolic) == ("law", "timeout")


def test_an_error_inside_sympy_is_not_a_no(monkeypatch):
    def defect(expression):
        raise AttributeError("a defect of sympy")

    monkeypatch.setattr(sympy, "cancel", defect)
    assert symbolic.is_constant(parse("r + m1")) == "timeout"
    assert symbolic.is_constant(parse("sin(r)**2 + cos(r)**2")) == "yes"


def test_simplification_answers():
    assert symbolic.is_constant(parse("sin(r)**2 + cos(r)**2")) == "yes"
    assert symbolic.is_constant(parse("r + m1")) == "no"


@pytest.mark.parametrize(
    ("text", "shape"),
    [
        ("39.478*m1**0.999*m2**1.001/r**1.998", "C*m1*m2/r**2"),
        ("m1*m2/r**2", "m1*m2/r**2"),
        ("3.1*m1**1.23/r**1.5", "C*m1**(6/5)/r**(3/2)"),
        ("2.5*m1*exp(-1.2*r) + 0.4", "C*m1*exp(C*r) + C"),
    ],
)
def test_shape(text, shape):
    assert sympy.sympify(symbolic.shape(parse(text)) + f"-({shape})") == 0


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_law_may_use_every_function_of_its_own_grammar(name):
    call = f"{name}(r, 2)" if name in ("Min", "Max") else f"{name}(r)"
    law = laws.get(f"k*m1*m2/r**2*(pi + {call})")
    found = symbolic.of_law(law)
    assert {str(each) for each in found.free_symbols} == {"r", "m1", "m2"}


def test_a_formula_is_scored_against_a_law_beyond_its_own_grammar():
    assert score("39.478*m1*m2/r**2", "pi*m1*m2/r**2").symbolic == "yes"
    assert score("39.478*m1*m2/r**2", "k*m1*m2/r**2*tanh(r)").verdict == "another law"
