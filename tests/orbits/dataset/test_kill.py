"""What is on disk when ``generate`` is killed, runs out of disk, or does not run alone."""

import functools
import json
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from orbits.dataset import OrbitDataset, read_index, verify
from orbits.runs import artefact
from tests.waiting import wait_until

pytestmark = pytest.mark.full  # every test starts programs
ROOT = Path(__file__).parents[3]
SMALL = ("--population", "pretrain", "--n", "140", "--n-val", "3", "--n-test", "3")
SMALL += ("--n-points", "6", "--shard-size", "2")
N_SHARDS = 74
HANG = 600
"""Seconds after which a program is taken to hang, however busy the machine."""
FIRST_SHARD = "train/tokens/00000.npy"


def start(folder, *more, sizes=SMALL, **how):
    return subprocess.Popen(
        [sys.executable, "-m", "orbits", "generate", *sizes, "--out", str(folder), *more],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        **how,
    )


def finish(folder, *more, sizes=SMALL):
    process = start(folder, *more, sizes=sizes)
    _, error = process.communicate(timeout=HANG)
    assert process.returncode == 0, error
    return read_index(folder)["dataset_sha256"]


def content(folder):
    return {p.relative_to(folder).as_posix(): p.read_bytes() for p in folder.rglob("*.npy")}


def leftovers(folder):
    return [path.name for path in folder.rglob(".*") if path.stat().st_size]


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    folder = tmp_path_factory.mktemp("whole") / "data"
    finish(folder)
    return folder


def kill_at_random(folder, delays, *more):
    """Start a run and kill it a random time after it began to write; tell whether it was alive."""
    before = last_write(folder)
    process = start(folder, *more)
    while process.poll() is None and last_write(folder) == before:
        time.sleep(0.002)
    time.sleep(delays.uniform(0, 0.1))
    process.send_signal(signal.SIGKILL)
    _, error = process.communicate()
    assert process.returncode in (0, -signal.SIGKILL), error
    return process.returncode == -signal.SIGKILL


def last_write(folder):
    return [path.stat().st_mtime_ns for path in (folder, folder / "train/tokens") if path.exists()]


def assert_nothing_half_written_counts(folder, truth):
    """Compare what readers would accept with an uninterrupted run; return how much that is."""
    if (folder / "dataset.json").exists():
        assert verify(folder, progress=False) == []
    else:
        with pytest.raises(FileNotFoundError, match=r"dataset\.json"):
            OrbitDataset(folder)
    accepted = [name for name in truth if artefact.is_intact(folder / name)]
    for name in accepted:
        assert (folder / name).read_bytes() == truth[name]
    for path in folder.rglob("*.json"):
        artefact.load_record(path)  # refuses a record that was half written
    return len(accepted)


def killed_again_and_again(folder, whole, n_kills, *more):
    delays, truth = random.Random(0), content(whole)
    kills, progress = 0, [0]
    while kills < n_kills or len(set(progress)) < 3:  # at different points of the work
        kills += kill_at_random(folder, delays, *more)
        progress.append(assert_nothing_half_written_counts(folder, truth))
        if (folder / "dataset.json").exists():  # too fast for the killer: again from nothing
            shutil.rmtree(folder)
    assert finish(folder, *more) == read_index(whole)["dataset_sha256"]
    assert content(folder) == truth
    assert leftovers(folder) == []


def test_killed_three_times(tmp_path, whole):
    killed_again_and_again(tmp_path, whole, 3)


@pytest.mark.full
def test_killed_ten_times_with_two_workers(tmp_path, whole):
    killed_again_and_again(tmp_path, whole, 10, "--workers", "2")


def test_a_disk_that_fills_up(tmp_path):
    """Writes beyond a limit fail as on a full disk; with room the run goes on."""
    sizes = ("--n", "40", "--n-val", "1", "--n-test", "1", "--n-points", "200")
    whole, folder = tmp_path / "whole", tmp_path / "data"
    expected = finish(whole, sizes=sizes)
    limit = (whole / "train/state/00000.npy").stat().st_size - 1
    process = start(
        folder,
        sizes=sizes,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)),
    )
    output, error = process.communicate(timeout=HANG)
    assert process.returncode == 2
    assert output == ""
    assert "Traceback" not in error
    message = error.splitlines()[-1]
    assert message.startswith("error: ")
    assert "File too large" in message
    assert "train/state/00000.npy" in message
    assert leftovers(folder) == []
    assert not (folder / "train/state/00000.npy").exists()
    assert assert_nothing_half_written_counts(folder, content(whole)) == 2  # tokens and force
    assert finish(folder, sizes=sizes) == expected


