"""The notebooks: they run from the first cell to the last, and are kept without outputs."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
NOTEBOOKS = sorted((ROOT / "benchmarks" / "notebooks").glob("*.ipynb"))

RUN = """
import ast, json, sys
import matplotlib
matplotlib.use("agg")
def show(value):
    if value is not None:
        print(value._repr_html_() if hasattr(value, "_repr_html_") else repr(value))
sys.displayhook = show  # as a notebook shows the value of a cell's last line
names = {"__name__": "__main__"}
for number, cell in enumerate(json.load(open(sys.argv[1], encoding="utf-8"))["cells"]):
    if cell["cell_type"] == "code":
        tree = ast.parse("".join(cell["source"]))
        for statement in tree.body:
            shown = ast.Interactive([statement]) if statement is tree.body[-1] else None
            mode = "single" if shown else "exec"
            code = compile(shown or ast.Module([statement], []), f"cell {number}", mode)
            exec(code, names)
"""
"""What Jupyter would do; its cells hold Python alone, so no kernel is needed."""


def test_all_three_are_there():
    assert len(NOTEBOOKS) == 3


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_they_are_kept_without_outputs(path):
    book = json.loads(path.read_text("utf-8"))
    assert (book["nbformat"], book["nbformat_minor"]) == (4, 5)
    code = [cell for cell in book["cells"] if cell["cell_type"] == "code"]
    assert all((cell["outputs"], cell["execution_count"]) == ([], None) for cell in code)
    assert len({cell["id"] for cell in book["cells"]}) == len(book["cells"])


@pytest.mark.full
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_they_run_and_write_nothing_beside_them(path, tmp_path):
    ran = subprocess.run(
        [sys.executable, "-c", RUN, str(path)], cwd=tmp_path, capture_output=True, text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT), "TMPDIR": str(tmp_path / "..")},
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    assert list(tmp_path.iterdir()) == []
    assert "<table>" in ran.stdout
