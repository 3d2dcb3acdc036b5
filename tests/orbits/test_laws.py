import dataclasses
import itertools
import math
import re
import sys

import numpy as np
import pytest
import sympy

from orbits import laws
from orbits.__main__ import main

NAMES = laws.names()
OTHER_MASSES = (
    *("m1_over_r2", "m1_over_r2_6", "m1_1_3_over_r2_6"),
    *("product_squared_over_r1_5", "product_squared_over_r2", "product_squared_times_r2"),
    *("sum_squared_over_r1_5", "squares_times_r2"),
)
"""With Newton's law at another power of the distance, the nine of NewtonBench's gravity."""


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


def test_the_catalogue():
    assert not laws.broken()
    assert set(NAMES) >= {
        *("newton", "yukawa", "newton_plus_inverse_cube", "softened", "harmonic", "logarithmic"),
        *("power_1_5", "power_2_5", "inverse_cube", "mond", *OTHER_MASSES),
    }


@pytest.mark.parametrize(
    ("name", "r", "expected"),
    [
        ("yukawa", 20.0, 2 / math.e / 400),
        ("newton_plus_inverse_cube", 0.5, 1 / 0.25 + 0.1 / 0.125),
        ("softened", 1.2, 1.2 / 1.3**3),
        ("harmonic", 3.0, 3.0),
        ("logarithmic", 4.0, 0.25),
        ("power_1_5", 4.0, 1 / 8),
        ("power_2_5", 4.0, 1 / 32),
        ("inverse_cube", 2.0, 1 / 8),
        # mu(g / a0) g = g_N at the transition: x^2 / (1 + x) = 1 is the golden ratio's equation.
        ("mond", 2 * math.sqrt(8), (1 + math.sqrt(5)) / 2 / 32),
    ],
)
def test_magnitudes_at_known_points(name, r, expected):
    found = laws.get(name).magnitude(r, 3, 5)
    assert found == pytest.approx(39.4784176044 * 15 * expected, rel=1e-14)


@pytest.mark.parametrize(
    ("name", "r", "expected"),
    [
        ("m1_over_r2", 2.0, 3 / 4),
        ("m1_over_r2_6", 32.0, 3 / 2**13),
        ("m1_1_3_over_r2_6", 32.0, 3 * 3**0.3 / 2**13),
        ("product_squared_over_r1_5", 4.0, 225 / 8),
        ("product_squared_over_r2", 2.0, 225 / 4),
        ("product_squared_times_r2", 2.0, 225 * 4),
        ("sum_squared_over_r1_5", 4.0, 64 / 4 / 8),
        ("squares_times_r2", 2.0, 34 / 2 * 4),
    ],
)
def test_other_dependences_on_the_masses_at_known_points(name, r, expected):
    law = laws.get(name)
    assert law.magnitude(r, 3, 5) == pytest.approx(39.4784176044 * expected, rel=1e-14)
    assert law.magnitude(1, 1, 1) == pytest.approx(39.4784176044, rel=1e-15)


@pytest.mark.parametrize("name", NAMES)
def test_the_force_is_the_derivative_of_the_potential(name):
    law = laws.get(name)
    symbols = {s: sympy.Symbol(s, positive=True) for s in (*laws.VARIABLES, *law.parameters)}
    force, potential = (sympy.sympify(t, locals=symbols) for t in (law.expression, law.potential))
    assert sympy.simplify(potential.diff(symbols["r"]) - force) == 0
    at, step = points(), 1e-3
    values = [
        law.potential_energy(at["r"] * (1 + k * step), at["m1"], at["m2"]) for k in (-2, -1, 1, 2)
    ]
    slope = (values[0] - 8 * values[1] + 8 * values[2] - values[3]) / (12 * step * at["r"])
    np.testing.assert_allclose(slope, law.magnitude(**at), rtol=1e-8)


@pytest.mark.parametrize("name", NAMES)
def test_slope_is_the_derivative_of_the_magnitude(name):
    law, at, step = laws.get(name), points(), 1e-3
    values = [law.magnitude(at["r"] * (1 + k * step), at["m1"], at["m2"]) for k in (-2, -1, 1, 2)]
    slope = (values[0] - 8 * values[1] + 8 * values[2] - values[3]) / (12 * step)
    np.testing.assert_allclose(law.slope(**at) * at["r"], slope, rtol=1e-8)


