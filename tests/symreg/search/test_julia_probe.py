"""The probe for Julia in real child processes: one clear line, soon, without a socket or a file."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from symreg.search import julia

pytest.importorskip("juliapkg")

# Imported by every Python that `isolated` starts; a socket or a look-up of a name leaves a trace.
NO_SOCKETS = """
import os, sys
def refuse(event, arguments):
    if event in ("socket.__new__", "socket.connect", "socket.getaddrinfo"):
        with open(os.environ["TRACE"], "a") as trace:
            trace.write(event)
        raise OSError("no network here")
sys.addaudithook(refuse)
"""


@pytest.fixture
def isolated(tmp_path, monkeypatch):
    """An environment with no Julia, no settings and no network."""
    for name in list(os.environ):
        if name.startswith(("PYTHON_JULIA", "JULIA")):
            monkeypatch.delenv(name)
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "sitecustomize.py").write_text(NO_SOCKETS)
    (tmp_path / "bin").mkdir()
    root = str(Path(__file__).parents[3])
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path / "site"), root]))
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    monkeypatch.setenv("TRACE", str(tmp_path / "trace"))
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("PYTHON_JULIAPKG_PROJECT", str(tmp_path / "julia_env"))
    return tmp_path


def imported(*arguments):
    """Return a Python program's result, and the modules that it imports."""
    child = subprocess.run(
        [sys.executable, "-X", "importtime", *arguments], capture_output=True, text=True
    )
    lines = [x for x in child.stderr.splitlines() if x.startswith("import time:")]
    return child, {line.rpartition("|")[2].strip() for line in lines}


@pytest.fixture
def ask(isolated, monkeypatch):
    """Ask the probe, and check what holds for every answer."""
    folders = [isolated, Path(sys.prefix) / "julia_env"]

    def listing():
        return [sorted(folder.rglob("*")) if folder.exists() else None for folder in folders]

    def asked(**environment):
        julia.julia_status.cache_clear()
        before = listing()
        with monkeypatch.context() as patch:
            for name, value in environment.items():
                patch.setenv(name, value)
            status = julia.julia_status()
        assert not (isolated / "trace").exists(), "a socket was asked for"
        assert listing() == before
        assert len(status.reason) < 200
        assert "\n" not in status.reason
        return status.state, status.reason

    yield asked
    julia.julia_status.cache_clear()


def install_julia(folder, number="1.11.2"):
    """Put a program there that answers like ``julia --version``."""
    path = folder / "julia"
    path.write_text(f"#!/bin/sh\necho julia version {number}\n")
    path.chmod(0o755)
    return path


def test_the_trap_for_sockets_works(isolated):
    program = "import socket; socket.socket()"
    child = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert "no network here" in child.stderr
    assert (isolated / "trace").exists()


def test_no_julia(ask):
    state, reason = ask()
    assert state == "absent"
    assert reason.startswith("could not find Julia 1.")
    assert "install it (julialang.org/install)" in reason
    assert reason.endswith('or have pysr do so: python -c "import pysr"')


@pytest.mark.full
@pytest.mark.parametrize(
    ("environment", "state", "said"),
    [
        ({"PYTHON_JULIAPKG_OFFLINE": "yes"}, "absent", "OFFLINE=yes; see symreg/engines/JULIA.md"),
        ({"PYTHON_JULIAPKG_OFFLINE": "1"}, "misconfigured", "OFFLINE must be one of: yes, no"),
        ({"PYTHON_JULIAPKG_EXE": "/bad"}, "misconfigured", "EXE=/bad is not a Julia executable"),
        ({"PYTHON_JULIAPKG_PROJECT": "here"}, "misconfigured", "PROJECT must be an absolute path"),
        ({"PYTHON_JULIACALL_EXE": "/bad"}, "misconfigured", "PYTHON_JULIACALL_PROJECT, or neither"),
        ({"PYTHON_JULIACALL_PROJECT": "/p"}, "misconfigured", "set both PYTHON_JULIACALL_EXE and"),
        (
            {"PYTHON_JULIACALL_EXE": "/bad", "PYTHON_JULIACALL_PROJECT": "/p"},
            "misconfigured",
            "PYTHON_JULIACALL_EXE=/bad is not a Julia executable",
        ),
        ({"PYTHON_JULIACALL_INIT": "no"}, "misconfigured", "INIT=no keeps Julia from starting"),
    ],
)
def test_environments_that_fail(ask, environment, state, said):
    found, reason = ask(**environment)
    assert found == state
    assert said in reason


