"""PySR: its arguments, the real package over a faked Julia, one live test."""

import json
import subprocess
import sys
import types
from pathlib import Path

import numpy as np
import pytest

from symreg import engines, fit, score
from symreg.engines import Status
from symreg.search import julia

CONTRACT = Path(__file__).with_name("pysr_contract.py")
pysr = engines.get("pysr")

# Vafa et al. (2025), fit_symbolic_regression.py, every keyword but the random state.
PUBLISHED = {
    "niterations": 100,
    "binary_operators": ["+", "*"],
    "unary_operators": ["sin", "cos", "exp", "inv(x) = 1/x"],
    "elementwise_loss": "loss(prediction, target) = max(1e-8, abs(prediction - target)) - 1e-8",
    "maxsize": 20,
    "parallelism": "serial",
    "deterministic": True,
    "model_selection": "score",
}
# What the adapter adds, none of which changes a search.
QUIET = {
    "progress": False,
    "verbosity": 0,
    "temp_equation_file": True,
    "input_stream": "devnull",
}


def test_configured_changes_only_what_it_is_given():
    engine = pysr.configured(niterations=7, unary_operators=["cos", "inv(x) = 1/x"])
    assert engine.name == "pysr"
    changed = {**pysr.settings, "niterations": 7, "unary_operators": ["cos", "inv(x) = 1/x"]}
    assert engine.settings == changed
    assert pysr.configured().settings == pysr.settings


@pytest.mark.parametrize(
    ("arguments", "parallelism", "deterministic"),
    [
        ({"procs": 4}, "multiprocessing", False),
        ({"procs": 4, "cluster_manager": "slurm"}, "multiprocessing", False),
        ({"parallelism": "multithreading"}, "multithreading", False),
        ({"parallelism": "multiprocessing"}, "multiprocessing", False),
        ({"parallelism": None}, None, False),  # pysr then takes threads
        ({"parallelism": "serial"}, "serial", True),
        ({"deterministic": False}, "serial", False),
        ({"heap_size_hint_in_bytes": 10**9}, "serial", True),
    ],
)
def test_several_processes_are_said_not_to_be_deterministic(arguments, parallelism, deterministic):
    settings = pysr.configured(**arguments).settings
    assert (settings["parallelism"], settings["deterministic"]) == (parallelism, deterministic)
    assert arguments.items() <= settings.items()


def test_every_documented_keyword_is_known_and_reading_them_imports_nothing():
    program = (
        "import sys; from symreg import engines; engines.get('pysr').configured(populations=3);"
        "print(sorted({'pysr', 'juliacall', 'juliapkg'} & set(sys.modules)))"
    )
    child = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert child.stdout.strip() == "[]"
    for name, value in {
        "populations": 8,
        "worker_timeout": 600,
        "worker_imports": ["LinearAlgebra"],
        "batching": True,
        "precision": 64,
        "nested_constraints": {"log": {"log": 0}},
        "weight_optimize": 0.001,
        "early_stop_condition": "stop_if(loss, complexity) = loss < 1e-9",
    }.items():
        assert pysr.configured(**{name: value}).settings[name] == value


@pytest.mark.parametrize("name", ["pysr", "pysr_vafa"])
def test_without_julia_fit_is_refused_with_the_reason(monkeypatch, sample, name):
    absent = Status("absent", "no Julia here")
    monkeypatch.setattr("symreg.engines.pysr.julia_status", lambda: absent)
    with pytest.raises(RuntimeError, match="no Julia here"):
        engines.get(name).fit(sample.X, sample.newton, ("r", "m1", "m2"), 0)
    assert "pysr" not in sys.modules