@pytest.mark.parametrize("name", NAMES)
def test_the_force_is_mutual_and_gives_the_relative_acceleration(name):
    law, at = laws.get(name), points()
    force = law.magnitude(**at)
    if law.exponents is not None:  # it may tell the planet from the star, and pulls both alike
        exchanged = law.magnitude(at["r"], at["m2"], at["m1"])
        alike = law.exponents["m1"] == law.exponents["m2"]
        assert np.allclose(force, exchanged, rtol=1e-15) == alike
    # Each body accelerates by force over its own mass, towards the other.
    expected = force / at["m1"] + force / at["m2"]
    np.testing.assert_allclose(law.relative_acceleration(**at), expected, rtol=1e-14)


@pytest.mark.parametrize("name", NAMES)
def test_units_make_a_force(name):
    """Change the units of mass, length and time: a force must change as mass length / time^2."""
    law, at = laws.get(name), points()
    mass, length, time = 1.7, 0.3, 2.9
    units = {"M": mass, "AU": length, "year": time, "__builtins__": {}}
    other = dataclasses.replace(
        law,
        parameters={
            key: value * eval(_python(law.units[key]), units)
            for key, value in law.parameters.items()
        },
    )
    found = other.magnitude(at["r"] * length, at["m1"] * mass, at["m2"] * mass)
    np.testing.assert_allclose(found, mass * length / time**2 * law.magnitude(**at), rtol=1e-12)


def _python(unit):
    unit = unit.replace("solar mass", "M").replace("^", "**")
    return re.sub(r"(?<=[\w)]) (?=\w)", " * ", unit)


def test_a_law_without_potential_says_so():
    law = laws.Law("bare", "m1*m2/r", "nobody")
    with pytest.raises(ValueError, match="'bare' has no closed-form potential"):
        law.potential_energy(1, 1, 1)


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
    for quantity in (law.magnitude, law.slope, law.potential_energy, law.relative_acceleration):
        assert quantity(np.ones((3, 1)), np.ones(4), 1.0).shape == (3, 4)
    assert law.magnitude([1.0, 2.0], 1, 1).dtype == np.float64


@pytest.mark.parametrize("name", NAMES)
def test_positive_inputs_are_enforced(name):
    for variable, bad in itertools.product(laws.VARIABLES, (0.0, -1.0, math.nan)):
        at = {"r": 1.0, "m1": 1.0, "m2": 1.0, variable: np.array([1.0, bad])}
        with pytest.raises(ValueError, match=f"{variable} must be positive"):
            laws.get(name).magnitude(**at)


@pytest.mark.parametrize(
    ("typo", "hint"),
    [
        ("kepler", "; choose from"),
        ("newtom", "; did you mean newton"),
        ("Yukawa", "; did you mean yukawa? choose from"),
        ("power_2.5", "; did you mean power_2_5 or power_1_5? choose from"),
        (None, "; choose from"),
        (["newton"], "newton? choose from"),
    ],
)
def test_unknown_name_names_near_ones_and_lists_the_choices(typo, hint):
    with pytest.raises(ValueError, match=re.escape(f"unknown law {typo!r}")) as error:
        laws.get(typo)
    message = str(error.value)
    assert hint in message
    assert all(name in message for name in NAMES)
    assert len(message) < 120 + len(", ".join(NAMES))


@pytest.fixture
def extra_folder(monkeypatch, tmp_path):
    monkeypatch.setattr(laws, "__path__", [*laws.__path__, str(tmp_path)])
    laws._catalogue.cache_clear()
    before = set(sys.modules)
    yield tmp_path
    for added in set(sys.modules) - before:
        if added.startswith(f"{laws.__name__}."):
            del sys.modules[added]
    monkeypatch.undo()
    laws._catalogue.cache_clear()


def test_a_new_file_is_found(extra_folder):
    (extra_folder / "hooke_for_this_test.py").write_text(
        "from orbits.laws import Law\n"
        "LAW = Law('hooke_for_this_test', 'k*r*m1*m2', 'Hooke 1678', {'k': 2.0}, {'k': '1'})\n"
    )
    assert "hooke_for_this_test" in laws.names()
    assert laws.get("hooke_for_this_test").magnitude(3, 1, 1) == 6


