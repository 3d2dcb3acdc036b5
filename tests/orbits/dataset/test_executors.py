"""Datasets made through other executors: the same bytes, whatever becomes of a worker."""

import os
import signal
import sys
import threading
import time

import pytest

from orbits import protocols
from orbits.dataset import generate, read_index, write
from orbits.runs.executors import Execution

SMALL = protocols.get("identifiable", {"n_points": 6})
COUNTS = {"train": 120}


def make(folder, **how):
    generate(folder, SMALL, COUNTS, sequences_per_shard=2, progress=False, **how)
    return read_index(folder)["dataset_sha256"]


def dask(scheduler=None, workers=None):
    return Execution("dask", workers, scheduler=scheduler)


def vanish(*_):
    os._exit(7)


@pytest.mark.full
def test_a_worker_that_dies_is_an_error_and_not_a_hang(tmp_path, monkeypatch):
    monkeypatch.setattr(write, "make", vanish)
    with pytest.raises(ChildProcessError, match="died"):
        make(tmp_path / "data", execution=Execution("processes", 2))


def test_dask_that_is_not_installed_is_one_line(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(ValueError, match=r"Dask is not installed; pip install .*cluster"):
        make(tmp_path / "data", execution=dask())
    assert not (tmp_path / "data").exists()


@pytest.mark.full
def test_dask_with_a_worker_killed_makes_the_same_dataset(tmp_path):
    distributed = pytest.importorskip("distributed")
    expected = make(tmp_path / "plain")
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, dashboard_address=None, silence_logs=50
    ) as workers, distributed.Client(workers) as client:  # fmt: skip
        victim = next(iter(client.run(os.getpid).values()))
        os.kill(victim, signal.SIGSTOP)  # so that its shards wait until it is killed
        folder, killed_at = tmp_path / "data", []

        def kill():
            while not (folder / "train/tokens/00004.npy").exists():
                time.sleep(0.001)
            os.kill(victim, signal.SIGKILL)
            killed_at.append(len(list(folder.glob("train/tokens/*.npy"))))

        killer = threading.Thread(target=kill)
        killer.start()
        assert make(folder, execution=dask(workers.scheduler_address)) == expected
        killer.join()
    assert killed_at[0] < 60


@pytest.mark.full
def test_a_local_dask_cluster_makes_the_same_dataset(tmp_path):
    pytest.importorskip("distributed")
    assert make(tmp_path / "dask", execution=dask(workers=2)) == make(tmp_path / "plain")