def test_a_stand_in_for_juliacall_is_no_search(monkeypatch, sample, tmp_path):
    ready = Status("ready", "Julia 1.11")
    monkeypatch.setattr("symreg.engines.pysr.julia_status", lambda: ready)
    stub = types.ModuleType("juliacall")
    monkeypatch.setitem(sys.modules, "juliacall", stub)
    with pytest.raises(RuntimeError, match="juliacall is not the installed package"):
        fit(sample.X, sample.newton, engine="pysr")
    # Nor is one found on the path before the installed one.
    monkeypatch.delitem(sys.modules, "juliacall")
    (tmp_path / "juliacall.py").write_text("Main = None\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(RuntimeError, match="juliacall is not the installed package"):
        fit(sample.X, sample.newton, engine="pysr_vafa")
    assert "pysr" not in sys.modules


def test_the_installed_juliacall_is_accepted():
    pytest.importorskip("juliapkg")
    julia.require_juliacall()
    assert "juliacall" not in sys.modules


@pytest.fixture(scope="module")
def contract():
    """What the adapter made of the real pysr package over a fake Julia, in its own process."""
    child = subprocess.run(
        [sys.executable, str(CONTRACT)], capture_output=True, text=True, timeout=600
    )
    if child.returncode == 77:
        pytest.skip(child.stderr.strip().splitlines()[-1])
    assert child.returncode == 0, child.stderr[-2000:]
    return json.loads(child.stdout.strip().splitlines()[-1])


@pytest.mark.full
def test_contract_fit_refuses_the_fake(contract):
    assert contract["refused"] == (
        "juliacall is not the installed package, so this would be no search"
    )


@pytest.mark.full
def test_contract_log_target(contract):
    front = contract["pysr"]
    assert [row["complexity"] for row in front["equations"]] == [1, 9, 13]
    constant, rest = front["equations"][1]["expression"].split("*", 1)
    assert rest == "m1*m2/r**2"
    assert float(constant) == pytest.approx(39.4784176044, rel=1e-9)
    assert front["engine"] == "pysr"
    assert front["settings"]["constant"] == "median"


@pytest.mark.full
def test_contract_vafa(contract):
    front = contract["pysr_vafa"]
    assert front["equations"][1]["expression"] == "39.4784*m1*m2/r**2"


@pytest.mark.full
def test_contract_vafa_is_given_to_pysr_as_published_and_nothing_else_is(contract):
    """``vafa`` holds every keyword in which the search differs from pysr's defaults."""
    settings = dict(engines.get("pysr_vafa").settings)
    ours = {name: settings.pop(name) for name in PUBLISHED}
    assert ours == PUBLISHED
    assert settings == {"target": "raw", "random_state": [0, 1, 2], "constant": "search"}
    # 100 iterations are pysr's default.
    differs = {name: value for name, value in PUBLISHED.items() if name != "niterations"}
    assert contract["vafa"] == {**differs, **QUIET, "random_state": 2}
    assert contract["inverse"] == {"inv": 0.25}


@pytest.mark.full
def test_contract_random_states(contract):
    # pysr hands Julia the first draw of RandomState(random_state): seed 3, then the published 0-2.
    expected = [np.random.RandomState(state).randint(0, 2**31 - 1) for state in (3, 0, 1, 2)]
    assert [search["seed"] for search in contract["searches"]] == expected


@pytest.mark.full
def test_contract_the_restart_with_the_highest_score_above_zero_is_kept(contract):
    # Complexities of the second of three restarts, whose score is the highest, or the first
    # of two infinite ones.
    one_wins, tied, none = contract["restarts"]
    assert one_wins == tied == [2, 3]
    assert none == "pysr_vafa failed: no restart scored above 0"


@pytest.mark.full
def test_contract_cluster_options_reach_julia(contract):
    search, settings = contract["cluster"]["search"], contract["cluster"]["settings"]
    assert "SlurmManager()" in search["addprocs"]
    assert (search["numprocs"], search["parallelism"]) == (8, "multiprocessing")
    assert search["heap_size_hint_in_bytes"] == 10**9
    assert search["worker_timeout"] == 60.0
    assert search["worker_imports"] == ["LinearAlgebra"]
    assert search["deterministic"] is settings["deterministic"] is False
    assert (settings["procs"], settings["cluster_manager"]) == (8, "slurm")


@pytest.mark.full
def test_contract_our_rules_choose_what_pysr_chooses(contract):
    assert contract["ours"] == contract["theirs"] == {"best": 9, "score": 9, "accuracy": 13}


@pytest.mark.full
def test_contract_searches_are_serial_and_deterministic(contract):
    for search in contract["searches"]:
        assert search["deterministic"] is True
        assert search["maxsize"] == 20
        assert search["parallelism"] == "serial"
        assert search["addprocs"] is None


@pytest.mark.julia
def test_live_search_finds_newton_exactly(make):
    status = pysr.status()
    if status.state != "ready":
        pytest.skip(f"pysr is {status.state}: {status.reason}")
    points = make(0, n=200)
    front = fit(points.X, points.newton, engine="pysr", seed=0)
    result = score(front.best().expression, X=points.X, y=points.newton)
    assert (result.verdict, result.symbolic) == ("law", "yes")
    assert result.constant_relative_error < 1e-6
