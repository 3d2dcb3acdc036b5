"""The notebooks: they run from the first cell to the last, and are kept without outputs."""

import ast
import json
import sys
import tempfile
from pathlib import Path

import matplotlib
import pytest

ROOT = Path(__file__).parents[2]
NOTEBOOKS = sorted((ROOT / "benchmarks" / "notebooks").glob("*.ipynb"))


def run(path):
    """Run the cells as Jupyter would; they hold Python alone, so that no kernel is needed."""
    names = {"__name__": "__main__"}
    for number, cell in enumerate(json.loads(path.read_text("utf-8"))["cells"]):
        if cell["cell_type"] == "code":
            tree = ast.parse("".join(cell["source"]))
            for statement in tree.body:
                shown = ast.Interactive([statement]) if statement is tree.body[-1] else None
                mode = "single" if shown else "exec"
                code = compile(shown or ast.Module([statement], []), f"cell {number}", mode)
                exec(code, names)


def show(value):
    """Show the value of a cell's last line as a notebook does."""
    if value is not None:
        print(value._repr_html_() if hasattr(value, "_repr_html_") else repr(value))


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
def test_they_run_and_write_nothing_beside_them(path, tmp_path, monkeypatch, capsys):
    beside, made = tmp_path / "beside", tmp_path / "made"
    beside.mkdir()
    made.mkdir()
    monkeypatch.chdir(beside)
    monkeypatch.setattr(tempfile, "tempdir", str(made))
    monkeypatch.setattr(sys, "displayhook", show)
    matplotlib.use("agg")
    run(path)
    assert list(beside.iterdir()) == []
    assert "<table>" in capsys.readouterr().out