GOOD = {
    "name": "extra_for_this_test",
    "expression": "k*m1*m2/r**4",
    "potential": "-k*m1*m2/(3*r**3)",
    "parameters": {"k": 2.0},
    "units": {"k": "AU^5 / (solar mass year^2)"},
    "exponents": {"r": -4.0, "m1": 1.0, "m2": 1.0},
    "reference": "nobody",
}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"name": "other"}, "names its law 'other'; a file is called like its law"),
        ({"name": None}, "missing 1 required positional argument: 'name'"),
        ({"reference": None}, "reference must be given as text, got ''"),
        ({"expression": None}, "expression must be given as text, got ''"),
        ({"expresion": "r"}, "got an unexpected keyword argument 'expresion'"),
        (
            {"expression": "k*m1*m2/r**"},
            "expression 'k*m1*m2/r**' is not a formula: invalid syntax",
        ),
        (
            {"expression": "k*m1*m2*exp(-r/length)"},
            "expression 'k*m1*m2*exp(-r/length)' uses length, which is not r, m1, m2 or one of "
            "parameters; give its value in parameters and its unit in units",
        ),
        ({"potential": "-g*m1*m2/r"}, "potential '-g*m1*m2/r' uses g, which is not"),
        ({"expression": "k*m1*m2/r.foo"}, "holds 'r.foo', which is no arithmetic"),
        ({"expression": "k*m1*m2/r(2)"}, "holds 'r(2)', which is no arithmetic"),
        ({"expression": "k*m1*m2/r**2+0*9**9**k"}, "a power must have no power in its exponent"),
        ({"expression": "k*m1*m2/r**2+0*9**99999999"}, "that of a number be a number up to 100"),
        ({"expression": "k*m1*m2/r+0*((9**99)**99)**99"}, "be a number up to 100"),
        ({"expression": "k*m1*m2/r+0*2**k"}, "holds '2 ** k'; a power"),
        ({"expression": "k*m1*m2/" + "-" * 400 + "r"}, "is nested more than 50 times"),
        ({"expression": "k*m1*m2/" + "-" * 3000 + "r"}, "is longer than 500 letters"),
        ({"expression": "[k*m1*m2]"}, "holds '[k * m1 * m2]', which is no arithmetic"),
        ({"expression": "k*m1 < m2"}, "holds 'k * m1 < m2', which is no arithmetic"),
        ({"expression": "sqrt"}, "which is no arithmetic"),
        ({"expression": "k*sqrt(m1, m2, r)"}, "holds 'sqrt(m1, m2, r)', which is no arithmetic"),
        ({"expression": "k*m1*m2/r + sqrt"}, "which is no arithmetic"),
        ({"expression": "open('x')"}, "uses open, which is not"),
        ({"parameters": {"k": math.inf}}, "parameters: k must be a finite number, got inf"),
        ({"parameters": {"r": 1.0}}, "parameters has 'r', which cannot name a constant"),
        ({"units": None}, "units must name the unit of each parameter (k), got {}"),
        ({"exponents": {"r": -4.0}}, "exponents must be a number for each of r, m1, m2, got"),
    ],
)
def test_a_bad_file_is_one_line_and_leaves_the_others(extra_folder, capsys, changes, message):
    name = GOOD["name"]
    fields = {key: value for key, value in {**GOOD, **changes}.items() if value is not None}
    (extra_folder / f"{name}.py").write_text(
        f"from math import inf\nfrom orbits.laws import Law\nLAW = Law(**{fields})\n"
    )
    assert laws.names() == NAMES
    assert laws.get("newton").magnitude(1, 1, 1) > 0
    with pytest.raises(ValueError, match=re.escape(message)) as error:
        laws.get(name)
    said = str(error.value)
    assert said.startswith(f"orbits/laws/{name}.py: ")
    assert len(said.splitlines()) == 1
    main(["ls"])
    out = capsys.readouterr().out
    assert [line for line in out.splitlines() if name in line] == [f"no law: {said}"]
    assert all(other in out for other in NAMES)
    with pytest.raises(SystemExit):
        main(["generate", "--law", name, "--out", str(extra_folder / "out")])
    assert capsys.readouterr().err == f"error: {said}\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x = 1\n", "defines no LAW = Law(...)"),
        ("raise SystemExit('bye')\n", "bye"),
        ("LAW = \n", "invalid syntax"),
        ("import not_there_at_all\n", "No module named 'not_there_at_all'"),
    ],
)
def test_a_file_that_makes_no_law_is_named(extra_folder, text, message):
    (extra_folder / "none_for_this_test.py").write_text(text)
    (line,) = laws.broken().values()
    assert line.startswith(f"orbits/laws/none_for_this_test.py: {message}")
    assert laws.names() == NAMES


