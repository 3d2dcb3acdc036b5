"""What ``--reuse`` takes from other results: finished, intact cells of the same address alone."""

import dataclasses
import json
import shutil

import pytest

from orbits.runs import artefact, folder
from orbits.runs.artefact import CorruptArtefact
from orbits.runs.cell import CELLS, ORIGIN, RECORD, Adopted, Cell, Outcome, compute
from orbits.runs.folder import Existing
from orbits.runs.result import Case, Metric, Result
from orbits.runs.reuse import check, plan

CONFIG = {"study": "squares"}
CASE = Case("squares", "square")


def square(n, folder):
    (folder / "value.txt").write_text(str(n**2))
    return Outcome({"square": n**2}, files={"value": "value.txt"})


def cube(n, square, folder):
    return Outcome({"square": int((square / "value.txt").read_text())})


def broken(n, folder):
    (folder / "half.txt").write_text("half of it")
    raise RuntimeError("out of memory")


CELL = Cell(square, CASE, {"n": 3})
CUBE = Cell(cube, CASE, {"n": 3}, needs={"square": CELL})


def take(cells, sources, out, restore=lambda cell, kept: None):
    """Take what can be taken and return how many cells that were."""
    found = plan(cells, sources, out, restore)
    found.carry_out()
    return len(found.taken)


@pytest.fixture
def folders(tmp_path):
    source, out = tmp_path / "source", tmp_path / "out"
    for path in (source, out):
        (path / CELLS).mkdir(parents=True)
    return source, out


def files(cell, out):
    return {path.name: path.read_bytes() for path in cell.folder(out).iterdir()}


def fail(cell, out):
    """Leave a failed cell in the place of one that could succeed."""
    bad = dataclasses.replace(cell, function=broken)
    object.__setattr__(bad, "key", cell.key)
    return compute(bad, out)


def squares(cell, out):
    return [result.value("square") for result in cell.results(out)]


def test_a_finished_cell_is_taken_byte_for_byte(folders):
    source, out = folders
    compute(CELL, source)
    assert take([CELL], [source], out) == 1
    assert files(CELL, out) == files(CELL, source)
    assert squares(CELL, out) == [9]


def test_another_address_is_not_taken(folders):
    source, out = folders
    compute(CELL, source)
    others = [
        Cell(square, CASE, {"n": 4}),
        Cell(broken, CASE, CELL.arguments),
        Cell(square, dataclasses.replace(CASE, seed=1), CELL.arguments),
        Cell(square, CASE, CELL.arguments, needs={"model": CELL}),
    ]
    assert take(others, [source], out) == 0
    assert not any((out / CELLS).iterdir())


def test_a_failed_cell_is_not_taken(folders):
    source, out = folders
    assert fail(CELL, source)["results"][0]["status"] == "failed"
    take([CELL], [source], out)
    assert not any((out / CELLS).iterdir())


def _edit_record(folder):
    record = json.loads((folder / RECORD).read_text())
    record["results"][0]["metrics"]["square"]["value"] = 10
    (folder / RECORD).write_text(json.dumps(record))


@pytest.mark.parametrize(
    "damage",
    [
        lambda folder: (folder / "value.txt").write_text("10"),
        lambda folder: (folder / "value.txt").unlink(),
        _edit_record,
        lambda folder: (folder / RECORD).write_bytes((folder / RECORD).read_bytes()[:-20]),
        lambda folder: (folder / RECORD).unlink(),
    ],
    ids=["edited", "missing", "edited record", "truncated record", "no record"],
)
def test_a_damaged_cell_is_not_taken(folders, damage):
    source, out = folders
    compute(CELL, source)
    damage(CELL.folder(source))
    take([CELL], [source], out)
    assert not any((out / CELLS).iterdir())


@pytest.mark.parametrize(
    "change",
    [
        lambda record: record.pop("results"),
        lambda record: record.pop("sha256"),
        lambda record: record.update(results=[{"status": "ok", "cell": CELL.key}]),
        lambda record: record["results"][0]["files"].update(a="../../../outside"),
        lambda record: record.update(results=[7]),
    ],
    ids=["no results", "no files", "no schema", "outside", "no object"],
)
def test_a_cell_of_another_form_is_not_taken(folders, change):
    """A stranger's record has the right checksum of whatever it holds."""
    source, out = folders
    compute(CELL, source)
    record = artefact.load_record(CELL.folder(source) / RECORD)
    change(record)
    artefact.save_record(CELL.folder(source) / RECORD, record)
    take([CELL], [source], out)
    assert not any((out / CELLS).iterdir())


