import math

import pytest

from symreg.front import Equation, Front, pareto


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


def test_default_rule_is_best():
    assert TABLE.best().expression == "c"


def test_best_admits_exactly_one_and_a_half_times_the_smallest_loss():
    assert front((1, 9.0, "a"), (2, 1.5, "b"), (9, 1.0, "c")).best().expression == "b"
    assert front((1, 9.0, "a"), (2, 1.51, "b"), (9, 1.0, "c")).best().expression == "c"


def test_zero_loss_scores_infinity():
    zero = front((1, 2.0, "a"), (3, 0.0, "b"))
    assert zero.scores() == (0.0, math.inf)
    assert {zero.best(rule).expression for rule in ("best", "score", "accuracy")} == {"b"}


def test_a_single_equation_is_the_best():
    assert front((1, 0.0, "a")).best().expression == "a"


def test_unknown_rule_lists_the_choices():
    with pytest.raises(ValueError, match="unknown rule 'worst'; choose from best, score, accuracy"):
        TABLE.best("worst")


def test_a_front_must_be_in_order_and_not_empty():
    with pytest.raises(ValueError, match="order of complexity"):
        front((3, 1.0, "a"), (3, 0.5, "b"))
    with pytest.raises(ValueError, match="no equation"):
        front()


def test_pareto_keeps_only_improvements():
    rows = [(5, 1.0), (3, 2.0), (3, 1.5), (4, 1.5), (7, 0.5), (8, math.nan), (9, math.inf)]
    kept = pareto([Equation(c, loss, "") for c, loss in rows])
    assert [(row.complexity, row.loss) for row in kept] == [(3, 1.5), (5, 1.0), (7, 0.5)]
