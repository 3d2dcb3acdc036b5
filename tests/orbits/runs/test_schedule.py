"""Running cells: order, resume, failures and killed workers, alike with every executor."""

import os
import signal
import threading
import time
from types import SimpleNamespace

import pytest

from orbits.runs import cell as cell_module
from orbits.runs import executors
from orbits.runs.cell import Cell, progress_file
from orbits.runs.executors import Execution, WorkerLost
from orbits.runs.result import Case
from orbits.runs.schedule import KILLED, LATE, _Bars, run
from tests.orbits.runs import cells
from tests.orbits.runs.cells import calls, cell

EXECUTORS = [
    "here",
    "processes",
    pytest.param("slurm", marks=pytest.mark.full),
    pytest.param("dask", marks=pytest.mark.full),
]


def execution(name: str) -> Execution:
    if name in ("slurm", "dask"):
        pytest.importorskip({"slurm": "submitit", "dask": "distributed"}[name])
    return Execution(name, workers=2)


def status(results):
    return [result.status for result in results]


@pytest.fixture
def on_one_disk(monkeypatch):
    """Let submitit wait a second for a lost job's result, which a shared disk may show later."""
    monkeypatch.setattr("submitit.core.core.Job._results_timeout_s", 1)


@pytest.mark.parametrize("name", EXECUTORS)
def test_needs_come_first_order_is_kept_and_failures_stay(tmp_path, name):
    a, b = cell(tmp_path, "a", value=1), cell(tmp_path, "b", value=10)
    c = cell(tmp_path, "c", needs={"left": a, "right": b}, value=100)
    bad = cell(tmp_path, "x", cells.fail)
    after = cell(tmp_path, "y", needs={"left": bad})
    wanted, out = [a, c, bad, after, b], tmp_path / "out"
    results = run(wanted, out, execution(name), cells.prepare)
    assert status(results) == ["ok", "ok", "failed", "failed", "ok"]
    assert [x.value("value") for x in results] == [1, 111, None, None, 10]
    assert results[2].error == "ValueError: no such orbit"
    assert results[3].error == "needs sum, x, which has no result"
    (tmp_path / "log.mended").touch()
    d = cell(tmp_path, "d", needs={"left": c})
    results = run([*wanted, d], out, execution(name), cells.prepare)
    assert status(results) == ["ok"] * 6
    assert calls(tmp_path) == "abcdxy", "done cells are skipped, failed ones are tried again"


@pytest.mark.full
@pytest.mark.parametrize("name", EXECUTORS[1:])
@pytest.mark.usefixtures("on_one_disk")
def test_a_cell_that_kills_its_worker_fails_and_the_others_go_on(tmp_path, name):
    bad, good = cell(tmp_path, "x", cells.die), [cell(tmp_path, name) for name in "abc"]
    after, once = cell(tmp_path, "y", needs={"left": bad}), cell(tmp_path, "o", cells.die_once)
    wanted, out = [good[0], bad, *good[1:], after, once], tmp_path / "out"
    results = run(wanted, out, execution(name), cells.prepare)
    assert status(results) == ["ok", "failed", "ok", "ok", "failed", "ok"]
    assert results[1].error.startswith(f"{KILLED}: "), "and what the executor knows of it"
    assert "needs sum, x" in results[4].error
    (tmp_path / "log.mended").touch()
    assert status(run(wanted, out, execution(name), cells.prepare)) == ["ok"] * 6


@pytest.mark.full
def test_workers_of_dask_that_died_while_they_started_are_replaced(tmp_path):
    with execution("dask").start(tmp_path) as executor:
        doomed = [executor.submit(os._exit, 3) for _ in range(8)]  # as soon as a worker is there
        waiting = executor.submit(len, "four")
        for future in doomed:
            with pytest.raises(WorkerLost):
                future.result(timeout=240)
        try:
            assert waiting.result(timeout=240) == 4
        except WorkerLost:  # it was beside the others; a schedule sends it again
            assert executor.submit(len, "four").result(timeout=240) == 4


def _closing():
    raise RuntimeError("cannot schedule new futures after shutdown")


@pytest.mark.full
def test_work_that_reaches_a_closing_worker_of_dask_has_not_failed(tmp_path):
    with execution("dask").start(tmp_path) as executor, pytest.raises(WorkerLost, match="closing"):
        executor.submit(_closing).result(timeout=240)


@pytest.mark.parametrize("name", ["here", "processes"])
def test_a_worker_that_cannot_start_is_no_failed_cell(tmp_path, name):
    with pytest.raises(ImportError, match="no such library"):
        run([cell(tmp_path, "a")], tmp_path, execution(name), cells.unprepared)


def test_a_need_that_is_not_in_the_run_is_refused(tmp_path):
    with pytest.raises(ValueError, match="left"):
        run(
            [cell(tmp_path, "b", needs={"left": cell(tmp_path, "a")})],
            tmp_path / "out",
            Execution("here"),
            None,
        )


def test_an_unfinished_or_damaged_cell_is_made_again(tmp_path):
    wanted, out = [cell(tmp_path, name) for name in "ab"], tmp_path / "out"
    run(wanted, out, Execution("here"), None)
    record = wanted[0].folder(out) / cell_module.RECORD
    record.write_text(record.read_text().replace('"value": 1', '"value": 2'))
    (wanted[1].folder(out) / cell_module.RECORD).unlink()
    results = run(wanted, out, Execution("here"), None)
    assert [x.value("value") for x in results] == [1, 1]
    assert calls(tmp_path) == "aabb"
    (wanted[0].folder(out) / "value").write_text("7")
    run(wanted, out, Execution("here"), None)
    assert calls(tmp_path) == "aaabb", "a cell is done only with its files intact"


