import operator
import os
import signal
import sys
import threading
import time

import pytest

from orbits import cluster, protocols
from orbits.dataset import read_index
from orbits.generate import generate

SMALL = protocols.get("identifiable", {"n_points": 6})
COUNTS = {"train": 120}


def make(folder, **how):
    generate(folder, SMALL, COUNTS, sequences_per_shard=2, progress=False, **how)
    return read_index(folder)["dataset_sha256"]


@pytest.mark.parametrize("workers", [1, 2])
def test_every_item_is_run_once(workers):
    with cluster.engine(workers) as run:
        assert sorted(run(operator.neg, range(50))) == list(range(-49, 1))


def test_the_first_error_ends_the_run():
    with pytest.raises(ZeroDivisionError), cluster.engine(2) as run:
        list(run((1).__truediv__, [1, 0, *range(2, 50)]))


def test_a_worker_that_dies_is_an_error_and_not_a_hang():
    with pytest.raises(ChildProcessError, match="died"), cluster.engine(2) as run:
        list(run(os._exit, [7]))


def test_dask_that_is_not_installed_is_one_line(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(ValueError, match=r"Dask is not installed; pip install .*cluster"):
        make(tmp_path / "data", dask="local")
    assert not (tmp_path / "data").exists()


def test_dask_that_cannot_be_reached_writes_nothing(tmp_path):
    pytest.importorskip("distributed")
    with pytest.raises(ValueError, match="unknown address scheme"):
        make(tmp_path / "data", dask="nowhere://1")
    assert not (tmp_path / "data").exists()


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
        assert make(folder, dask=workers.scheduler_address) == expected
        killer.join()
    assert killed_at[0] < 60


@pytest.mark.slow
def test_a_local_dask_cluster_makes_the_same_dataset(tmp_path):
    pytest.importorskip("distributed")
    assert make(tmp_path / "dask", dask="local", workers=2) == make(tmp_path / "plain")
