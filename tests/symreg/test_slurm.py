"""Cells through submitit; without Slurm it runs the jobs as processes of this machine."""

import os
import time

import pytest

from symreg import cells, slurm
from symreg.cells import Cell
from tests.waiting import wait_until

submitit = pytest.importorskip("submitit", reason="submitit is not installed")


def ready():
    """Nothing to prepare in a worker."""


def double(config, folder, given, progress):
    """Write a file; what a cell needs is read from its folder."""
    before = sum(int((path / "value").read_text()) for path in given.values())
    (folder / "value").write_text(str(2 * config["value"] + before))
    if config["value"] < 0:
        raise ValueError("negative")
    return {"metrics": {"value": 2 * config["value"] + before}}


def note(config, folder, given, progress):
    """Leave the times of start and end; 9 takes long, and 0 dies beside it as if killed."""
    if config["value"] == 0:
        while not (folder.parent / "9.pid").exists():
            time.sleep(0.05)
        os._exit(9)
    start = time.time()
    (folder.parent / f"{config['value']}.pid").write_text(str(os.getpid()))
    time.sleep(3600 if config["value"] == 9 else 0.3)
    return {"metrics": {"start": start, "end": time.time()}}


@pytest.fixture
def run(tmp_path, monkeypatch):
    monkeypatch.setattr(slurm, "CELLS_PER_JOB", 2)

    def call(wanted, compute=double):
        return cells.run(
            wanted, tmp_path, {"double": compute}, jobs=1, initialise=ready, partition="any"
        )

    return call


def cell(value, needs=None):
    return Cell("double", {"value": value}, needs=needs or {}, label=f"double {value}")


def test_batches_run_needs_come_first_and_failures_stay_as_lines(run):
    first = [cell(1), cell(2), cell(-3)]
    after, never = cell(10, needs={"a": first[0]}), cell(20, needs={"a": first[2]})
    lines = run([*first, after, never])
    assert [line["status"] for line in lines] == ["ok", "ok", "failed", "ok", "failed"]
    assert lines[3]["metrics"]["value"] == 22
    assert "needs double -3" in lines[4]["error"]


def test_without_slurm_it_says_so_and_runs_as_many_jobs_as_there_are_cores(
    run, monkeypatch, capsys
):
    monkeypatch.setattr(slurm, "CELLS_PER_JOB", 1)
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    times = [line["metrics"] for line in run([cell(n) for n in (1, 2, 3)], compute=note)]
    assert times[2]["start"] > max(times[0]["end"], times[1]["end"])
    said = [text for text in capsys.readouterr().err.splitlines() if "--jobs" in text]
    assert said == [
        "submitit runs the cells as processes of this machine, as there is no Slurm; "
        "--jobs does not count"
    ]


@pytest.mark.slow  # submitit waits 15 s for the result of a job that died
def test_a_job_that_died_is_said_and_the_others_are_cancelled(run, monkeypatch, tmp_path):
    monkeypatch.setattr(slurm, "CELLS_PER_JOB", 1)
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    with pytest.raises(RuntimeError, match=r"died .*run the same command again"):
        run([cell(0), cell(9)], compute=note)
    pid = int((tmp_path / "cells" / "9.pid").read_text())
    wait_until(lambda: not os.path.exists(f"/proc/{pid}"), "the other job ends")