def test_a_cell_out_of_reach_is_skipped_and_tried_again(tmp_path):
    away = cell(tmp_path, "a", cells.skip_once)
    after, out = cell(tmp_path, "b", needs={"left": away}), tmp_path / "out"
    first, second = run([away, after], out, Execution("here"), None)
    assert (first.status, first.error, first.metrics) == ("skipped", "no network", {})
    assert (second.status, second.error) == ("failed", "needs sum, a, which has no result")
    assert not (away.folder(out) / "error.txt").exists()
    assert status(run([away, after], out, Execution("here"), None)) == ["ok", "ok"]


@pytest.mark.parametrize("name", ["here", pytest.param("processes", marks=pytest.mark.full)])
def test_nothing_starts_after_the_last_minute_and_the_next_run_goes_on(tmp_path, name):
    slow = cell(tmp_path, "a", cells.slowly)
    wanted, out = [slow, cell(tmp_path, "b"), cell(tmp_path, "c", needs={"left": slow})], tmp_path
    results = run(wanted, out, Execution(name, workers=1, minutes=0.3 / 60), None)
    assert status(results) == ["ok", "skipped", "skipped"]
    assert results[1].error == LATE
    assert status(run(wanted, out, Execution(name, workers=1), None)) == ["ok"] * 3
    assert calls(tmp_path) == "abc"


@pytest.mark.full
@pytest.mark.usefixtures("on_one_disk")
def test_a_slurm_batch_keeps_the_cells_that_were_done_before_its_job_died(tmp_path, monkeypatch):
    """Without Slurm, submitit runs the jobs as processes of this machine."""
    pytest.importorskip("submitit")
    monkeypatch.setattr(executors, "SLURM_BATCH", 3)
    wanted = [cell(tmp_path, "a"), cell(tmp_path, "o", cells.die_once), cell(tmp_path, "b")]
    results = run(wanted, tmp_path / "out", Execution("slurm"), cells.prepare)
    assert status(results) == ["ok"] * 3
    assert calls(tmp_path) == "abo", "no cell is computed twice"


@pytest.mark.full
def test_a_dask_worker_that_is_killed_from_outside_loses_nothing(tmp_path):
    distributed = pytest.importorskip("distributed")
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, dashboard_address=None, silence_logs=50
    ) as cluster, distributed.Client(cluster) as client:  # fmt: skip
        victim = next(iter(client.run(os.getpid).values()))
        os.kill(victim, signal.SIGSTOP)  # it holds work until it is killed
        wanted = [cell(tmp_path, name, cells.slowly) for name in "abcdef"]
        address = cluster.scheduler_address
        threading.Timer(2, os.kill, (victim, signal.SIGKILL)).start()
        results = run(wanted, tmp_path / "out", Execution("dask", scheduler=address), None)
    assert status(results) == ["ok"] * 6
    assert calls(tmp_path) == "abcdef"


def test_every_item_is_mapped_once(tmp_path):
    with Execution("processes", workers=2).start(tmp_path) as executor:
        assert sorted(executors.unordered(executor, abs, range(-50, 0))) == list(range(1, 51))


@pytest.mark.full
def test_work_of_dask_whose_result_and_worker_are_lost_again_and_again_fails(tmp_path):
    pytest.importorskip("distributed")
    with Execution("dask", workers=1).start(tmp_path) as executor:
        lost = executor.submit(cells.lose, str(tmp_path / "mark"))
        with pytest.raises(WorkerLost):
            lost.result(timeout=240)


def test_the_first_error_ends_a_map(tmp_path):
    with (
        pytest.raises(ZeroDivisionError),
        Execution("processes", workers=2).start(tmp_path) as executor,
    ):
        list(executors.unordered(executor, (1).__truediv__, [1, 0, *range(2, 50)]))


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"executor": "cloud"}, r"--executor must be processes \| here \| slurm \| dask"),
        ({"workers": 0}, "--workers must be at least 1, got 0"),
        ({"minutes": 0}, "--minutes must be positive, got 0"),
        ({"partition": "gpu"}, "--partition goes with --executor slurm only"),
        ({"scheduler": "tcp://x:1"}, "--scheduler goes with --executor dask only"),
    ],
)
def test_where_cells_cannot_run_is_one_line(wrong, message):
    with pytest.raises(ValueError, match=message):
        Execution(**wrong)


def test_a_cell_costs_little(tmp_path):
    """The bound is on processor time and generous: about 2 ms are measured."""
    wanted = [Cell(cells.quick, Case("sums", "sum", setting={"n": n})) for n in range(40)]
    start = time.process_time()
    run(wanted, tmp_path, Execution("here"), None)
    assert time.process_time() - start < 40 * 0.1


def test_a_bar_of_a_long_label_has_room_for_how_far_it_is(tmp_path):
    cell = SimpleNamespace(key="0" * 16, label="rollout, " + "size n_layer 2, " * 20)
    file = progress_file(tmp_path, cell.key)
    file.parent.mkdir(parents=True)
    file.write_text("3 60")
    with _Bars(1, 0) as bars:
        bars.show([cell], tmp_path)
        assert bars.running[cell.key].n == 3
        assert len(bars.running[cell.key].desc) < 64
        assert bars.running[cell.key].desc.endswith(" ...")
