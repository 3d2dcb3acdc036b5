"""Cells: addresses, the parameters of their functions, and what a record vouches for."""

import dataclasses
import errno
import fcntl
import multiprocessing

import pytest

from orbits.runs import artefact, cell, digests, locks
from orbits.runs.cell import Cell
from orbits.runs.result import Case
from tests.orbits.runs import cells
from tests.orbits.runs.cells import calls

CASE = Case("sums", "sum")


def test_the_key_follows_what_determines_the_result(tmp_path):
    a = cells.cell(tmp_path, "a")
    assert a.key == cells.cell(tmp_path, "a").key
    assert a.key != dataclasses.replace(a, function=cells.fail).key
    assert a.key != cells.cell(tmp_path, "a", value=2).key
    assert a.key != cells.cell(tmp_path, "a", seed=1).key
    assert a.key != dataclasses.replace(a, version=2).key
    below = cells.cell(tmp_path, "b", needs={"left": a})
    assert below.key != cells.cell(tmp_path, "b", needs={"right": a}).key
    other = cells.cell(tmp_path, "a", value=2)
    assert below.key != cells.cell(tmp_path, "b", needs={"left": other}).key
    assert len(a.key) == len(artefact.key({})) == 16


def test_the_key_follows_the_content_of_input_files_and_not_their_place(tmp_path):
    for name, text in (("one", "x"), ("copy", "x"), ("other", "y")):
        (tmp_path / name).write_text(text)
    keys = [
        Cell(cells.quick, CASE, inputs={"file": tmp_path / name}).key
        for name in ("one", "copy", "other")
    ]
    assert keys[0] == keys[1] != keys[2]


def test_a_folder_of_input_files_counts_by_names_and_contents(tmp_path):
    one, copy = tmp_path / "one", tmp_path / "copy"
    for folder in (one, copy):
        (folder / "inner").mkdir(parents=True)
        (folder / "inner" / "a.py").write_text("x")

    def key(folder):
        return Cell(cells.quick, CASE, inputs={"data": folder}).key

    before = key(one)
    assert key(copy) == before
    (copy / "inner" / "__pycache__").mkdir()
    (copy / "inner" / "__pycache__" / "a.pyc").write_text("compiled")
    assert key(copy) == before
    (copy / "inner" / "a.py").rename(copy / "inner" / "b.py")
    assert key(copy) != before
    (one / "inner" / "a.py").write_text("other")
    assert key(one) != before


def test_a_cell_fails_whose_input_changed_after_its_address_was_taken(tmp_path):
    file = tmp_path / "file"
    file.write_text("x")
    one = Cell(cells.reads, CASE, inputs={"file": file})
    assert one.key
    file.write_text("other")
    (result,) = cell.compute(one, tmp_path)["results"]
    assert result["error"] == f"ValueError: {file}: changed since this run began; run it again"


def test_a_cell_fails_whose_plug_in_changed_after_its_address_was_taken(tmp_path, monkeypatch):
    monkeypatch.setattr(cell.plugins, "addresses", lambda: {"mine.py": "before"})
    one = Cell(cells.curve, CASE)
    assert one.key
    monkeypatch.setattr(cell.plugins, "addresses", lambda: {"mine.py": "after"})
    (result,) = cell.compute(one, tmp_path)["results"]
    assert result["error"] == "ValueError: mine.py: changed since this run began; run it again"


def test_a_folder_of_input_files_has_no_linked_folder(tmp_path):
    # Its files would not count, and a change in them would not be noticed.
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "files").mkdir()
    (tmp_path / "files" / "more").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(ValueError, match="more is a link to a folder"):
        digests.digest(tmp_path / "files")


def test_numbers_may_be_keys_of_details(tmp_path):
    one = Cell(cells.curve, CASE)
    assert cell.succeeded(cell.compute(one, tmp_path))
    assert one.record(tmp_path)["results"][0]["details"] == {"curve": {"2": 1.0, "10": 2.0}}


def test_a_file_of_the_record_that_is_a_folder_now_is_made_again(tmp_path):
    one = cells.cell(tmp_path, "a")
    cell.compute(one, tmp_path)
    (one.folder(tmp_path) / "value").unlink()
    (one.folder(tmp_path) / "value").mkdir()
    assert one.record(tmp_path) is None


def test_progress_does_not_follow_a_link(tmp_path):
    one = cells.cell(tmp_path, "a")
    (tmp_path / "cells").mkdir()
    (tmp_path / "precious").write_text("precious")
    cell.progress_file(tmp_path, one.key).symlink_to(tmp_path / "precious")
    assert "is a link" in cell.compute(one, tmp_path)["results"][0]["error"]
    assert (tmp_path / "precious").read_text() == "precious"


def test_a_cell_may_have_several_results_and_change_its_case(tmp_path):
    one = Cell(cells.several, Case("sums", "sum", "softmax", seed=3, setting={"of": "x"}))
    cell.compute(one, tmp_path)
    model, control = one.results(tmp_path)
    assert model.case == dataclasses.replace(one.case, setting={"of": "x", "at": 2})
    assert model.metrics["error"].interval == (1.0, 0.5, 1.5)
    assert control.case == dataclasses.replace(one.case, variant="truth", arm="control", seed=None)
    assert control.metrics["error"].interval is None
    assert control.cpu_s == 0.0, "the cell's time counts once"


