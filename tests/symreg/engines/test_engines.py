"""Contract tests over every registered engine, then what each engine finds."""

import inspect
import json
import math
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError

import numpy as np
import pytest

from symreg import engines, fit, score
from symreg.engines import Status
from symreg.formula.evaluation import evaluate
from symreg.search.front import RULES
from symreg.search.run import Row, run_search
from symreg.search.targets import MINIMUM_POINTS, TARGETS, LogTarget, RawTarget

NAMES = ("r", "m1", "m2")
SEEDED = ("operon", "gplearn", "pysr")
"""Engines whose packages call the seed ``random_state``."""


@pytest.fixture(params=engines.names())
def engine(request):
    return engines.get(request.param)


def test_the_catalogue_holds_one_engine_per_file():
    today = {"gplearn", "operon", "operon_raw", "operon_vafa", "powerlaw", "pysr", "pysr_vafa"}
    assert today <= set(engines.names())
    assert engines.names() == tuple(sorted(engines.names()))
    assert all(f"``{name}``" in engines.__doc__ for name in engines.names())


def test_name_and_lookup_agree(engine):
    assert engines.get(engine.name) is engine
    assert engine.name in engines.names()


def test_status_has_a_state_and_one_line_of_reason(engine):
    status = engine.status()
    assert status.state in ("ready", "not resolved", "misconfigured", "absent", "unknown")
    assert status.reason.strip()
    assert "\n" not in status.reason


def test_settings_are_plain_data_and_version_is_text(engine):
    assert json.loads(json.dumps(dict(engine.settings))) == dict(engine.settings)
    assert engine.settings["constant"] in ("median", "search")
    try:
        assert engine.version()
    except PackageNotFoundError:
        assert engine.status().state == "absent"


def test_every_engine_has_its_rule_and_the_published_one_is_kept(engine):
    assert engine.rule == ("score" if engine.name in ("pysr_vafa", "operon_raw") else "knee")
    assert engine.rule in RULES


def test_fit_has_the_one_signature(engine):
    assert list(inspect.signature(engine.fit).parameters) == ["X", "y", "names", "seed"]


@pytest.mark.parametrize(
    ("X", "y", "message"),
    [
        (np.ones((30, 2)), np.ones(30), "X must have shape"),
        (np.ones((30, 3)), np.ones(29), "y must have shape"),
        (np.ones((0, 3)), np.ones(0), "no points"),
        (np.ones((30, 3)), np.full(30, np.nan), "only 0 of 30"),
    ],
)
def test_bad_points_are_refused_whether_or_not_the_engine_can_run(engine, X, y, message):
    with pytest.raises(ValueError, match=message):
        engine.fit(X, y, NAMES, 0)


def test_an_unknown_engine_is_one_line_with_the_choices():
    with pytest.raises(ValueError, match="unknown engine 'eureqa'; choose from auto, ") as caught:
        engines.get("eureqa")
    assert all(name in str(caught.value) for name in engines.names())
    with pytest.raises(ValueError, match="unknown engine 'eureqa'"):
        fit(np.ones((30, 3)), np.ones(30), engine="eureqa")


@pytest.mark.parametrize(
    ("typo", "near"),
    [("operom", "operon"), ("PySR", "pysr"), ("power_law", "powerlaw"), ("gp-learn", "gplearn")],
)
def test_a_typo_is_answered_with_the_nearest_name(typo, near):
    with pytest.raises(ValueError, match=f"unknown engine '{typo}'; did you mean {near}"):
        engines.resolve(typo)


def test_auto_prefers_pysr_and_says_why_in_a_short_line(monkeypatch):
    for state, chosen in (("ready", "pysr"), ("absent", "operon"), ("misconfigured", "operon")):
        status = Status(state, "the reason; the fix")
        monkeypatch.setattr("symreg.engines.pysr.julia_status", lambda status=status: status)
        engine, why = engines.resolve("auto")
        assert engine.name == chosen
        assert why.startswith(f"{chosen} (auto)")
        assert "the reason" in why
        assert ("the fix" in why) == (chosen == "pysr")
        assert len(why) < 80


