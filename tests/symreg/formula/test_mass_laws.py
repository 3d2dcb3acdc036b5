"""Verdicts on laws that differ in the masses: told apart on the masses of the worlds, or named."""

import numpy as np
import pytest

from orbits import laws, protocols
from symreg import fit, score
from symreg.formula.local_exponents import alike
from symreg.points import NAMES
from tests.tiers import corners

pytestmark = pytest.mark.full

LAWS = ("newton", "m1_over_r2", "product_squared_over_r2")
"""One power of the distance, three of the masses."""
TRUE = {
    "sum_squared_over_r1_5": "10*(m1 + m2)**2/r**1.5",
    "squares_times_r2": "20*(m1**2 + m2**2)*r**2",
}


@pytest.fixture(scope="module")
def X():
    """Return distances and masses of the worlds, from sequences of the protocol."""
    state = protocols.get("identifiable").batch(0, "test", np.arange(60), "force")["state"][:, 1::2]
    state = state.reshape(-1, 6)
    return np.column_stack([np.hypot(state[:, 0], state[:, 1]), state[:, 4:]])


def force(law, X, noise):
    rng = np.random.default_rng(1)
    return laws.get(law).magnitude(*X.T) * (1 + noise * rng.standard_normal(len(X)))


@pytest.mark.parametrize("noise", corners([0.0, 0.01], 0.01))
@pytest.mark.parametrize("world", corners(LAWS, "newton", "m1_over_r2"))
def test_a_fitted_formula_is_the_law_of_its_world_and_of_no_other(X, world, noise):
    y = force(world, X, noise)
    groups = np.repeat(np.arange(60), 24)
    formula = fit(X, y, NAMES, engine="powerlaw", seed=0).best().expression
    for law in LAWS:
        found = score(formula, law, X=X, y=y, groups=groups)
        assert found.verdict == ("law" if law == world else "another law")
        assert found.laws == (("newton", "yukawa") if world == "newton" else (world,))
    assert score(formula, world, X=X, y=y, groups=groups).symbolic == "yes"


@pytest.mark.parametrize("world", TRUE)
def test_a_law_of_sums_is_no_power_law(X, world):
    y = force(world, X, 0.01)
    formula = fit(X, y, NAMES, engine="powerlaw", seed=0).best().expression
    assert score(formula, world, X=X, y=y).verdict in ("another law", "no law found")
    found = score(TRUE[world], world, X=X, y=y)
    assert (found.verdict, found.symbolic, found.laws) == ("law", "yes", (world,))
    assert found.constant == pytest.approx(40)


def test_who_knows_the_ratio_of_the_masses_alone_has_another_law(X):
    """What an ideal observer of orbits under m1 / r^2 answers, whose masses do not show."""
    y = force("m1_over_r2", X, 0.0)
    formula = "39.5*sqrt(0.5*m1/m2)/r**2"
    answers = 39.5 * np.sqrt(0.5 * X[:, 1] / X[:, 2]) / X[:, 0] ** 2
    assert score(formula, "m1_over_r2", X=X, y=answers).verdict == "another law"
    assert score(formula, "m1_over_r2", X=X, y=answers).laws == ()
    assert score(formula, "m1_over_r2", X=X, y=y).verdict == "no law found"


def test_equal_masses_do_not_tell_a_sum_from_a_product(X):
    equal = X[:, [0, 1, 1]]
    assert alike("power_1_5", equal) == ("sum_squared_over_r1_5",)
    assert alike("sum_squared_over_r1_5", equal) == ("power_1_5",)
    assert alike("power_1_5", X) == alike("sum_squared_over_r1_5", X) == ()
    y = force("power_1_5", equal, 0.0)
    found = score("39.5*m1*m2/r**1.5", "power_1_5", X=equal, y=y)
    assert found.laws == ("power_1_5", "sum_squared_over_r1_5")
