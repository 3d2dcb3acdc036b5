"""PySR: the probe with a faked child, the real package over a faked Julia, one live test."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from symreg import engines, fit, score
from symreg.engines import pysr

CONTRACT = Path(__file__).with_name("pysr_contract.py")


@pytest.fixture(autouse=True)
def _fresh_probe():
    pysr.julia_status.cache_clear()
    yield
    pysr.julia_status.cache_clear()


def fake_child(monkeypatch, program):
    monkeypatch.setattr(pysr, "STATE_OF_JULIA", program)


@pytest.mark.parametrize(
    ("printed", "state", "said"),
    [
        ({"state": "ready", "version": "1.11.2"}, "ready", "Julia 1.11.2"),
        ({"state": "not resolved", "version": "1.10"}, "not resolved", 'python -c "import pysr"'),
        ({"state": "absent", "version": "could not find Julia"}, "absent", "could not find Julia"),
    ],
)
def test_what_the_probe_prints_is_what_status_says(monkeypatch, printed, state, said):
    fake_child(monkeypatch, f"print('a warning'); print({json.dumps(json.dumps(printed))})")
    status = pysr.julia_status()
    assert status.state == state
    assert said in status.reason


@pytest.mark.parametrize("program", ["raise SystemExit(3)", "print('hello')", "print('[1]')", ""])
def test_a_probe_that_fails_is_unknown(monkeypatch, program):
    fake_child(monkeypatch, program)
    assert pysr.julia_status().state == "unknown"


def test_a_probe_that_hangs_is_unknown(monkeypatch):
    fake_child(monkeypatch, "import time; time.sleep(60)")
    status = pysr.julia_status(timeout=0.5)
    assert status.state == "unknown"
    assert "0.5 s" in status.reason


def test_asking_imports_neither_pysr_nor_julia():
    program = (
        "import sys; from symreg import engines; engines.get('pysr').status();"
        "print(sorted({'pysr', 'juliacall', 'juliapkg'} & set(sys.modules)))"
    )
    child = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert child.stdout.strip() == "[]"


@pytest.mark.parametrize("name", ["pysr", "pysr_vafa"])
def test_without_julia_fit_is_refused_with_the_reason(monkeypatch, sample, name):
    fake_child(monkeypatch, 'print(\'{"state": "absent", "version": "no Julia here"}\')')
    with pytest.raises(RuntimeError, match="no Julia here"):
        engines.get(name).fit(sample.X, sample.newton, ("r", "m1", "m2"), 0)
    assert "pysr" not in sys.modules


def test_vafa_settings_are_theirs():
    settings = engines.get("pysr_vafa").settings
    assert settings["binary_operators"] == ["+", "*"]
    assert settings["unary_operators"] == ["sin", "cos", "exp", "inv(x) = 1/x"]
    assert settings["elementwise_loss"].endswith("max(1e-8, abs(prediction - target)) - 1e-8")
    assert (settings["target"], settings["restarts"], settings["niterations"]) == ("raw", 3, 100)


@pytest.fixture(scope="module")
def contract():
    """What the adapter made of the real pysr package over a fake Julia, in its own process."""
    child = subprocess.run(
        [sys.executable, str(CONTRACT)], capture_output=True, text=True, timeout=120
    )
    if child.returncode == 77:
        pytest.skip(child.stderr.strip().splitlines()[-1])
    assert child.returncode == 0, child.stderr[-2000:]
    return json.loads(child.stdout.strip().splitlines()[-1])


def test_contract_log_target(contract):
    front = contract["pysr"]
    assert [row["complexity"] for row in front["equations"]] == [1, 9, 13]
    constant, rest = front["equations"][1]["expression"].split("*", 1)
    assert rest == "m1*m2/r**2"
    assert float(constant) == pytest.approx(39.4784176044, rel=1e-9)
    assert front["engine"] == "pysr"
    assert front["settings"]["constant"] == "median"


def test_contract_vafa(contract):
    front = contract["pysr_vafa"]
    assert front["equations"][1]["expression"] == "39.4784*m1*m2/r**2"


def test_contract_random_states_count_on_over_restarts(contract):
    # pysr hands Julia the first draw of RandomState(random_state).
    states = [3, 6, 7, 8]  # pysr with seed 3, then the three restarts of pysr_vafa with seed 2
    expected = [np.random.RandomState(s).randint(0, 2**31 - 1) for s in states]
    assert [call["seed"] for call in contract["options"]] == expected


def test_contract_our_rules_choose_what_pysr_chooses(contract):
    assert contract["ours"] == contract["theirs"] == {"best": 9, "score": 9, "accuracy": 13}


def test_contract_searches_are_serial_and_deterministic(contract):
    for call in contract["options"]:
        assert call["deterministic"] is True
        assert call["maxsize"] == 20
        assert call["parallelism"] == "serial"


@pytest.mark.julia
def test_live_search_finds_newton(sample):
    status = engines.get("pysr").status()
    if status.state != "ready":
        pytest.skip(f"pysr is {status.state}: {status.reason}")
    front = fit(sample.X, sample.newton, engine="pysr", seed=0)
    assert score(front.best().expression, X=sample.X, y=sample.newton).verdict == "law"