def test_an_engine_that_cannot_run_is_refused_by_name(monkeypatch):
    absent = Status("not resolved", "run this")
    monkeypatch.setattr("symreg.engines.pysr.julia_status", lambda: absent)
    with pytest.raises(RuntimeError, match="pysr is not resolved: run this"):
        engines.resolve("pysr")


@pytest.mark.heavy
@pytest.mark.slow
def test_operon_finds_newton_without_noise(make):
    sample = make(0, n=300)
    front = fit(sample.X, sample.newton, engine="operon", seed=0)
    result = score(front.best().expression, X=sample.X, y=sample.newton)
    assert (result.verdict, result.symbolic) == ("law", "yes")
    assert result.constant_relative_error < 1e-6
    assert (front.engine, front.dropped) == ("operon", 0.0)


@pytest.mark.full
def test_operon_finds_newton_at_five_percent_noise(make):
    sample = make(0, n=300)
    y = sample.noisy(sample.newton, 0.05)
    front = fit(sample.X, y, engine="operon", seed=0)
    result = score(front.best().expression, X=sample.X, y=y)
    assert result.verdict == "law"
    assert result.constant_relative_error < 0.01


@pytest.mark.full
def test_operon_does_not_find_newton_where_it_is_not(make):
    sample = make(0, n=300)
    r, m1, _ = sample.X.T
    y = sample.noisy(m1 / r**2, 0.05)
    front = fit(sample.X, y, engine="operon", seed=0)
    result = score(front.best().expression, X=sample.X, y=y)
    assert result.verdict == "another law"
    assert result.exponents["m2"][0] == pytest.approx(0, abs=0.1)


@pytest.mark.full
def test_operon_repeats_itself_for_a_seed(make):
    points = make(1, n=200)
    y = points.noisy(points.newton, 0.1)
    assert engines.get("operon").settings["n_threads"] == 1
    engine = engines.get("operon").configured(generations=15)
    one, again, other = (engine.fit(points.X, y, NAMES, seed).equations for seed in (4, 4, 5))
    assert one == again
    assert one != other


def test_operon_vafa_differs_from_operon_only_in_its_symbols():
    one, other = (dict(engines.get(name).settings) for name in ("operon", "operon_vafa"))
    assert one.pop("allowed_symbols") == "add,sub,mul,div,square,log,constant,variable"
    assert other.pop("allowed_symbols") == "add,mul,div,sin,cos,exp,log,constant,variable"
    assert one == other


def test_powerlaw_is_exact_and_keeps_other_names(sample):
    front = fit(sample.X, sample.newton, names=("a", "b", "c"), engine="powerlaw")
    constant, rest = front.best().expression.split("*", 1)
    assert rest == "b*c/a**2"
    assert float(constant) == pytest.approx(39.4784176044, rel=1e-9)


def test_dropped_points_are_reported(sample):
    y = sample.newton
    y[:100] = -1
    assert fit(sample.X, y, engine="powerlaw").dropped == pytest.approx(0.1)
    y[MINIMUM_POINTS - 1 :] = np.nan
    with pytest.raises(ValueError, match="positive and finite"):
        fit(sample.X, y, engine="powerlaw")


def test_configured_without_arguments_is_the_same_search(engine):
    try:
        same = engine.configured()
    except RuntimeError as error:
        assert engine.status().state == "absent"
        pytest.skip(str(error))
    assert (same.name, same.settings, same.rule) == (engine.name, engine.settings, engine.rule)


def test_an_unknown_argument_is_one_line_on_every_engine(engine):
    if engine.status().state == "absent" and engine.name == "gplearn":
        pytest.skip(engine.status().reason)
    for name in ("zzz", "self"):
        with pytest.raises(ValueError, match=name) as caught:
            engine.configured(**{name: 1})
        assert engine.name in str(caught.value)
        assert "\n" not in str(caught.value)


