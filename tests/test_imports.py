"""The shape of the house: no circle of imports between modules, and few loose files."""

import subprocess
import sys
from pathlib import Path

import grimp
import numpy as np
import pytest
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

ROOT = Path(__file__).parents[1]
PACKAGES = ("orbits", "attention", "worldmodel", "symreg", "benchmarks", "orrery")
LOOSE = 12
"""Modules that may lie at the top of a package. Orbits, flat on purpose, may have more."""


def circles():
    """Return the modules of each circle of imports, those for type checking included."""
    graph = grimp.build_graph(*PACKAGES)
    modules = sorted(graph.modules)
    number = {module: place for place, module in enumerate(modules)}
    imports = csr_array((len(modules), len(modules)), dtype=np.int8).tolil()
    for module in modules:
        for imported in graph.find_modules_directly_imported_by(module):
            imports[number[module], number[imported]] = 1
    _, component = connected_components(imports, directed=True, connection="strong")
    members = [np.flatnonzero(component == one) for one in range(component.max() + 1)]
    return sorted(tuple(modules[i] for i in each) for each in members if len(each) > 1)


def test_no_modules_import_one_another():
    assert circles() == []


@pytest.mark.parametrize("package", PACKAGES[1:])
def test_few_files_lie_loose(package):
    loose = sorted(path.name for path in (ROOT / package).glob("*.py"))
    assert len(loose) <= LOOSE, loose


REPORTS = """
import sys
from benchmarks.__main__ import packages
from orbits.runs import studies
from orbits.runs.deferred import load

for name in studies.preset_files(packages()):
    study = type(studies.get(packages(), name))
    for part in ("report", "tables", "figures", "sentences"):
        if path := getattr(vars(study).get(part), "path", None):
            load(path)
            assert "torch" not in sys.modules, path
            print(path)
# What the report of a study imports when it is called.
import benchmarks.kepler_or_newton.beside
import benchmarks.kepler_or_newton.exam
assert "torch" not in sys.modules, "kepler_or_newton"
"""


@pytest.mark.full
def test_reports_need_no_torch():
    command = [sys.executable, "-c", REPORTS]
    loaded = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)
    assert loaded.returncode == 0, loaded.stderr
    assert len(loaded.stdout.split()) > 10
