"""What ``--reuse`` takes from other results: finished, intact cells of the same address alone."""

import json
import shutil

import pytest

from benchmarks.command import _take
from symreg.cells import RECORD, Cell, compute_cell

CELL = Cell("square", {"n": 3, "row": {"n": 3}})


def square(config, folder, needs, progress):
    (folder / "value.txt").write_text(str(config["n"] ** 2))
    return {"metrics": {"square": config["n"] ** 2}}


def broken(config, folder, needs, progress):
    (folder / "half.txt").write_text("half of it")
    raise RuntimeError("out of memory")


def compute(cell, out, function=square):
    return compute_cell(function, cell, out, lambda *_: None)


@pytest.fixture
def folders(tmp_path):
    source, out = tmp_path / "source", tmp_path / "out"
    for folder in (source, out):
        (folder / "cells").mkdir(parents=True)
    return source, out


def files(cell, out):
    return {path.name: path.read_bytes() for path in cell.folder(out).iterdir()}


def test_a_finished_cell_is_taken_byte_for_byte(folders):
    source, out = folders
    compute(CELL, source)
    _take([CELL], source, out)
    assert files(CELL, out) == files(CELL, source)
    assert CELL.record(out)["line"]["metrics"] == {"square": 9}


def test_another_address_is_not_taken(folders):
    source, out = folders
    compute(CELL, source)
    others = [
        Cell("square", {"n": 4, "row": {"n": 3}}),
        Cell("cube", CELL.config),
        Cell("square", CELL.config, needs={"model": CELL}),
    ]
    _take(others, source, out)
    assert not any((out / "cells").iterdir())


def test_a_failed_cell_is_not_taken(folders):
    source, out = folders
    assert compute(CELL, source, broken)["line"]["status"] == "failed"
    _take([CELL], source, out)
    assert not any((out / "cells").iterdir())


def _edit_file(folder):
    (folder / "value.txt").write_text("10")


def _remove_file(folder):
    (folder / "value.txt").unlink()


def _edit_line(folder):
    record = json.loads((folder / RECORD).read_text())
    record["line"]["metrics"]["square"] = 10
    (folder / RECORD).write_text(json.dumps(record))


def _truncate_record(folder):
    (folder / RECORD).write_bytes((folder / RECORD).read_bytes()[:-20])


def _remove_record(folder):
    (folder / RECORD).unlink()


@pytest.mark.parametrize(
    "damage", [_edit_file, _remove_file, _edit_line, _truncate_record, _remove_record]
)
def test_a_damaged_cell_is_not_taken(folders, damage):
    source, out = folders
    compute(CELL, source)
    damage(CELL.folder(source))
    _take([CELL], source, out)
    assert not any((out / "cells").iterdir())


def test_our_own_result_stays(folders):
    source, out = folders
    compute(CELL, source)
    compute(CELL, out)
    (CELL.folder(out) / "mine").touch()
    _take([CELL], source, out)
    assert (CELL.folder(out) / "mine").exists()


def test_what_a_killed_copy_left_does_not_stay(folders):
    source, out = folders
    compute(CELL, source)
    partial = out / "cells" / f".{CELL.key}.partial"
    partial.mkdir()
    (partial / "rest.txt").touch()
    _take([CELL], source, out)
    assert files(CELL, out) == files(CELL, source)
    assert [path.name for path in (out / "cells").iterdir()] == [CELL.key]


@pytest.mark.parametrize("killed", [False, True])
def test_an_unfinished_cell_of_ours_makes_way(folders, killed):
    source, out = folders
    compute(CELL, source)
    compute(CELL, out, broken)
    if killed:
        (CELL.folder(out) / RECORD).unlink()
    _take([CELL], source, out)
    assert CELL.record(out)["line"]["status"] == "ok"
    assert files(CELL, out) == files(CELL, source)


def test_the_folder_of_another_cell_is_not_taken(folders):
    source, out = folders
    compute(CELL, source)
    other = Cell("square", {"n": 4, "row": {"n": 4}})
    shutil.copytree(CELL.folder(source), other.folder(source))
    _take([other], source, out)
    assert other.record(out) is None