@pytest.mark.full
def test_operon_configured_shows_in_the_settings_of_the_front(make):
    points = make(1, n=60)
    symbols = "add,mul,constant,variable"
    arguments = {"population_size": 50, "generations": 2, "max_length": 9, "symbols": symbols}
    front = fit(points.X, points.newton, engine="operon", arguments=arguments)
    changed = {"allowed_symbols" if k == "symbols" else k: v for k, v in arguments.items()}
    assert front.settings == {**engines.get("operon").settings, **changed}
    # Linear scaling adds a factor and an offset to trees of at most 9 nodes.
    assert max(row.complexity for row in front.equations) <= 9 + 4
    assert engines.get("operon").settings["population_size"] == 500


REFUSED = [
    ("operon", {"popsize": 3}, "operon has no argument 'popsize'"),
    ("operon", {"generation": 3}, "no argument 'generation'; did you mean generations"),
    ("operon", {"population_size": "many"}, "population_size must be int, got 'many'"),
    ("operon", {"population_size": 10.5}, "population_size must be int, got 10.5"),
    ("operon", {"objectives": "r2"}, "objectives must be list or null, got 'r2'"),
    ("operon", {"symbols": "add,tanh"}, "allowed_symbols has 'tanh'; choose from add"),
    ("operon", {"warm_start": True}, "warm_start cannot be set"),
    ("gplearn", {"population": 3}, "no argument 'population'; did you mean population_size"),
    ("gplearn", {"generations": 2.5}, "generations must be int or str or null, got 2.5"),
    ("gplearn", {"init_depth": 3}, "init_depth must be str or tuple or null, got 3"),
    ("gplearn", {"function_set": ["add", "max"]}, "function_set has 'max'; choose from add, sub"),
    ("gplearn", {"function_set": "add"}, "function_set has 'a'; choose from add, sub"),
    ("gplearn", {"feature_names": ["r"]}, "feature_names cannot be set"),
    ("powerlaw", {"base": 10}, "powerlaw takes no arguments, got base"),
    ("pysr", {"niteration": 3}, "no argument 'niteration'; did you mean niterations"),
    ("pysr", {"zzz": 3}, "pysr has no argument 'zzz'$"),
    ("pysr", {"niterations": "many"}, "niterations must be int, got 'many'"),
    ("pysr", {"niterations": True}, "niterations must be int, got True"),
    ("pysr", {"timeout_in_seconds": "1 h"}, "timeout_in_seconds must be float or null"),
    ("pysr", {"cluster_manager": "slrum", "procs": 2}, "must be 'slurm' or 'pbs' .*got 'slrum'"),
    ("pysr", {"parsimony": float("nan")}, "parsimony must be plain data, got nan"),
    ("pysr", {"constraints": {"log": print}}, "constraints must be plain data"),
    ("pysr", {"extra_sympy_mappings": {}}, "extra_sympy_mappings cannot be set"),
    ("pysr", {"unary_operators": ["sin", "tanh"]}, "unary_operators has 'tanh'; choose from neg"),
    ("pysr", {"binary_operators": ["max"]}, "binary_operators has 'max'; choose from +"),
    ("pysr", {"procs": 4, "deterministic": True}, "deterministic needs parallelism='serial'"),
    ("pysr", {"procs": 4, "parallelism": "serial"}, "procs needs parallelism='multiprocessing'"),
    ("pysr", {"cluster_manager": "slurm"}, "cluster_manager needs procs"),
    *((name, {"random_state": 3}, "random_state cannot be set: it is the seed") for name in SEEDED),
]
"""Engines, arguments that they do not take, and what is said of those."""


@pytest.mark.parametrize(("name", "arguments", "message"), REFUSED)
def test_arguments_that_do_not_fit_are_one_line(name, arguments, message):
    if name == "gplearn":
        pytest.importorskip("gplearn")
    with pytest.raises(ValueError, match=message) as caught:
        engines.get(name).configured(**arguments)
    assert "\n" not in str(caught.value)


