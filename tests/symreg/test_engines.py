"""Contract tests over every registered engine, then what each engine finds."""

import inspect
import json

import numpy as np
import pytest

from symreg import engines, fit, score
from symreg.engines import Status
from symreg.log_target import MINIMUM_POINTS

NAMES = ("r", "m1", "m2")


@pytest.fixture(params=engines.names())
def engine(request):
    return engines.get(request.param)


def test_the_catalogue_holds_one_engine_per_file():
    assert {"operon", "operon_vafa", "powerlaw", "pysr", "pysr_vafa"} <= set(engines.names())
    assert engines.names() == tuple(sorted(engines.names()))


def test_name_and_lookup_agree(engine):
    assert engines.get(engine.name) is engine
    assert engine.name in engines.names()


def test_status_has_a_state_and_one_line_of_reason(engine):
    status = engine.status()
    assert status.state in ("ready", "not resolved", "absent", "unknown")
    assert status.reason.strip()
    assert "\n" not in status.reason


def test_settings_are_plain_data_and_version_is_text(engine):
    assert json.loads(json.dumps(dict(engine.settings))) == dict(engine.settings)
    assert engine.settings["constant"] in ("median", "search")
    assert engine.version()


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


def test_auto_prefers_pysr_and_says_why(monkeypatch):
    for state, chosen in (("ready", "pysr"), ("absent", "operon"), ("unknown", "operon")):
        status = Status(state, "the reason")
        monkeypatch.setattr("symreg.engines.pysr.julia_status", lambda status=status: status)
        engine, why = engines.resolve("auto")
        assert engine.name == chosen
        assert chosen in why
        assert "the reason" in why


def test_an_engine_that_cannot_run_is_refused_by_name(monkeypatch):
    absent = Status("not resolved", "run this")
    monkeypatch.setattr("symreg.engines.pysr.julia_status", lambda: absent)
    with pytest.raises(RuntimeError, match="pysr is not resolved: run this"):
        engines.resolve("pysr")


def test_operon_finds_newton_without_noise(sample):
    front = fit(sample.X, sample.newton, engine="operon", seed=0)
    result = score(front.best().expression, X=sample.X, y=sample.newton)
    assert (result.verdict, result.symbolic) == ("law", "yes")
    assert result.constant_relative_error < 1e-6
    assert (front.engine, front.dropped) == ("operon", 0.0)


def test_operon_finds_newton_at_five_percent_noise(sample):
    y = sample.noisy(sample.newton, 0.05)
    front = fit(sample.X, y, engine="operon", seed=0)
    result = score(front.best().expression, X=sample.X, y=y)
    assert result.verdict == "law"
    assert result.constant_relative_error < 0.01


def test_operon_does_not_find_newton_where_it_is_not(sample):
    r, m1, _ = sample.X.T
    y = sample.noisy(m1 / r**2, 0.05)
    front = fit(sample.X, y, engine="operon", seed=0)
    result = score(front.best().expression, X=sample.X, y=y)
    assert result.verdict == "another law"
    assert result.exponents["m2"][0] == pytest.approx(0, abs=0.1)


def test_operon_repeats_itself_for_a_seed(make):
    points = make(1, n=200)
    y = points.noisy(points.newton, 0.1)
    fronts = [fit(points.X, y, engine="operon", seed=seed).equations for seed in (4, 4, 5)]
    assert fronts[0] == fronts[1]
    assert fronts[0] != fronts[2]


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