def test_two_runs_at_once_make_one_dataset(tmp_path, whole):
    runs = [start(tmp_path) for _ in range(2)]
    errors = [run.communicate(timeout=HANG)[1] for run in runs]
    assert [run.returncode for run in runs] == [0, 0], errors
    assert verify(tmp_path, progress=False) == []
    assert content(tmp_path) == content(whole)
    assert leftovers(tmp_path) == []


def test_pieces_at_once_make_one_dataset(tmp_path, whole):
    pieces = ("0:30", "30:50", f"50:{N_SHARDS}")
    runs = [start(tmp_path, "--shards", piece) for piece in pieces]
    for run in runs:
        _, error = run.communicate(timeout=HANG)
        assert run.returncode == 0, error
    assert read_index(tmp_path)["dataset_sha256"] == read_index(whole)["dataset_sha256"]


def test_of_two_different_runs_at_once_one_is_refused(tmp_path, whole):
    runs = [start(tmp_path, "--seed", seed) for seed in "01"]
    errors = [run.communicate(timeout=HANG)[1] for run in runs]
    assert sorted(run.returncode for run in runs) == [0, 2], errors
    winner, loser = sorted(range(2), key=lambda k: runs[k].returncode)
    assert "another dataset" in errors[loser].splitlines()[-1]
    assert json.loads((tmp_path / "config.json").read_text())["config"]["seed"] == winner
    assert verify(tmp_path, progress=False) == []
    assert (content(tmp_path) == content(whole)) == (winner == 0)


def test_workers_end_with_a_run_that_is_killed(tmp_path):
    script = (
        "import operator, os, time\n"
        "from pathlib import Path\n"
        "from orbits.runs.executors import Execution, unordered\n"
        "if __name__ == '__main__':\n"
        "    with Execution('processes', 2).start(Path('data')) as executor:\n"
        "        work = unordered(executor, operator.call, [os.getpid] * 20)\n"
        "        print(*set(work), flush=True)\n"
        "        time.sleep(3600)\n"
    )
    (tmp_path / "script.py").write_text(script)
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    run = subprocess.Popen(
        [sys.executable, str(tmp_path / "script.py")],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,  # semaphores that a killed process leaves
        env=environment,
    )
    workers = run.stdout.readline().split()
    assert workers
    assert all(map(is_running, workers))
    run.kill()
    run.wait()
    wait_until(lambda: not any(map(is_running, workers)), "the workers end")


@pytest.mark.parametrize("early", [True, False], ids=["as a worker starts", "at work"])
def test_an_interrupt_stops_without_a_traceback(tmp_path, early):
    # So many shards that a test that is kept waiting still comes in time.
    many = ("--shard-size", "1", "--n", "5000", "--workers", "2")
    # A shell that runs the tests in the background lets what it starts ignore Ctrl-C.
    heeded = functools.partial(signal.signal, signal.SIGINT, signal.SIG_DFL)
    run = start(tmp_path, *many, start_new_session=True, preexec_fn=heeded)
    first_shard = tmp_path / FIRST_SHARD
    begun = functools.partial(is_importing, run.pid) if early else first_shard.exists
    while not begun():
        time.sleep(0.002)
    os.killpg(run.pid, signal.SIGINT)  # as Ctrl-C does: to the workers too
    _, error = run.communicate(timeout=HANG)
    assert run.returncode == 130, error
    assert "Traceback" not in error
    assert error.splitlines()[-1] == "stopped; run the same command again to resume"
    assert leftovers(tmp_path) == []
    assert not (tmp_path / "dataset.json").exists()


def is_importing(pid):
    """Tell whether a worker of a run has begun to import numpy."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return any("numpy" in Path(f"/proc/{child}/maps").read_text() for child in children)


def is_running(pid):
    try:
        state = Path(f"/proc/{int(pid)}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"
