import re

import numpy as np
import pytest

from orbits import laws
from symreg import score
from symreg.formula import symbolic
from symreg.formula.local_exponents import alike


def points(low, high, n=60):
    rng = np.random.default_rng(0)
    r = np.exp(rng.uniform(np.log(low), np.log(high), n))
    return np.column_stack([r, rng.uniform(0.05, 2, n), rng.uniform(0.1, 4, n)])


def at_distances(r):
    r = np.asarray(r, float)
    return np.column_stack([r, np.full_like(r, 0.5), np.full_like(r, 1.5)])


def test_yukawa_is_like_newton_near_and_not_far():
    assert alike("newton", points(0.5, 4)) == ("yukawa",)
    assert alike("yukawa", points(0.5, 4)) == ("newton",)
    assert alike("newton", points(0.3, 32)) == ()
    assert alike("yukawa", points(0.3, 32)) == ()


def test_the_tolerance_at_the_distance_where_yukawa_leaves_newton():
    # The exponent of Yukawa's force is -2 - x^2 / (1 + x), x = r / 20: off by 0.05 at r = 5.
    assert "yukawa" in alike("newton", at_distances([4.99] * 10))
    assert "yukawa" not in alike("newton", at_distances([5.01] * 10))


@pytest.mark.parametrize(("outside", "expected"), [(5, True), (6, False)])
def test_one_point_in_twenty_may_differ(outside, expected):
    X = at_distances([1.0] * (100 - outside) + [10.0] * outside)
    assert ("yukawa" in alike("newton", X)) is expected


def test_the_masses_count_too():
    # Deep in MOND's regime its force falls as 1/r, but not with the masses' product.
    X = at_distances([500.0] * 10)
    assert alike("logarithmic", X) == ()


def test_columns_may_come_in_any_order():
    X = points(0.5, 4)
    assert alike("newton", X[:, [2, 0, 1]], names=("m2", "r", "m1")) == ("yukawa",)


@pytest.mark.full
@pytest.mark.parametrize(
    ("name", "limits"),
    [
        *(("newton", (0.5, 4)), ("yukawa", (0.5, 4))),
        *((name, (0.3, 32)) for name in laws.names()),
    ],
)
def test_every_law_is_itself_and_no_other_but_those_alike(name, limits):
    """Each two laws are told apart one way round, and every law knows itself."""
    X, names = points(*limits), laws.names()
    place = names.index(name)
    for other in (names[place:] + names[:place])[: len(names) // 2 + 1]:
        text = str(symbolic.of_law(laws.get(other)))
        y = laws.get(other).magnitude(*X.T)
        result = score(text, name, X=X, y=y)
        same = other == name or other in alike(name, X)
        assert result.verdict == ("law" if same else "another law"), other
        assert result.symbolic == ("yes" if other == name else "no")


@pytest.mark.parametrize(
    ("law", "X", "message"),
    [
        ("newtn", np.ones((5, 3)), "did you mean newton?"),
        ("newton", np.ones((5, 2)), "X must have shape [n, 3]"),
        ("newton", np.ones((0, 3)), "X must have shape [n, 3] with n > 0"),
        ("yukawa", -np.ones((5, 3)), "must be positive"),
    ],
)
def test_bad_input_is_refused(law, X, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        alike(law, X)
