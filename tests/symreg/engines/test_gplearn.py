import json

import numpy as np
import pytest

from symreg import engines, fit, score
from symreg.formula.evaluation import evaluate

pytest.importorskip("gplearn")
engine = engines.get("gplearn")
NAMES = ("r", "m1", "m2")
SMALL = {"population_size": 300, "generations": 8}


@pytest.mark.full
def test_it_finds_newton_although_it_cannot_fit_a_constant(make):
    points = make(0, n=200)
    y = points.noisy(points.newton, 0.02)
    front = fit(points.X, y, engine="gplearn", seed=1, arguments=SMALL)
    result = score(front.best().expression, X=points.X, y=y)
    assert (result.verdict, result.symbolic) == ("law", "yes")
    assert result.constant_relative_error < 0.01
    assert front.settings["population_size"] == 300


@pytest.mark.full
def test_the_formulas_are_what_gplearn_computed(make):
    """gplearn's own log is that of |x|, which would let ``log(a*r - b*m1)`` in here."""
    points = make(2, n=100)
    r, m1, _ = points.X.T
    y = np.abs(r - m1)
    functions = ["sub", "mul", "div", "log", "sqrt", "inv", "neg", "abs", "sin"]
    arguments = {**SMALL, "function_set": functions, "parsimony_coefficient": 1e-4}
    front = engine.configured(**arguments).fit(points.X, y, NAMES, 0)
    assert front.equations[-1].complexity > 3
    for row in front.equations:
        values = np.log(evaluate(row.expression, NAMES, points.X))
        # The constant of the front is a median; with that of the search the loss is no smaller.
        assert np.var(values - np.log(y)) <= row.loss * (1 + 1e-9) + 1e-20


def test_one_seed_is_one_front(make):
    points = make(1, n=60)
    y = points.noisy(points.newton, 0.1)
    small = engine.configured(population_size=60, generations=3)
    one, again, other = (small.fit(points.X, y, NAMES, seed).equations for seed in (4, 4, 5))
    assert one == again
    assert one != other


def test_lists_of_json_serve_as_tuples(make):
    points = make(1, n=60)
    text = '{"population_size": 60, "generations": 2, "init_depth": [1, 3], "const_range": [-2, 2]}'
    arguments = json.loads(text)
    front = fit(points.X, points.newton, engine="gplearn", arguments=arguments)
    assert arguments.items() <= front.settings.items()


def test_what_gplearn_refuses_is_one_line(make):
    points = make(1, n=60)
    for arguments in ({"metric": "speed"}, {"init_depth": [4, 2]}, {"p_crossover": 3.0}):
        with pytest.raises(RuntimeError, match=r"^gplearn failed: "):
            fit(points.X, points.newton, engine="gplearn", arguments=arguments)
