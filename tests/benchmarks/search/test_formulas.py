"""NewtonBench's formulas: the data, what counts as found and what does not, their table."""

import numpy as np
import pytest

from benchmarks.__main__ import main
from benchmarks.search import formulas
from benchmarks.search.law_rates import STUDY
from orbits import laws
from orbits.runs import folder
from symreg.formula.evaluation import evaluate

NAMES = tuple(formulas.catalogue())


def formula(name):
    return formulas.catalogue()[name]


def test_there_are_twelve_domains_of_nine():
    assert len(NAMES) == 12 * 9
    assert {name.rsplit("_", 2)[0] for name in NAMES} >= {"gravity", "snell", "bose_einstein"}
    assert {formula(name).level for name in NAMES} == set(formulas.LEVELS)
    assert [x for x in NAMES if formulas.is_flat(x)] == [
        "bose_einstein_easy_0",
        "bose_einstein_hard_0",
    ]


def test_every_truth_is_itself_and_has_points_on_both_ranges():
    for name in NAMES:
        one = formula(name)
        for beyond in (1.0, formulas.BEYOND):
            X, y = one.points(500, np.random.default_rng(0), beyond)
            assert X.shape == (500, len(one.names))
            assert np.all(y > 0)
        if not one.outer:
            assert formulas.agreement(one.text, one, 0)["found_strict"] == 1


@pytest.mark.parametrize(
    ("name", "law"),
    [
        ("gravity_easy_0", "power_1_5"),
        ("gravity_easy_1", "m1_over_r2"),
        ("gravity_easy_2", "product_squared_over_r2"),
        ("gravity_medium_0", "product_squared_over_r1_5"),
        ("gravity_medium_1", "m1_over_r2_6"),
        ("gravity_medium_2", "product_squared_times_r2"),
        ("gravity_hard_0", "sum_squared_over_r1_5"),
        ("gravity_hard_1", "m1_1_3_over_r2_6"),
        ("gravity_hard_2", "squares_times_r2"),
    ],
)
def test_the_formulas_of_gravity_are_the_laws_of_the_worlds(name, law):
    X, y = formula(name).points(100, np.random.default_rng(0))
    m1, m2, r = X.T
    ratio = y / laws.get(law).magnitude(r, m1, m2)
    np.testing.assert_allclose(ratio, ratio[0], rtol=1e-12)


def test_snells_truth_is_an_angle():
    one = formula("snell_easy_1")
    X, y = one.points(100, np.random.default_rng(0))
    n1, n2, angle = X.T
    np.testing.assert_allclose(
        n1 * np.sin(np.radians(y)), n2 * np.sin(np.radians(angle)), rtol=1e-9
    )


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("gravity_easy_1", "3*m1/r**2", (1, 1, 1)),  # up to one factor
        ("gravity_easy_1", "-3*m1/r**2", (0, 0, 0)),
        ("gravity_easy_1", "3*m1*m2/r**2", (0, 0, 0)),
        ("gravity_easy_1", "3*m1/r**2.002", (1, 1, 0)),  # 0.23% at 10
        ("gravity_easy_1", "3*m1/r**2.05", (0, 0, 0)),
        ("gravity_easy_1", "3*m1/r**2*(1 + (r/14)**20)", (1, 0, 0)),  # right in the range alone
        ("gravity_easy_1", "log(r - 20)", (0, 0, 0)),
        ("hooke_hard_0", "462.282*x**2 + 1241.9012*x", (0, 0, 0)),
    ],
)
def test_what_counts_as_found(name, text, expected):
    measured = formulas.agreement(text, formula(name), seed=0)
    assert tuple(measured[x] for x in ("found_in_range", "found", "found_strict")) == expected


def test_a_term_that_hardly_shows_is_not_asked_for():
    """Numbers are compared: damping moves most of these oscillators by less than a hundredth."""
    one = formula("oscillator_easy_2")
    assert formulas.agreement("k/m", one, 0)["found"] == 1
    assert formulas.agreement("k*m", one, 0)["found"] == 0


def test_points_have_the_stated_noise_and_are_the_same_again():
    one = formula("heat_easy_0")
    X, y = formulas.drawn(one, 0.05, seed=3)
    relative = y / evaluate(one.text, one.names, X) - 1
    assert relative.std() == pytest.approx(0.05, rel=0.1)
    for first, again in zip((X, y), formulas.drawn(one, 0.05, seed=3), strict=True):
        np.testing.assert_array_equal(first, again)
    assert not np.array_equal(X, formulas.drawn(one, 0.05, seed=4)[0])


@pytest.mark.parametrize(
    ("asked", "count"),
    [(("all",), 106), (("v0",), 34), (("gravity",), 9), (("snell", "snell_easy_0"), 9)],
)
def test_formulas_are_asked_for_by_name_or_group(asked, count):
    assert len(formulas.asked(asked)) == count


@pytest.mark.parametrize(
    ("flag", "message"),
    [
        ("--formula=gravty", "unknown formula 'gravty'; choose from all, v0, v1, v2, gravity"),
        ("--formula=bose_einstein_easy_0", "is one number on its range"),
        ("--formula=", "law must not be empty"),
    ],
)
def test_bad_names_are_one_line(refused_run, flag, message):
    assert message in refused_run("law_rates", "--law=", flag)


def test_the_preset_asks_for_a_formula_of_each_domain_and_level():
    settings = STUDY.settings("newton_bench")
    cells = list(STUDY.cells(settings))
    assert len(cells) == 34 * 4 * 2
    assert len({cell.key for cell in cells}) == len(cells)
    usual = STUDY.cells(STUDY.settings("tiny"))
    assert not [cell for cell in usual if cell.case.kind == "formula"]


@pytest.mark.full
def test_a_run_ends_in_a_table_of_engines_and_rates(tmp_path, capsys):
    out = tmp_path / "out"
    asked = ["--formula=gravity_easy_1,gravity_hard_0,snell_easy_0", "--noise=0.0,0.05"]
    main(["run", "law_rates", "--law=", *asked, "--engine=powerlaw", "--seeds=1",
          "--executor=here", "--out", str(out)])  # fmt: skip
    results, _ = folder.load(out)
    found = {(x.case.variant, x.case.get("noise")): x.value("found") for x in results}
    assert found == {
        (name, noise): float(name == "gravity_easy_1")
        for name in ("gravity_easy_1", "gravity_hard_0", "snell_easy_0")
        for noise in (0.0, 0.05)
    }
    main(["report", str(out), "--full"])
    text = capsys.readouterr().out
    assert "Formulas of NewtonBench's twelve domains" in text
    assert "1/3 [0.06, 0.79]" in text
    rate = "1 of 3 [0.06, 0.79]"
    assert f"searched, without noise and with 5% noise, these are found: powerlaw@1 {rate}" in text
    assert "Published" not in text
    assert "gravity\\_hard\\_0" in (out / "report.md").read_text()