def test_a_metric_of_the_wrong_shape_fails_its_cell_alone(tmp_path):
    record = cell.compute(Cell(cells.misshapen, CASE), tmp_path)
    assert record["results"][0]["status"] == "failed"
    assert "ValueError" in record["results"][0]["error"]


def test_details_that_are_no_plain_data_fail_their_cell_alone(tmp_path):
    record = cell.compute(Cell(cells.not_plain, CASE), tmp_path)
    assert record["results"][0]["status"] == "failed"
    assert "float32 is not JSON serializable" in record["results"][0]["error"]


def test_a_message_that_is_no_unicode_fails_its_cell_alone(tmp_path):
    record = cell.compute(Cell(cells.names_a_file_in_latin_1, CASE), tmp_path)
    assert record["results"][0]["status"] == "failed"


def test_a_cell_that_is_left_out_is_skipped_with_its_reason(tmp_path):
    record = cell.compute(Cell(cell.leave_out, CASE, {"why": "no such file"}), tmp_path)
    assert [(x["status"], x["error"]) for x in record["results"]] == [("skipped", "no such file")]


def test_finished_pieces_survive_a_failure(tmp_path):
    one = Cell(cells.in_pieces, CASE, {"log": str(tmp_path / "log")})
    assert not cell.succeeded(cell.compute(one, tmp_path))
    (tmp_path / "log.mended").touch()
    assert cell.succeeded(cell.compute(one, tmp_path))
    assert calls(tmp_path) == "122"
    assert [path.name for path in (tmp_path / "cells").iterdir()] == [one.key]


def test_a_link_among_the_pieces_is_refused(tmp_path):
    one = Cell(cells.in_pieces, CASE, {"log": str(tmp_path / "log")})
    scratch = tmp_path / "cells" / f"{one.key}.scratch"
    scratch.mkdir(parents=True)
    (scratch / "1").symlink_to(tmp_path / "victim")
    record = cell.compute(one, tmp_path)
    assert "is a link" in record["results"][0]["error"]


def compute_slowly(tmp_path, name):
    cell.compute(cells.cell(tmp_path, name, cells.slowly), tmp_path)


def test_two_processes_at_one_cell_do_it_once_and_at_two_cells_do_not_wait(tmp_path):
    """A job may outlive the run that submitted it, and meet the run that resumes."""
    fork = multiprocessing.get_context("fork")
    processes = [fork.Process(target=compute_slowly, args=(tmp_path, x)) for x in "aab"]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    assert [process.exitcode for process in processes] == [0, 0, 0]
    assert calls(tmp_path) == "ab"


def test_a_cell_waits_for_another_one_only_if_it_is_the_same(tmp_path):
    fork = multiprocessing.get_context("fork")
    with locks.cell_lock(tmp_path, cells.cell(tmp_path, "a", cells.slowly).key):
        same, other = (fork.Process(target=compute_slowly, args=(tmp_path, x)) for x in "ab")
        same.start()
        other.start()
        other.join()
        assert other.exitcode == 0
        assert same.is_alive()
        assert calls(tmp_path) == "b"
    same.join()
    assert same.exitcode == 0
    assert calls(tmp_path) == "ab"


def test_the_cpu_time_counts_children(tmp_path):
    record = cell.compute(Cell(cells.with_a_child, CASE), tmp_path)
    # Of 0.6 s; what is around it depends on the machine.
    assert record["results"][0]["cpu_s"] >= 0.59


def test_a_cell_whose_record_names_a_file_elsewhere_is_made_again(tmp_path):
    wanted, out = cells.cell(tmp_path, "a"), tmp_path / "out"
    cell.compute(wanted, out)
    path = wanted.folder(out) / cell.RECORD
    record = artefact.load_record(path)
    outside = tmp_path / "outside"
    outside.write_text("1")
    record["sha256"] = {str(outside): artefact.sha256(outside)}
    artefact.save_record(path, record)
    assert wanted.record(out) is None
    cell.compute(wanted, out)
    assert calls(tmp_path) == "aa"


def test_the_manifest_has_the_files_of_needed_cells_and_inputs(tmp_path):
    first = cells.cell(tmp_path, "a")
    second = cells.cell(tmp_path, "b", needs={"left": first})
    out = tmp_path / "out"
    cell.compute(first, out)
    record = cell.compute(second, out)
    digest = artefact.sha256(first.folder(out) / "value")
    assert record["results"][0]["manifest"]["inputs"] == {"left/value": digest}
    assert record["function"] == "tests.orbits.runs.cells.count"


def test_a_lock_of_a_cell_that_is_a_link_is_refused(tmp_path):
    one = cells.cell(tmp_path, "a")
    (tmp_path / ".locks").mkdir()
    (tmp_path / ".locks" / one.key).symlink_to(tmp_path / "victim")
    with pytest.raises(ValueError, match="is a link"):
        cell.compute(one, tmp_path)
    assert not (tmp_path / "victim").exists()


def test_on_a_disk_without_locks_a_cell_is_computed(tmp_path, monkeypatch):
    def without(*_):
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", without)
    assert cell.succeeded(cell.compute(cells.cell(tmp_path, "a"), tmp_path))


@pytest.mark.parametrize("field", ["arguments", "inputs"])
def test_a_name_that_the_cell_gives_itself_is_refused(tmp_path, field):
    with pytest.raises(ValueError, match="scratch is what a cell gives its function"):
        Cell(cells.quick, CASE, **{field: {"scratch": tmp_path}})
