"""Members of the family F = k (m1 m2)^a / r^n: their names, what they state, how they move."""

import re

import numpy as np
import pytest
import sympy

from orbits import central, laws, protocols
from orbits.__main__ import main
from symreg import score
from symreg.formula.local_exponents import alike

G = 39.4784176044
MEMBERS = {
    "power_a0.5_n2": (0.5, 2.0),
    "power_a1_n1.75": (1.0, 1.75),
    "power_a0_n1": (0.0, 1.0),
    "power_a1.25_n-0.5": (1.25, -0.5),
    "power_a2_n0": (2.0, 0.0),
}


def points(n=40):
    rng = np.random.default_rng(0)
    return rng.uniform(0.3, 4, n), rng.uniform(0.05, 2, n), rng.uniform(0.1, 4, n)


@pytest.mark.parametrize(("name", "exponents"), MEMBERS.items())
def test_a_name_is_a_law(name, exponents):
    law, (a, n) = laws.get(name), exponents
    r, m1, m2 = points()
    assert law.name == name
    np.testing.assert_allclose(law.magnitude(r, m1, m2), G * (m1 * m2) ** a / r**n, rtol=1e-14)
    assert law.exponents == {"r": -n, "m1": a, "m2": a}
    assert law.shows_masses == (a != 0.5)
    assert law.light_planets_move_alike == (a == 1)
    symbols = {x: sympy.Symbol(x, positive=True) for x in (*laws.VARIABLES, "k")}
    force, energy = (sympy.sympify(x, locals=symbols) for x in (law.expression, law.potential))
    assert sympy.simplify(energy.diff(symbols["r"]) - force) == 0


@pytest.mark.parametrize("name", MEMBERS)
def test_the_unit_of_the_constant_makes_a_force(name):
    law, (r, m1, m2) = laws.get(name), points()
    mass, length, year = 1.7, 0.3, 2.9
    unit = law.units["k"].replace("solar mass", "M").replace("^", "**").replace(") (", ") * (")
    factor = eval(unit, {"AU": length, "M": mass, "year": year, "__builtins__": {}})
    force = factor * law.magnitude(r * length, m1 * mass, m2 * mass)
    np.testing.assert_allclose(force, mass * length / year**2 * law.magnitude(r, m1, m2), rtol=1e-9)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("power_a0.50_n2", "is written power_a0.5_n2"),
        ("power_a01_n2", "is written power_a1_n2"),
        ("power_a1_n-0", "is written power_a1_n0"),
        ("power_a1_n2.0", "is written power_a1_n2"),
        ("power_a1", "is written power_aA_nN, with decimal numbers A and N, as in power_a0.5_n2"),
        ("power_a1e0_n2", "is written power_aA_nN"),
        ("power_a1_n2 ", "is written power_aA_nN"),
        ("power_a1_n٢", "is written power_aA_nN"),
        ("power_a1_n2+open('x')", "is written power_aA_nN"),
        ("power_a1_n3", "n must be between -4 and 3, without 3, from which on nothing is bound"),
        ("power_a1_n-5", "n must be between -4 and 3"),
        ("power_a4.5_n2", "a must be between 0 and 4"),
        ("power_a-1_n2", "a must be between 0 and 4"),
        ("power_a0.1234567_n2", "at most 6 decimals"),
        ("power_n2", "unknown law 'power_n2'"),
        ("family", "unknown law 'family'"),
        ("_grammar", "unknown law '_grammar'"),
    ],
)
def test_a_name_that_is_no_law_says_how_it_is_written(name, message, refusal):
    with pytest.raises(ValueError, match=re.escape(message)) as error:
        laws.get(name)
    assert len(str(error.value).splitlines()) == 1
    assert message in refusal(main, ["generate", "--law", name, "--out", "nowhere"])


def test_a_law_at_another_value_of_its_parameter_is_that_law_there():
    changed, softened = laws.get("softened_length_0.3"), laws.get("softened")
    parameters = {**softened.parameters, "length": 0.3}
    own = laws.Law("own", softened.expression, "test", parameters, softened.units)
    assert changed.parameters == parameters
    np.testing.assert_array_equal(changed.magnitude(*points()), own.magnitude(*points()))
    assert changed.magnitude(0.3, 1, 1) > 2 * softened.magnitude(0.3, 1, 1)
    assert laws.get("power_1_5").name == "power_1_5"


