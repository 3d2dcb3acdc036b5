"""Probe for the Julia of pysr; prints its state as JSON, without starting or downloading it.

A program: ``julia.py`` runs it in a child process, because it changes juliapkg's global state.
It imports neither pysr nor juliacall, and creates no file. ``can_skip_resolve`` and
``find_requirements`` are not public functions of juliapkg: whatever they raise is an answer too.
"""

import contextlib
import json
import os
import sys
from pathlib import Path
from types import ModuleType

RESOLVE = 'python -c "import pysr"'
DOWNLOADS = "julialang.org/install"
DOCUMENT = "symreg/engines/JULIA.md"


def judge() -> tuple[str, str]:
    """Return the state of an engine and its reason; see ``symreg.engines.Status``."""
    init = os.environ.get("PYTHON_JULIACALL_INIT", "yes")
    if init != "yes":
        return "misconfigured", f"PYTHON_JULIACALL_INIT={init} keeps Julia from starting; unset it"
    executable = os.environ.get("PYTHON_JULIACALL_EXE")
    project = os.environ.get("PYTHON_JULIACALL_PROJECT")
    if (executable is None) != (project is None):
        both = "PYTHON_JULIACALL_EXE and PYTHON_JULIACALL_PROJECT"
        return "misconfigured", f"set both {both}, or neither"
    try:
        from juliapkg import deps, find_julia, state
    except Exception as error:  # juliapkg is no dependency, and reads its settings on import
        return "misconfigured", str(error)
    if executable is not None and project is not None:
        return _own_project(find_julia, executable, Path(project))
    return _managed_project(deps, find_julia, state.STATE)


def _own_project(finder: ModuleType, executable: str, project: Path) -> tuple[str, str]:
    """Judge a Julia and a project that the user has set, which juliapkg does not touch."""
    version = finder.julia_version(executable)
    if version is None:
        return "misconfigured", f"PYTHON_JULIACALL_EXE={executable} is not a Julia executable"
    manifests = [path.read_text() for path in sorted(project.glob("*Manifest*.toml"))]
    for package in ("PythonCall", "SymbolicRegression"):
        if not any(f"[[deps.{package}]]" in text for text in manifests):
            return "not resolved", f"PYTHON_JULIACALL_PROJECT={project} lacks {package}; add it"
    return "ready", f"Julia {version}"


def _managed_project(deps: ModuleType, finder: ModuleType, settings: dict) -> tuple[str, str]:
    """Judge the Julia and the project that juliapkg looks after."""
    resolved = deps.can_skip_resolve()
    if resolved:
        return "ready", f"Julia {resolved['version']}"
    override = settings["override_executable"]
    if override and finder.julia_version(override) is None:
        return "misconfigured", f"PYTHON_JULIAPKG_EXE={override} is not a Julia executable"
    offline = settings["offline"]
    settings["offline"] = True  # forbids a download
    compatible, _ = deps.find_requirements()
    try:
        _, version = finder.find_julia(compat=compatible, prefix=settings["install"])
    except Exception as error:  # "could not find Julia 1.10.3 - 1.11", as a rule
        if offline:
            return "absent", f"{error}, and PYTHON_JULIAPKG_OFFLINE=yes; see {DOCUMENT}"
        return "absent", f"{error}; install it ({DOWNLOADS}), or have pysr do so: {RESOLVE}"
    online = "unset PYTHON_JULIAPKG_OFFLINE and " if offline else ""
    return "not resolved", f"Julia {version} lacks PySR's packages; {online}run: {RESOLVE}"


if __name__ == "__main__":
    with contextlib.redirect_stdout(sys.stderr):  # juliapkg prints what it does
        answer = judge()
    print(json.dumps(answer))