def test_a_law_with_a_parameter_changed_has_what_is_its_own(extra_folder):
    """Its exponents are those of the new formula; a potential with a number in it is not."""
    fields = GOOD | {"expression": "k*m1*m2/r**n", "parameters": {"k": 2.0, "n": 4.0}}
    fields["units"] = {"k": "1", "n": "1"}
    (extra_folder / "extra_for_this_test.py").write_text(
        f"from orbits.laws import Law\nLAW = Law(**{fields})\n"
    )
    steeper, stronger = (laws.get(f"extra_for_this_test_{x}") for x in ("n_5", "k_3"))
    assert (steeper.exponents["r"], steeper.potential) == (-5, None)
    assert (stronger.exponents["r"], stronger.potential) == (-4, GOOD["potential"])
    assert stronger.potential_energy(1, 1, 1) == -1


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({}, None),
        ({"exponents": {"r": -3, "m1": 1, "m2": 1}}, "exponents has -3 for r, the formula -4"),
        ({"potential": "-k*m1*m2/r**3"}, "the derivative of potential by r"),
        ({"potential": "-k*m1*m2/r**3", "parameters": {"k": 1e-10}}, "the derivative"),
    ],
)
def test_a_law_may_contradict_itself(changes, said):
    found = laws.Law(**GOOD | changes).disagreement
    assert found is None if said is None else found.startswith(said)


def test_a_good_law_is_good(extra_folder):
    (extra_folder / "extra_for_this_test.py").write_text(
        f"from orbits.laws import Law\nLAW = Law(**{GOOD})\n"
    )
    assert not laws.broken()
    assert laws.get("extra_for_this_test").magnitude(2, 1, 1) == pytest.approx(1 / 8)


def test_names_are_restored():
    assert laws.names() == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_what_a_law_says_of_masses_holds_for_its_accelerations(name):
    law, at = laws.get(name), points()
    doubled = {**at, "m1": 2 * at["m1"], "m2": 2 * at["m2"]}
    faster = law.relative_acceleration(**doubled) / law.relative_acceleration(**at)
    if law.mass_degree is None:
        assert np.ptp(faster) > 0.01
    else:
        np.testing.assert_allclose(faster, 2 ** (law.mass_degree - 1), rtol=1e-12)
    assert law.shows_masses == (not np.allclose(faster, 1))
    light = law.relative_acceleration(at["r"], 1e-5, 1.0)
    assert law.light_planets_move_alike == np.allclose(
        light, law.relative_acceleration(at["r"], 1e-4, 1.0), rtol=0.01
    )


def test_masses_that_do_not_show():
    assert {n for n in NAMES if not laws.get(n).shows_masses} == {"m1_over_r2", "m1_over_r2_6"}
    assert {n for n in NAMES if not laws.get(n).light_planets_move_alike} == {
        *("m1_1_3_over_r2_6", *OTHER_MASSES[3:])
    }
    assert laws.get("mond").mass_degree is None
    assert laws.get("sum_squared_over_r1_5").mass_degree == 2


@pytest.mark.parametrize(
    ("expression", "value", "truth"),
    [
        ("G*m1*m2*(1 + sqrt(alpha**2)/r)/r**2", -0.4, 1.4),
        ("G*m1*m2*Abs(alpha)/r**2", -2.0, 2.0),
        ("G*m1*m2*(1 + Max(alpha, 0))/r**2", -1.0, 1.0),
        ("G*m1*m2*sqrt(alpha**2)/r**2", 0.5, 0.5),
    ],
)
def test_a_constant_may_be_negative(expression, value, truth):
    law = laws.Law("own", expression, "a test", {"G": 1.0, "alpha": value}, {"G": "", "alpha": ""})
    assert law.magnitude(1, 1, 1) == pytest.approx(truth)