def test_a_julia_without_the_packages(ask, isolated):
    install_julia(isolated / "bin")
    state, reason = ask()
    assert state == "not resolved"
    assert reason == 'Julia 1.11.2 lacks PySR\'s packages; run: python -c "import pysr"'
    assert "unset PYTHON_JULIAPKG_OFFLINE and run" in ask(PYTHON_JULIAPKG_OFFLINE="yes")[1]
    other = install_julia(isolated, "1.10.9")
    assert "Julia 1.10.9 lacks" in ask(PYTHON_JULIAPKG_EXE=str(other))[1]


def test_a_julia_that_is_too_old_is_no_julia(ask, isolated):
    install_julia(isolated / "bin", "1.6.7")
    state, reason = ask()
    assert state == "absent"
    assert "1.10.3" in reason


@pytest.mark.full
def test_a_resolved_julia_is_ready(ask, isolated):
    """As juliapkg leaves it, with its own writer: what a real ``import pysr`` does at its end."""
    julia = str(install_julia(isolated / "bin"))
    program = f"""
from juliapkg import deps
from juliapkg.state import STATE
files = {{f: {{"timestamp": 0, "hash_sha256": deps._get_hash(f)}} for f in deps.deps_files()}}
deps.save_meta({{"meta_version": deps.META_VERSION, "dev": STATE["dev"], "version": "1.11.2",
    "executable": {julia!r}, "deps_files": files, "pkgs": [], "offline": STATE["offline"],
    "override_executable": STATE["override_executable"]}})
"""
    subprocess.run([sys.executable, "-c", program], check=True)
    assert ask() == ("ready", "Julia 1.11.2")
    install_julia(isolated / "bin", "1.11.3")  # a Julia that has changed since then
    assert ask()[0] == "not resolved"


def test_a_julia_and_a_project_of_ones_own(ask, isolated):
    julia, project = install_julia(isolated), isolated / "project"
    project.mkdir()
    own = {"PYTHON_JULIACALL_EXE": str(julia), "PYTHON_JULIACALL_PROJECT": str(project)}
    assert ask(**own) == (
        "not resolved",
        f"PYTHON_JULIACALL_PROJECT={project} lacks PythonCall; add it",
    )
    (project / "Manifest.toml").write_text("[[deps.PythonCall]]\n[[deps.SymbolicRegression]]\n")
    assert ask(**own) == ("ready", "Julia 1.11.2")


def test_the_probe_imports_nothing_that_starts_julia(isolated):
    child, modules = imported("-c", julia.PROBE.read_text("utf-8"))
    assert child.returncode == 0
    assert "juliapkg" in modules
    assert not {"juliacall", "pysr"} & modules


@pytest.mark.full
def test_the_command_line_answers_without_julia_and_in_one_line(isolated, make):
    points = make(0, n=100)
    path = isolated / "p.csv"
    columns = ("sequence_id", "step", "r", "m1", "m2", "force", "force_predicted")
    rows = [
        (i // 10, i % 10, *inputs, force, force)
        for i, (inputs, force) in enumerate(
            zip(points.X.tolist(), points.newton.tolist(), strict=True)
        )
    ]
    path.write_text("".join(",".join(map(str, row)) + "\n" for row in (columns, *rows)))
    child, modules = imported("-m", "symreg", "fit", str(path), "--engine", "pysr")
    assert "symreg.search.julia" in modules
    assert not {"juliacall", "pysr"} & modules
    assert child.returncode == 2
    assert child.stdout == ""
    (said,) = (x for x in child.stderr.splitlines() if not x.startswith("import time:"))
    assert said.startswith("error: engine pysr is absent: could not find Julia ")
    assert not (isolated / "trace").exists()


@pytest.fixture
def fresh(monkeypatch, tmp_path):
    """Put a program in place of the probe, and forget what was asked before."""
    julia.julia_status.cache_clear()

    def put(program):
        path = tmp_path / "probe.py"
        path.write_text(program)
        monkeypatch.setattr(julia, "PROBE", path)

    yield put
    julia.julia_status.cache_clear()


def test_the_last_line_counts(fresh):
    answer = json.dumps(["ready", "Julia 1.11.2"])
    fresh(f"print('a warning'); print({answer!r})")
    assert julia.julia_status() == julia.Status("ready", "Julia 1.11.2")


@pytest.mark.parametrize("program", ["raise SystemExit(3)", "print('hello')", "print('[1]')", ""])
def test_a_probe_that_fails_is_unknown(fresh, program):
    fresh(program)
    status = julia.julia_status()
    assert status.state == "unknown"
    assert 'python -c "import pysr"' in status.reason


def test_a_probe_that_hangs_is_unknown(fresh):
    fresh("import time; time.sleep(60)")
    status = julia.julia_status(timeout=0.5)
    assert status.state == "unknown"
    assert "0.5 s" in status.reason
