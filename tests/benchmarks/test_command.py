"""What all benchmarks' commands share: how a run ends."""

import argparse

import pytest

from benchmarks import command
from symreg.cells import Cell, Skipped


def ready():
    """Nothing to prepare in a worker."""


def answer(config, folder, needs, progress):
    """Succeed, fail or be out of reach."""
    if config["row"]["model"] == "failing":
        raise ValueError("no such orbit")
    if config["row"]["model"] == "away":
        raise Skipped("no network")
    return {}


def run(out, *models):
    options = argparse.Namespace(resume=True, overwrite=False, reuse="")
    grid = [Cell("answer", {"row": {"model": model}}, label=model) for model in models]
    command.compute(options, out, {"benchmark": "b"}, grid, {"answer": answer}, ready, 1)


def test_a_failed_cell_is_exit_code_1_after_the_summary(tmp_path, capsys):
    run(tmp_path, "well", "away")
    assert "2 cells, 0 failed, 1 skipped" in capsys.readouterr().out
    with pytest.raises(SystemExit) as stopped:
        run(tmp_path, "well", "failing")
    assert stopped.value.code == 1
    said = capsys.readouterr().out
    assert "2 cells, 1 failed: " in said
    assert "failed: {'model': 'failing'}: ValueError: no such orbit" in said
    assert (tmp_path / "results.jsonl").is_file()