def test_only_files_of_the_record_are_taken(folders, tmp_path):
    source, out = folders
    compute(CELL, source)
    (tmp_path / "outside").write_text("secret")
    (CELL.folder(source) / "leak").symlink_to(tmp_path / "outside")
    assert take([CELL], [source], out) == 1
    assert not (CELL.folder(out) / "leak").exists()


def test_our_own_result_stays(folders):
    source, out = folders
    compute(CELL, source)
    compute(CELL, out)
    (CELL.folder(out) / "mine").touch()
    assert take([CELL], [source], out) == 0
    assert (CELL.folder(out) / "mine").exists()


def test_what_a_killed_copy_left_does_not_stay(folders):
    source, out = folders
    compute(CELL, source)
    partial = out / CELLS / f".{CELL.key}.partial"
    partial.mkdir()
    (partial / "rest.txt").touch()
    take([CELL], [source], out)
    assert files(CELL, out) == files(CELL, source)
    assert CELL.key in [path.name for path in (out / CELLS).iterdir() if path.is_dir()]
    assert not partial.exists()


@pytest.mark.parametrize("killed", [False, True])
def test_an_unfinished_cell_of_ours_makes_way(folders, killed):
    source, out = folders
    compute(CELL, source)
    fail(CELL, out)
    if killed:
        (CELL.folder(out) / RECORD).unlink()
    take([CELL], [source], out)
    assert files(CELL, out) == files(CELL, source)


def test_the_folder_of_another_cell_is_not_taken(folders):
    source, out = folders
    compute(CELL, source)
    other = Cell(square, CASE, {"n": 4})
    shutil.copytree(CELL.folder(source), other.folder(source))
    assert take([other], [source], out) == 0
    assert other.record(out) is None


def keep(cells, source, **more):
    """Leave nothing but the records of a run, as results that are kept do."""
    folder.claim(source, CONFIG, Existing())
    results = [Result.from_json(x) for cell in cells for x in compute(cell, source)["results"]]
    folder.save(source, [dataclasses.replace(result, **more) for result in results])
    shutil.rmtree(source / CELLS)


def test_a_kept_result_does_for_its_cell(tmp_path):
    source, out = tmp_path / "source", tmp_path / "out"
    keep([CELL], source)
    take([CELL, Cell(square, CASE, {"n": 4})], [source], out)
    (kept,) = folder.load(source)[0]
    assert CELL.results(out) == [dataclasses.replace(kept, files={})]
    assert [path.name for path in (out / CELLS).iterdir()] == [CELL.key]


def test_a_kept_result_does_not_do_where_its_files_are_read(tmp_path):
    source, out = tmp_path / "source", tmp_path / "out"
    keep([CELL], source)
    take([CELL, CUBE], [source], out)
    assert CELL.record(out) is None


def test_kept_results_do_for_a_chain_that_is_whole(tmp_path):
    source, out = tmp_path / "source", tmp_path / "out"
    keep([CELL, CUBE], source)
    take([CELL, CUBE], [source], out)
    for cell in (CELL, CUBE):
        assert squares(cell, out) == [9]
        assert not any(result.files for result in cell.results(out))


def test_a_chain_may_come_from_several_results(tmp_path):
    one, other, out = tmp_path / "one", tmp_path / "other", tmp_path / "out"
    keep([CELL, CUBE], one)
    results = folder.load(one)[0]
    for place, each in ((one, results[0]), (other, results[1])):
        folder.claim(place, CONFIG, Existing(overwrite=True))
        folder.save(place, [each])
    take([CELL, CUBE], [one, other], out)
    assert CELL.record(out)
    assert CUBE.record(out)


def test_the_first_folder_that_has_a_cell_gives_it(tmp_path):
    one, other, out = tmp_path / "one", tmp_path / "other", tmp_path / "out"
    keep([CELL], one, metrics={"square": Metric(1)})
    keep([CELL], other, metrics={"square": Metric(2)})
    take([CELL], [one, other], out)
    assert squares(CELL, out) == [1]


