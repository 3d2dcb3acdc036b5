"""What ``--reuse`` takes from other results: finished, intact cells of the same address alone."""

import json
import shutil

import pytest

from benchmarks.reuse import take
from orbits.artefacts import CorruptArtefact
from symreg import results
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
    take([CELL], [source], out)
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
    take(others, [source], out)
    assert not any((out / "cells").iterdir())


def test_a_failed_cell_is_not_taken(folders):
    source, out = folders
    assert compute(CELL, source, broken)["line"]["status"] == "failed"
    take([CELL], [source], out)
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
    take([CELL], [source], out)
    assert not any((out / "cells").iterdir())


def test_our_own_result_stays(folders):
    source, out = folders
    compute(CELL, source)
    compute(CELL, out)
    (CELL.folder(out) / "mine").touch()
    take([CELL], [source], out)
    assert (CELL.folder(out) / "mine").exists()


def test_what_a_killed_copy_left_does_not_stay(folders):
    source, out = folders
    compute(CELL, source)
    partial = out / "cells" / f".{CELL.key}.partial"
    partial.mkdir()
    (partial / "rest.txt").touch()
    take([CELL], [source], out)
    assert files(CELL, out) == files(CELL, source)
    assert [path.name for path in (out / "cells").iterdir()] == [CELL.key]


@pytest.mark.parametrize("killed", [False, True])
def test_an_unfinished_cell_of_ours_makes_way(folders, killed):
    source, out = folders
    compute(CELL, source)
    compute(CELL, out, broken)
    if killed:
        (CELL.folder(out) / RECORD).unlink()
    take([CELL], [source], out)
    assert CELL.record(out)["line"]["status"] == "ok"
    assert files(CELL, out) == files(CELL, source)


def test_the_folder_of_another_cell_is_not_taken(folders):
    source, out = folders
    compute(CELL, source)
    other = Cell("square", {"n": 4, "row": {"n": 4}})
    shutil.copytree(CELL.folder(source), other.folder(source))
    take([other], [source], out)
    assert other.record(out) is None


def keep(cells, source, **more):
    """Leave nothing but the lines of a run, as results that are kept do."""
    results.claim(source, {"benchmark": "squares"}, resume=False, overwrite=False)
    results.save(source, [{**compute(cell, source)["line"], **more} for cell in cells])
    shutil.rmtree(source / "cells")


def test_a_kept_line_does_for_its_cell(tmp_path):
    source, out = tmp_path / "source", tmp_path / "out"
    keep([CELL], source)
    take([CELL, Cell("square", {"n": 4, "row": {"n": 4}})], [source], out)
    assert CELL.record(out)["line"] == {**results.load(source)[0][0], "files": {}}
    assert [path.name for path in (out / "cells").iterdir()] == [CELL.key]


CUBE = Cell("cube", CELL.config, needs={"square": CELL})


def test_a_kept_line_does_not_do_where_its_files_are_read(tmp_path):
    source, out = tmp_path / "source", tmp_path / "out"
    keep([CELL], source)
    take([CELL, CUBE], [source], out)
    assert CELL.record(out) is None


def test_kept_lines_do_for_a_chain_that_is_whole(tmp_path):
    source, out = tmp_path / "source", tmp_path / "out"
    keep([CELL, CUBE], source, files={"value": "cells/value.txt"})
    take([CELL, CUBE], [source], out)
    for cell in (CELL, CUBE):
        assert cell.record(out)["line"]["metrics"] == {"square": 9}
        assert not cell.record(out)["line"]["files"]


def test_a_chain_may_come_from_several_results(tmp_path):
    one, other, out = tmp_path / "one", tmp_path / "other", tmp_path / "out"
    keep([CELL], one)
    keep([CUBE], other)
    take([CELL, CUBE], [one, other], out)
    assert CELL.record(out)
    assert CUBE.record(out)


def test_the_first_folder_that_has_a_cell_gives_it(tmp_path):
    one, other, out = tmp_path / "one", tmp_path / "other", tmp_path / "out"
    keep([CELL], one, metrics={"square": 1})
    keep([CELL], other, metrics={"square": 2})
    take([CELL], [one, other], out)
    assert CELL.record(out)["line"]["metrics"] == {"square": 1}


def test_damaged_lines_are_refused(tmp_path):
    source, out = tmp_path / "source", tmp_path / "out"
    keep([CELL], source)
    path = source / results.LINES
    path.write_text(path.read_text().replace("9", "8"))
    with pytest.raises(CorruptArtefact, match=r"results\.jsonl"):
        take([CELL], [source], out)


def test_a_taken_line_is_computed_after_all_where_a_later_run_reads_its_files(tmp_path):
    source, out, last = tmp_path / "source", tmp_path / "out", tmp_path / "last"
    keep([CELL, CUBE], source)
    take([CELL, CUBE], [source], out)
    take([CELL, CUBE], [], out)
    assert CELL.record(out)["line"]["metrics"] == {"square": 9}
    again = Cell("cube", {"n": 3, "again": 1, "row": {"n": 3}}, needs={"square": CELL})
    take([CELL, CUBE, again], [out], last)
    assert CUBE.record(last)
    assert CELL.record(last) is None
    take([CELL, CUBE, again], [], out)
    assert CUBE.record(out)
    assert CELL.record(out) is None
    compute(CELL, out)
    take([CELL, CUBE, again], [], out)
    assert CELL.record(out)


@pytest.mark.parametrize("resume", [False, True])
def test_kept_results_are_not_discarded_unasked(tmp_path, resume):
    keep([CELL], tmp_path)
    config = {"benchmark": "squares"}
    with pytest.raises(ValueError, match=r"kept results.*--reuse"):
        results.check(tmp_path, config, resume=resume, overwrite=False)
    assert results.load(tmp_path)
    results.check(tmp_path, config, resume=resume, overwrite=True)
