import math

import numpy as np
import pytest

from orbits import laws

NAMES = laws.names()


def points(n=50):
    rng = np.random.default_rng(0)
    return {
        "r": rng.uniform(0.2, 5, n),
        "m1": rng.uniform(0.05, 2, n),
        "m2": rng.uniform(0.1, 4, n),
    }


@pytest.mark.parametrize("name", NAMES)
def test_expression_evaluates_to_the_magnitude(name):
    law, at = laws.get(name), points()
    allowed = {"__builtins__": {}, **{f: getattr(math, f) for f in ("sqrt", "exp", "log")}}
    found = law.magnitude(**at)
    for i, value in enumerate(found):
        here = {k: float(v[i]) for k, v in at.items()}
        assert value == pytest.approx(eval(law.expression, allowed, {**here, **law.parameters}))
    assert np.all(found > 0)


def test_newton_is_newton():
    law = laws.get("newton")
    assert law.magnitude(1, 1, 1) == pytest.approx(39.4784176044, rel=1e-15)
    assert law.magnitude(2, 3, 5) == pytest.approx(39.4784176044 * 15 / 4, rel=1e-15)
    assert law.exponents == {"r": -2, "m1": 1, "m2": 1}


@pytest.mark.parametrize("name", NAMES)
def test_exponents_are_the_logarithmic_derivatives(name):
    law, at = laws.get(name), points()
    step, varies = 1e-5, False
    for variable in laws.VARIABLES:
        above = law.magnitude(**{**at, variable: at[variable] * math.exp(step)})
        below = law.magnitude(**{**at, variable: at[variable] * math.exp(-step)})
        slope = np.log(above / below) / (2 * step)
        if law.exponents is not None:
            np.testing.assert_allclose(slope, law.exponents[variable], rtol=0, atol=1e-8)
        varies = varies or np.ptp(slope) > 1e-6
    assert varies == (law.exponents is None)


@pytest.mark.parametrize("name", NAMES)
def test_every_law_is_documented_and_broadcasts(name):
    law = laws.get(name)
    assert law.name == name
    assert law.reference
    assert set(law.units) == set(law.parameters)
    assert law.magnitude(np.ones((3, 1)), np.ones(4), 1.0).shape == (3, 4)
    assert law.magnitude([1.0, 2.0], 1, 1).dtype == np.float64


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("variable", laws.VARIABLES)
@pytest.mark.parametrize("bad", [0.0, -1.0, math.nan])
def test_positive_inputs_are_enforced(name, variable, bad):
    at = {"r": 1.0, "m1": 1.0, "m2": 1.0, variable: np.array([1.0, bad])}
    with pytest.raises(ValueError, match=f"{variable} must be positive"):
        laws.get(name).magnitude(**at)


def test_unknown_name_lists_the_choices():
    with pytest.raises(ValueError, match="unknown law 'kepler'") as error:
        laws.get("kepler")
    assert all(name in str(error.value) for name in NAMES)


@pytest.fixture
def extra_folder(monkeypatch, tmp_path):
    monkeypatch.setattr(laws, "__path__", [*laws.__path__, str(tmp_path)])
    laws._catalogue.cache_clear()
    yield tmp_path
    monkeypatch.undo()
    laws._catalogue.cache_clear()


def test_a_new_file_is_found(extra_folder):
    (extra_folder / "hooke_for_this_test.py").write_text(
        "from orbits.laws import Law\n"
        "LAW = Law('hooke_for_this_test', 'k*r*m1*m2', 'Hooke 1678', {'k': 2.0}, {'k': '1'})\n"
    )
    assert "hooke_for_this_test" in laws.names()
    assert laws.get("hooke_for_this_test").magnitude(3, 1, 1) == 6


def test_a_file_whose_law_has_another_name_is_refused(extra_folder):
    (extra_folder / "misnamed_for_this_test.py").write_text(
        "from orbits.laws import Law\nLAW = Law('other', 'r', 'nobody')\n"
    )
    with pytest.raises(ValueError, match=r"misnamed_for_this_test\.py"):
        laws.names()


def test_names_are_restored():
    assert laws.names() == NAMES