def test_damaged_results_are_refused(tmp_path):
    source, out = tmp_path / "source", tmp_path / "out"
    keep([CELL], source)
    path = source / folder.LINES
    path.write_text(path.read_text().replace("9", "8"))
    for refused in (lambda: check(source), lambda: take([CELL], [source], out)):
        with pytest.raises(CorruptArtefact, match=r"results\.jsonl"):
            refused()


def test_a_taken_result_is_computed_after_all_where_a_later_run_reads_its_files(tmp_path):
    source, out, last = tmp_path / "source", tmp_path / "out", tmp_path / "last"
    keep([CELL, CUBE], source)
    take([CELL, CUBE], [source], out)
    take([CELL, CUBE], [], out)
    assert squares(CELL, out) == [9]
    again = Cell(cube, dataclasses.replace(CASE, seed=1), {"n": 3}, needs={"square": CELL})
    take([CELL, CUBE, again], [out], last)
    assert CUBE.record(last)
    assert CELL.record(last) is None
    take([CELL, CUBE, again], [], out)
    assert CUBE.record(out)
    assert CELL.record(out) is None
    compute(CELL, out)
    take([CELL, CUBE, again], [], out)
    assert CELL.record(out)


def restore(cell, kept):
    """Make the file of a square of what lies beside the lines, for readers of a ``square``."""
    path = kept.folder / "squares.txt"
    if cell.function is not square or not path.is_file():
        return None
    if not path.read_text().isdecimal():
        raise ValueError(f"{path}: no square")

    def write(folder):
        (folder / "value.txt").write_text(path.read_text())

    return Adopted(kept.results[cell.key], {"square"}, write, {"value.txt": "ab12"})


def test_a_study_makes_files_of_what_is_kept(tmp_path):
    source, out = tmp_path / "source", tmp_path / "out"
    keep([CELL], source)
    (source / "squares.txt").write_text("9")
    assert take([CELL, CUBE], [source], out, restore) == 1
    assert CELL.record(out)["sha256"].keys() == {"value.txt"}
    inputs = compute(CUBE, out)["results"][0]["manifest"]["inputs"]
    assert inputs[f"square/value.txt{ORIGIN}"] == "ab12"
    assert inputs["square/value.txt"] == CELL.record(out)["sha256"]["value.txt"]
    assert squares(CUBE, out) == [9]
    assert take([CELL, CUBE], [source], out, restore) == 0, "a run again finds all of it"
    (CELL.folder(out) / "value.txt").write_text("10")
    assert take([CELL], [source], out, restore) == 1, "a damaged file is made again"


def test_a_file_that_is_made_does_for_its_readers_alone(tmp_path):
    source, out = tmp_path / "source", tmp_path / "out"
    keep([CELL], source)
    (source / "squares.txt").write_text("9")
    by_another_name = dataclasses.replace(CUBE, needs={"root": CELL})
    assert take([CELL, by_another_name], [source], out, restore) == 0
    assert take([CELL, CUBE], [source], out, restore) == 1
    assert take([CELL, by_another_name], [], out) == 0
    assert CELL.record(out) is None, "its file is not that of this reader, so it is computed"


def test_what_cannot_be_made_is_refused_before_anything_is_written(tmp_path):
    source, out = tmp_path / "source", tmp_path / "out"
    keep([CELL], source)
    (source / "squares.txt").write_text("nine")
    with pytest.raises(ValueError, match=r"squares\.txt: no square"):
        plan([CELL, CUBE], [source], out, restore)
    assert not out.exists()


def test_what_is_to_be_discarded_does_not_count(folders):
    source, out = folders
    for place in folders:
        compute(CELL, place)
    assert not plan([CELL], [source], out).taken
    assert len(plan([CELL], [source], out, fresh=True).taken) == 1


@pytest.mark.parametrize("resume", [False, True])
def test_kept_results_are_not_discarded_unasked(tmp_path, resume):
    keep([CELL], tmp_path)
    with pytest.raises(ValueError, match=r"kept results.*--reuse"):
        folder.check(tmp_path, CONFIG, Existing(resume=resume))
    assert folder.load(tmp_path)
    folder.check(tmp_path, CONFIG, Existing(overwrite=True))


def test_a_folder_without_results_is_refused(tmp_path):
    with pytest.raises(ValueError, match="no results"):
        check(tmp_path)
