import numpy as np
import pytest

from orbits import laws
from symreg import points, score
from symreg.law_fit import law_fit


@pytest.mark.parametrize(("world", "follows"), [("newton", True), ("power_1_5", False)])
def test_forces_follow_their_own_law(sample, world, follows):
    r, m1, m2 = sample.X.T
    y = sample.noisy(3 * m1 * m2 / r ** (2 if world == "newton" else 1.5), 0.05)
    assert law_fit(sample.X, y).follows is follows
    found = law_fit(sample.X, y, world)
    assert found.follows is True
    assert found.r2_log > 0.99
    assert found.exponents == pytest.approx(found.law_exponents, abs=0.02)


def test_a_factor_is_told_and_changes_no_answer(sample):
    found = law_fit(sample.X, 7 * sample.newton)
    assert (found.follows, found.factor) == (True, pytest.approx(7))
    turned = law_fit(sample.X[:, ::-1], 7 * sample.newton, names=("m2", "m1", "r"))
    assert turned.exponents == pytest.approx(found.exponents)


def test_right_exponents_do_not_make_up_for_noise(sample):
    noise = np.exp(np.random.default_rng(0).normal(0, 3, len(sample.X)))
    design = np.column_stack([np.ones(len(noise)), np.log(sample.X)])
    logs = np.log(noise)
    noise = np.exp(logs - design @ np.linalg.lstsq(design, logs, rcond=None)[0])
    found = law_fit(sample.X, sample.newton * noise)
    assert found.exponents == pytest.approx({"r": -2, "m1": 1, "m2": 1}, abs=1e-6)
    assert found.r2_log < 0.9
    assert found.follows is False


@pytest.mark.parametrize("law", ["yukawa", "mond", "softened", "sum_squared_over_r1_5"])
def test_the_best_power_law_does_not_follow_a_law_that_is_none(sample, law):
    truth = laws.get(law).magnitude(**dict(zip(("r", "m1", "m2"), sample.X.T, strict=True)))
    design = np.column_stack([np.ones(len(truth)), np.log(sample.X)])
    power = np.exp(design @ np.linalg.lstsq(design, np.log(truth), rcond=None)[0])
    assert law_fit(sample.X, 3 * truth, law).follows is True
    assert law_fit(sample.X, power, law).follows is False
    smooth = 1 + 0.01 * np.sin(2 * np.log(sample.X[:, 0]))
    assert law_fit(sample.X, truth * smooth, law).follows is not False, "one percent off"


def test_points_that_cannot_tell_say_so(sample):
    X = sample.X.copy()
    X[:, 2] = 1.0
    assert law_fit(X, sample.newton).follows is None
    assert "cannot tell whether they follow newton" in repr(score("r", X=X, y=sample.newton))
    half = np.where(np.arange(len(X)) % 3 == 0, sample.newton, -1.0)
    assert law_fit(sample.X, half).follows is False  # two in three points repel


def test_a_formula_needs_no_points():
    found = score("39.5*m1*m2/r**2")
    assert (found.law, found.symbolic, found.laws) == (True, "yes", ("newton",))
    assert (found.r2_log, found.predictions, found.n_points) == (None, None, 1000)
    assert score("39.5*m1*m2/r**2 + 1e-4").verdict == "law up to an offset"
    assert score("-m1*m2/r**2").verdict == "another law"
    assert not score("m1*m2*exp(-r/20)/r**2").law
    with pytest.raises(ValueError, match="y needs X"):
        score("r", y=[1.0])


def test_reference_points_follow_the_order_of_names():
    assert score("39.5*m1*m2/r**2", names=("m2", "r", "m1")).law
    assert np.array_equal(points.reference(("m2", "m1", "r"))[:, 2].min(), points.BOX["r"][0])


def test_a_score_prints_its_answers_and_escapes_them(sample):
    bad = score(
        "39.5*m1*m2/r**2", X=sample.X, y=np.random.default_rng(0).permutation(sample.newton)
    )
    assert bad.verdict == "no law found"
    lines = repr(bad).splitlines()
    assert len(lines) <= 10
    assert lines[1].startswith("is the law  yes, newton")
    assert lines[2].startswith("predictions do not follow newton")
    assert lines[3].startswith("fidelity    the formula does not describe the predictions")
    assert "<th>is the law</th><td>yes, newton" in bad._repr_html_()
