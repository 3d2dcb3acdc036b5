import dataclasses
import math

import numpy as np
import pytest

from symreg.search.front import RULES, Equation, Front


def front(*rows):
    equations = tuple(Equation(c, loss, name) for c, loss, name in rows)
    return Front(equations, engine="e", version="1", settings={}, seed=0, seconds=0.0)


TABLE = front((1, 100.0, "a"), (3, 1.0, "b"), (9, 0.0125, "c"), (13, 0.010, "d"))


def test_scores_by_hand():
    expected = [0.0, math.log(100) / 2, math.log(80) / 6, math.log(1.25) / 4]
    assert TABLE.scores() == pytest.approx(expected, rel=1e-14)


@pytest.mark.parametrize(("rule", "chosen"), [("score", "b"), ("best", "c"), ("accuracy", "d")])
def test_rules_by_hand(rule, chosen):
    assert TABLE.best(rule).expression == chosen


def test_default_rule_is_knee():
    assert TABLE.best().expression == "d"


def test_best_admits_exactly_one_and_a_half_times_the_smallest_loss():
    for loss, chosen in ((1.5, "b"), (1.51, "c")):
        assert front((1, 9.0, "a"), (2, loss, "b"), (9, 1.0, "c")).best("best").expression == chosen


def test_zero_loss_scores_infinity():
    zero = front((1, 2.0, "a"), (3, 0.0, "b"))
    assert zero.scores() == (0.0, math.inf)
    assert {zero.best(rule).expression for rule in RULES} == {"b"}


def test_a_single_equation_is_the_best():
    assert front((1, 0.0, "a")).best().expression == "a"


def test_unknown_rule_lists_the_choices():
    with pytest.raises(ValueError, match="unknown rule 'worst'; choose from knee, best, score"):
        TABLE.best("worst")


def test_a_front_must_be_in_order_and_not_empty():
    with pytest.raises(ValueError, match="order of complexity"):
        front((3, 1.0, "a"), (3, 0.5, "b"))
    with pytest.raises(ValueError, match="no equation"):
        front()


def losses(*pairs):
    return front(*[(complexity, loss, str(complexity)) for complexity, loss in pairs])


def test_the_knee_takes_no_near_miss_and_is_not_lured_by_long_formulas():
    table = losses((1, 2.0), (10, 0.078), (11, 0.0255), (13, 0.0192), (18, 0.0175), (24, 0.0171))
    assert table.best("best").complexity == 11
    assert table.best("knee").complexity == 13


def test_the_knee_does_not_tell_rounding_errors_apart():
    table = losses((1, 1.0), (11, 3e-14), (19, 1e-14), (24, 0.0))
    assert table.best("knee").complexity == 11


MASSES = front((3, 2.0, "m1*m2"), (7, 1e-9, "39.4784*m1*m2/r**2"))
X = np.array([[2.0, 0.5, 3.0], [0.1, 1.0, 1.0]])


def test_as_in_pysr_a_front_predicts_and_gives_sympy_and_latex():
    assert MASSES.predict(X) == pytest.approx(39.4784 * X[:, 1] * X[:, 2] / X[:, 0] ** 2)
    assert MASSES.predict(X, 0) == pytest.approx([1.5, 1.0])
    assert str(MASSES.sympy(0)) == "m1*m2"
    assert MASSES.latex() == r"\frac{39.5 m_{1} m_{2}}{r^{2}}"
    assert MASSES.latex(precision=5) == r"\frac{39.478 m_{1} m_{2}}{r^{2}}"
    turned = dataclasses.replace(MASSES, names=("m1", "r", "m2"))
    assert turned.predict(X[:, [1, 0, 2]]) == pytest.approx(MASSES.predict(X))
    with pytest.raises(IndexError, match="no row 2; the front has rows 0 to 1"):
        MASSES.predict(X, 2)
    with pytest.raises(ValueError, match=r"X must have shape \[n, 3\]"):
        MASSES.predict(X[:, :2])


def test_a_front_prints_the_best_equation_among_its_neighbours():
    lines = repr(MASSES).splitlines()
    assert lines[-1].startswith(">  7")
    assert lines[-1].endswith("39.4784*m1*m2/r**2")
    long = front(*((n, 2.0**-n, "r**2" * 100) for n in range(1, 30)))
    lines = repr(long).splitlines()
    assert len(lines) <= 10
    assert sum(line.startswith(">") for line in lines) == 1
    assert lines[-1] == "and 22 more in .equations"
    assert max(map(len, lines)) < 350


def test_html_of_a_front_is_escaped_and_whole():
    html = front(*((n, 1.0 / n, "<script>" if n == 1 else "r") for n in range(1, 20)))._repr_html_()
    assert "<script>" not in html
    assert "&lt;script&gt;" in html
    assert html.count("<tr>") == 20