def test_what_the_package_refuses_is_one_line_too(make):
    points = make(1, n=60)
    for arguments in ({"population_size": -5}, {"max_length": -3}, {"symbols": "variable"}):
        with pytest.raises(RuntimeError, match=r"^operon failed: ") as caught:
            fit(points.X, points.newton, engine="operon", arguments=arguments)
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize("rounding", [0.0, 1e-15])
def test_a_y_that_does_not_vary_is_that_constant(engine, make, rounding):
    """Without a search, so for engines that cannot run here too, once they are let through."""
    points = make(0, n=60)
    y = 2.5 * (1 + rounding * np.random.default_rng(0).normal(size=60))
    if engine.name.startswith("pysr"):
        front = run_search(engine, TARGETS[engine.target].of(points.X, y, NAMES), 0, lambda: 1 / 0)
    elif engine.status().state == "absent":
        pytest.skip(engine.status().reason)
    else:
        front = engine.fit(points.X, y, NAMES, 0)
    (equation,) = front.equations
    assert float(equation.expression) == pytest.approx(2.5, rel=1e-12)
    assert (equation.complexity, equation.loss) == (1, 0.0)
    assert front.best() is front.best("score") is front.best("accuracy") is equation
    result = score(equation.expression, X=points.X, y=y)
    assert result.exponents["r"][0] == 0


def test_a_raw_zero_is_a_constant_too(make):
    engine = engines.get("pysr_vafa")
    target = RawTarget.of(make(0, n=60).X, np.zeros(60), NAMES)
    assert run_search(engine, target, 0, lambda: 1 / 0).best().expression == "0.0"


@dataclass(frozen=True)
class Scripted:
    """An engine that finds what it is told."""

    name: str = "scripted"
    settings: dict = field(default_factory=dict)
    rule: str = "accuracy"

    def version(self):
        return "1"


def test_the_front_keeps_only_improvements_that_are_finite(make):
    """``log(0 - r)`` cannot be evaluated, so the next best of that size takes its place."""
    points = make(0, n=60)
    target = LogTarget.of(points.X, points.newton, NAMES)
    rows = [
        Row(5, 1.0, "m1 + m2"),
        Row(3, 2.0, "m1*m2"),
        Row(3, 1.5, "log(0 - r)"),
        Row(3, 1.8, "log(r)"),
        Row(4, 1.8, "log(2*r)"),
        Row(6, math.nan, "r"),
        Row(7, 0.5, "log(m1)"),
        Row(8, math.inf, "r"),
        Row(9, 0.5, "log(m2)"),
    ]
    for order in (rows, rows[::-1]):
        front = run_search(Scripted(), target, 3, lambda order=order: order)
        assert [(row.complexity, row.loss) for row in front.equations] == [
            (3, 1.8),
            (5, 1.0),
            (7, 0.5),
        ]
        assert front.equations[0].expression.endswith("*r")
        assert (front.engine, front.version, front.seed) == ("scripted", "1", 3)
        for row in front.equations:
            assert np.all(evaluate(row.expression, NAMES, points.X) > 0)


def test_an_engine_that_finds_nothing_finite_says_so(make):
    points = make(0, n=60)
    target = LogTarget.of(points.X, points.newton, NAMES)
    for rows in ([], [Row(1, math.nan, "r")], [Row(1, 1.0, "log(0 - r)"), Row(2, 0.5, "tanh(r)")]):
        with pytest.raises(RuntimeError, match=r"^scripted found no finite formula$"):
            run_search(Scripted(), target, 0, lambda rows=rows: rows)


def test_a_search_that_fails_is_one_line(make):
    points = make(0, n=60)
    target = LogTarget.of(points.X, points.newton, NAMES)

    def search():
        raise TypeError("incompatible function arguments.\nInvoked with: ...")

    with pytest.raises(RuntimeError, match=r"^scripted failed: incompatible function arguments\.$"):
        run_search(Scripted(), target, 0, search)


def test_operon_raw_searches_the_force_itself(sample):
    engine = engines.get("operon_raw").configured(population_size=100, generations=10, restarts=1)
    front = engine.fit(sample.X, sample.newton, ("r", "m1", "m2"), 0)
    assert front.settings["target"] == "raw"
    for equation in front.equations:
        values = evaluate(equation.expression, ("r", "m1", "m2"), sample.X)
        assert np.mean((values - sample.newton) ** 2) == pytest.approx(equation.loss, rel=1e-3)