@pytest.mark.parametrize(
    ("formula", "power"),
    [("k*m1*m2/r**1.7", -1.7), ("39.5*m1*m2/r**2", -2), ("k*m1*m2*r**0.1", 0.1)],
)
def test_a_formula_that_is_a_power_law_has_its_exponents(formula, power):
    """In floats 1.7 + 1 - 2.7 is not 0, and no power would be left."""
    assert laws.get(formula).exponents == {"r": power, "m1": 1, "m2": 1}


def test_a_formula_that_divides_by_zero_is_refused():
    for formula in ("k*m1*m2/(r-r)", "k*m1*m2/r/0"):
        with pytest.raises(ValueError, match="divides by zero"):
            laws.get(formula)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("softened_lenght_2", "softened has no parameter 'lenght'; choose from G, length"),
        ("mond_a0_0", "a0 must be positive"),
        ("mond_a0_1.50", "is written mond_a0_1.5"),
        ("plummer_length_2", "unknown law 'plummer_length_2'"),
    ],
)
def test_a_changed_law_that_cannot_be_is_refused(name, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        laws.get(name)


def test_the_family_stands_beside_the_laws_and_is_none(capsys):
    assert not laws.broken()
    assert [family.name for family in laws.families()] == [
        "LAW_PARAMETER_NUMBER",
        "power_aA_nN",
        "FORMULA",
    ]
    assert not any(name.startswith("power_a") for name in laws.names())
    with pytest.raises(ValueError, match=r"choose from .*, power_aA_nN"):
        laws.get("nothing_like_it")
    main(["ls"])
    assert "laws     power_aA_nN" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("name", "same"),
    [
        ("power_a1_n2", "newton"),
        ("power_a1_n1.5", "power_1_5"),
        ("power_a2_n2", "product_squared_over_r2"),
        ("power_a1_n-1", "harmonic"),
    ],
)
def test_a_member_moves_as_the_same_law_from_a_file(name, same):
    r, m1, m2 = points()
    law, file = laws.get(name), laws.get(same)
    np.testing.assert_allclose(law.magnitude(r, m1, m2), file.magnitude(r, m1, m2), rtol=1e-13)
    assert same in alike(name, np.column_stack([r, m1, m2]))
    periods = [central.radial_period(each, r, 0.4, m1, m2) for each in (law, file)]
    np.testing.assert_allclose(*periods, rtol=1e-12)


def test_a_member_is_a_world():
    protocol = protocols.get("identifiable", {"law": "power_a0.75_n1.8"})
    batch = protocol.batch(0, "test", np.arange(20), "force")
    state = batch["state"][:, 1::2]
    force = np.linalg.norm(batch["force"][:, 1::2], axis=-1)
    r, masses = np.hypot(state[..., 0], state[..., 1]), state[..., 4] * state[..., 5]
    np.testing.assert_allclose(force, G * masses**0.75 / r**1.8, rtol=1e-12)
    with pytest.raises(ValueError, match=r"'power_a0\.75_n1\.8' differ by powers of ten"):
        protocols.get("fixed", {"law": "power_a0.75_n1.8"})


def test_a_verdict_finds_a_member_and_names_it():
    X = np.column_stack(points(300))
    y = laws.get("power_a0.5_n2").magnitude(*X.T)
    found = score("39.5*(m1*m2)**0.5/r**2", "power_a0.5_n2", X=X, y=y)
    assert (found.verdict, found.symbolic, found.laws) == ("law", "yes", ("power_a0.5_n2",))
    assert found.dimensions == "yes"
    for other, law in (("m1*m2", "newton"), ("m1", "m1_over_r2")):
        y = laws.get(law).magnitude(*X.T)
        found = score(f"39.5*{other}/r**2", "power_a0.5_n2", X=X, y=y)
        assert found.verdict == "another law"
        assert law in found.laws
        assert "power_a0.5_n2" not in found.laws


def test_a_formula_that_is_no_power_is_told_without_simplifying():
    text = "k*m1*m2*(1+tanh(r)+sin(r)*cos(3*r)+exp(-r)*log(1+r))/r**2"
    assert laws.get(text).exponents is None
