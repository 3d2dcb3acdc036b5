"""Cells: content addresses, resume, failures, and the folder that holds them."""

import dataclasses
import errno
import fcntl
import multiprocessing
import os
import time

import pytest

from orbits import artefacts
from symreg import cells, results
from symreg.cells import Cell


def ready():
    """Nothing to prepare in a worker."""


def count(config, folder, needs, progress):
    """Write a file and leave a mark outside for every call."""
    with open(config["log"], "a") as log:
        log.write(config["name"])
    total = config["value"] + sum(int((f / "value").read_text()) for f in needs.values())
    (folder / "value").write_text(str(total))
    progress(1, 1)
    return {"metrics": {"value": total}}


def fail(config, folder, needs, progress):
    """Fail as long as the file is not there."""
    if not os.path.exists(config["log"] + ".mended"):
        raise ValueError("no such orbit")
    return count(config, folder, needs, progress)


def die(config, folder, needs, progress):
    """Vanish like a process that the kernel killed, as long as the file is not there."""
    if not os.path.exists(config["log"] + ".mended"):
        os._exit(9)
    return count(config, folder, needs, progress)


def skip_once(config, folder, needs, progress):
    """Be out of reach the first time."""
    try:
        open(config["log"] + ".skipped", "x").close()
    except FileExistsError:
        return count(config, folder, needs, progress)
    raise cells.Skipped("no network")


def die_once(config, folder, needs, progress):
    """Vanish the first time."""
    try:
        open(config["log"] + ".died", "x").close()
    except FileExistsError:
        return count(config, folder, needs, progress)
    os._exit(9)


COMPUTE = {"count": count, "fail": fail, "die": die, "die_once": die_once, "skip": skip_once}


def run(wanted, out, jobs=2):
    return cells.run(wanted, out, COMPUTE, jobs=jobs, initialise=ready)


def cell(tmp_path, name, kind="count", needs=None, value=1):
    config = {"log": str(tmp_path / "log"), "name": name, "value": value}
    return Cell(kind, config, needs=needs or {}, label=name)


def calls(tmp_path):
    return "".join(sorted((tmp_path / "log").read_text()))


def test_what_cannot_be_reached_is_skipped_and_tried_again(tmp_path):
    away = cell(tmp_path, "a", "skip")
    after = cell(tmp_path, "b", needs={"left": away})
    first, second = run([away, after], tmp_path / "out")
    assert (first["status"], first["error"], first["metrics"]) == ("skipped", "no network", {})
    assert (second["status"], second["error"]) == ("failed", "needs a, which has no result")
    assert not (away.folder(tmp_path / "out") / "error.txt").exists()
    assert [line["status"] for line in run([away, after], tmp_path / "out")] == ["ok", "ok"]


def test_needs_come_first_lines_keep_order_and_done_cells_are_skipped(tmp_path):
    a, b = cell(tmp_path, "a", value=1), cell(tmp_path, "b", value=10)
    c = cell(tmp_path, "c", needs={"left": a, "right": b}, value=100)
    lines = run([a, b, c], tmp_path / "out")
    assert [line["metrics"]["value"] for line in lines] == [1, 10, 111]
    assert all(line["status"] == "ok" and line["cell"] for line in lines)
    d = cell(tmp_path, "d", needs={"left": c})
    assert run([a, b, c, d], tmp_path / "out")[:3] == lines
    assert calls(tmp_path) == "abcd"


def test_an_unfinished_or_damaged_cell_is_made_again(tmp_path):
    wanted = [cell(tmp_path, name) for name in "ab"]
    run(wanted, tmp_path / "out")
    record = wanted[0].folder(tmp_path / "out") / cells.RECORD
    record.write_text(record.read_text().replace('"value": 1', '"value": 2'))
    (wanted[1].folder(tmp_path / "out") / cells.RECORD).unlink()
    lines = run(wanted, tmp_path / "out")
    assert [line["metrics"]["value"] for line in lines] == [1, 1]
    assert calls(tmp_path) == "aabb"
    (wanted[0].folder(tmp_path / "out") / "value").write_text("7")
    run(wanted, tmp_path / "out")
    assert calls(tmp_path) == "aaabb", "a cell is done only with its files intact"


def test_a_need_that_is_not_in_the_run_is_refused(tmp_path):
    a = cell(tmp_path, "a")
    with pytest.raises(ValueError, match="input"):
        run([cell(tmp_path, "b", needs={"input": a})], tmp_path / "out")


def test_a_failed_cell_stays_as_a_line_and_stops_what_needs_it_alone(tmp_path):
    bad = cell(tmp_path, "x", kind="fail")
    after, other = cell(tmp_path, "y", needs={"input": bad}), cell(tmp_path, "z")
    lines = run([bad, after, other], tmp_path / "out")
    assert [line["status"] for line in lines] == ["failed", "failed", "ok"]
    assert lines[0]["error"] == "ValueError: no such orbit"
    assert "needs x" in lines[1]["error"]
    (tmp_path / "log.mended").touch()
    lines = run([bad, after, other], tmp_path / "out")
    assert [line["status"] for line in lines] == ["ok"] * 3
    assert calls(tmp_path) == "xyz"


def test_a_cell_that_kills_its_worker_fails_and_the_others_go_on(tmp_path):
    """Some cell is beside it when the pool breaks, and must not be blamed."""
    bad = cell(tmp_path, "x", kind="die")
    good = [cell(tmp_path, name) for name in "abc"]
    after = cell(tmp_path, "y", needs={"input": bad})
    lines = run([good[0], bad, *good[1:], after], tmp_path / "out")
    assert [line["status"] for line in lines] == ["ok", "failed", "ok", "ok", "failed"]
    assert lines[1]["error"] == "the worker process was killed (out of memory?)"
    assert "needs x" in lines[4]["error"]
    (tmp_path / "log.mended").touch()
    lines = run([good[0], bad, *good[1:], after], tmp_path / "out")
    assert [line["status"] for line in lines] == ["ok"] * 5, "a failed cell is tried again"


def test_a_worker_that_is_killed_once_costs_nothing(tmp_path):
    lines = run([cell(tmp_path, "x", kind="die_once"), cell(tmp_path, "a")], tmp_path / "out")
    assert [line["status"] for line in lines] == ["ok", "ok"]


def unprepared():
    """Stop a worker before its first cell."""
    raise ImportError("no such library")


def test_a_worker_that_cannot_start_is_no_killed_cell(tmp_path):
    with pytest.raises(ImportError, match="no such library"):
        cells.run([cell(tmp_path, "a")], tmp_path, COMPUTE, jobs=1, initialise=unprepared)


def slowly(config, folder, needs, progress):
    """Write the file in two steps, as another writer of the same folder would notice."""
    time.sleep(0.3)
    (folder / "half").touch()
    time.sleep(0.3)
    assert (folder / "half").exists()
    return count(config, folder, needs, progress)


def compute(one, out):
    cells.compute_cell(slowly, one, out, lambda step, total: None)


def test_two_processes_at_one_cell_do_it_once_and_at_two_cells_do_not_wait(tmp_path):
    """A job may outlive the run that submitted it, and meet the run that resumes."""
    a, b = cell(tmp_path, "a"), cell(tmp_path, "b")
    processes = [
        multiprocessing.get_context("fork").Process(target=compute, args=(one, tmp_path))
        for one in (a, a, b)
    ]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    assert [process.exitcode for process in processes] == [0, 0, 0]
    assert a.record(tmp_path)["line"]["metrics"] == {"value": 1}
    assert calls(tmp_path) == "ab"


def test_a_cell_waits_for_another_one_only_if_it_is_the_same(tmp_path):
    a, b = cell(tmp_path, "a"), cell(tmp_path, "b")
    with cells._alone(a, tmp_path):
        same, other = (
            multiprocessing.get_context("fork").Process(target=compute, args=(one, tmp_path))
            for one in (a, b)
        )
        same.start()
        other.start()
        other.join()
        assert other.exitcode == 0
        assert same.is_alive()
        assert calls(tmp_path) == "b"
    same.join()
    assert same.exitcode == 0
    assert calls(tmp_path) == "ab"


def burn(seconds):
    end = time.process_time() + seconds
    while time.process_time() < end:
        pass


def with_a_child(config, folder, needs, progress):
    """Work 0.2 s here and 0.4 s in a child, as the bounded computer algebra does."""
    burn(0.2)
    child = os.fork()
    if child == 0:
        burn(0.4)
        os._exit(0)
    os.waitpid(child, 0)
    return {}


def test_the_cpu_time_counts_children(tmp_path):
    record = cells.compute_cell(with_a_child, cell(tmp_path, "a"), tmp_path, lambda *_: None)
    assert record["line"]["cpu_s"] >= 0.59  # of 0.6 s; what is around it depends on the machine


def test_a_claim_removes_the_tables_of_the_run_before(tmp_path):
    config = {"benchmark": "one", "size": 1}
    results.claim(tmp_path, config, resume=False, overwrite=False)
    (tmp_path / "cells").mkdir()
    stale = [tmp_path / name for name in ("results.jsonl", "leaderboard.md", "report.html")]
    for path in stale:
        path.touch()
    results.claim(tmp_path, config, resume=False, overwrite=False)
    assert not any(path.exists() for path in stale)


def test_the_folder_of_another_benchmark_is_never_continued(tmp_path):
    results.claim(tmp_path, {"benchmark": "one", "size": 1}, resume=False, overwrite=False)
    results.check(tmp_path, {"benchmark": "one", "size": 2}, resume=True, overwrite=False)
    other = {"benchmark": "two", "size": 1}
    for resume in (False, True):
        with pytest.raises(ValueError, match=r"another benchmark \(one\); use --overwrite"):
            results.check(tmp_path, other, resume=resume, overwrite=False)
    results.claim(tmp_path, other, resume=False, overwrite=True)
    results.check(tmp_path, other, resume=False, overwrite=False)


def test_the_key_follows_what_determines_the_result(tmp_path):
    a = cell(tmp_path, "a")
    assert a.key == dataclasses.replace(a, label="another label").key
    assert a.key != dataclasses.replace(a, kind="fail").key
    assert a.key != cell(tmp_path, "a", value=2).key
    below = cell(tmp_path, "b", needs={"x": a})
    assert below.key != cell(tmp_path, "b", needs={"x": cell(tmp_path, "a", value=2)}).key
    assert len(a.key) == len(artefacts.key({})) == 16


def test_a_run_killed_at_its_very_start_continues(tmp_path):
    (tmp_path / ".run.json.123.abc").touch()
    results.claim(tmp_path, {"benchmark": "one"}, resume=False, overwrite=False)


def test_a_cell_whose_record_names_a_file_elsewhere_is_made_again(tmp_path):
    wanted, out = cell(tmp_path, "a"), tmp_path / "out"
    run([wanted], out)
    path = wanted.folder(out) / cells.RECORD
    record = artefacts.load_record(path)
    outside = tmp_path / "outside"
    outside.write_text("1")
    record["sha256"] = {str(outside): artefacts.sha256(outside)}
    artefacts.save_record(path, record)
    assert wanted.record(out) is None
    run([wanted], out)
    assert calls(tmp_path) == "aa"


def test_a_line_that_names_a_file_elsewhere_is_refused(tmp_path):
    (tmp_path / "outside").touch()
    line = {"files": {"curves": "../outside", "predictions": "inside"}}
    assert results.file(tmp_path, line, "predictions") is None
    (tmp_path / "inside").touch()
    assert results.file(tmp_path, line, "predictions") == tmp_path / "inside"
    with pytest.raises(artefacts.CorruptArtefact, match=r"'\.\./outside' names no file below"):
        results.file(tmp_path / "out", line, "curves")


def test_a_lock_of_cells_that_is_a_link_is_refused(tmp_path):
    (tmp_path / ".cells.lock").symlink_to(tmp_path / "victim")
    with pytest.raises(ValueError, match=r"\.cells\.lock is a link"):
        cells.compute_cell(count, cell(tmp_path, "a"), tmp_path, lambda *_: None)
    assert not (tmp_path / "victim").exists()


def test_on_a_disk_without_locks_a_cell_is_computed(tmp_path, monkeypatch):
    def without(*_):
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "lockf", without)
    record = cells.compute_cell(count, cell(tmp_path, "a"), tmp_path, lambda *_: None)
    assert record["line"]["status"] == "ok"
