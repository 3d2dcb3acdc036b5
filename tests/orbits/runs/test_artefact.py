import errno
import fcntl
import hashlib
import json
import os
import time

import numpy as np
import pytest

from orbits.runs import artefact
from orbits.runs.artefact import CorruptArtefact


@pytest.fixture
def saved(tmp_path):
    path = tmp_path / "made" / "data.npz"
    artefact.save_arrays(path, {"x": np.arange(6.0).reshape(2, 3)}, {"seed": 3})
    return path


def test_round_trip(saved):
    arrays, manifest = artefact.load_arrays(saved)
    np.testing.assert_array_equal(arrays["x"], [[0, 1, 2], [3, 4, 5]])
    assert manifest == {"seed": 3}
    assert artefact.is_intact(saved)
    assert artefact.sha256(saved) == hashlib.sha256(saved.read_bytes()).hexdigest()
    assert sorted(os.listdir(saved.parent)) == ["data.npz", "data.npz.json"]


def truncate(path):
    path.write_bytes(path.read_bytes()[:-1])


def lengthen(path):
    path.write_bytes(path.read_bytes() + b"\0")


def flip_a_bit(path):
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(bytes(data))


def edit_manifest(path):
    record = json.loads(path.read_text())
    record["manifest"]["seed"] = 4
    path.write_text(json.dumps(record))


def edit_hash(path):
    record = json.loads(path.read_text())
    record["sha256"] = "0" * 64
    path.write_text(json.dumps(record))


@pytest.mark.parametrize("damage", [truncate, lengthen, flip_a_bit])
def test_a_damaged_file_is_refused_by_name(saved, damage):
    damage(saved)
    with pytest.raises(CorruptArtefact, match=r"data\.npz"):
        artefact.load_arrays(saved)


@pytest.mark.parametrize(
    "damage",
    [
        lambda p: p.write_bytes(p.read_bytes()[:-3]),
        lambda p: p.write_bytes(b""),
        lambda p: p.write_bytes(b"[1, 2]"),
        lambda p: p.write_bytes(b"7"),
        lambda p: p.write_bytes(b"\xff\xfe"),
        edit_manifest,
        edit_hash,
        lambda p: p.unlink(),
    ],
    ids=["truncated", "empty", "list", "number", "binary", "manifest", "hash", "missing"],
)
def test_a_damaged_or_missing_sidecar_is_refused_by_name(saved, damage):
    damage(artefact.sidecar(saved))
    with pytest.raises(CorruptArtefact, match=r"data\.npz"):
        artefact.load_arrays(saved)


def test_a_file_without_a_sidecar_is_not_done(saved):
    artefact.sidecar(saved).unlink()
    assert not artefact.is_intact(saved)
    with pytest.raises(FileNotFoundError):
        artefact.load_file(saved.parent / "other.npz")


def full_disk(*_):
    raise OSError(errno.ENOSPC, "No space left on device")


@pytest.mark.parametrize("step", ["fsync", "replace"])
def test_a_failing_write_leaves_the_old_artefact_and_no_temporary_file(saved, monkeypatch, step):
    before = sorted(os.listdir(saved.parent))
    with monkeypatch.context() as broken:
        broken.setattr(os, step, full_disk)
        with pytest.raises(OSError, match="No space") as failure:
            artefact.write_bytes(saved, b"new")
        assert failure.value.filename == str(saved)
        if step == "fsync":  # a file and its sidecar cannot be renamed in one step
            with pytest.raises(OSError, match="No space"):
                artefact.save_file(saved, b"new", {})
    assert sorted(os.listdir(saved.parent)) == before
    assert artefact.load_file(saved)[1] == {"seed": 3}


def test_a_failing_sidecar_leaves_the_file_unfinished(saved, monkeypatch):
    with monkeypatch.context() as broken:
        broken.setattr(artefact, "save_record", full_disk)
        with pytest.raises(OSError, match="No space"):
            artefact.save_file(saved, b"new", {})
    assert not artefact.is_intact(saved)
    with pytest.raises(CorruptArtefact, match="3 bytes, but"):
        artefact.load_file(saved)


def test_a_failing_first_sidecar_leaves_the_file_unfinished(tmp_path, monkeypatch):
    monkeypatch.setattr(artefact, "save_record", full_disk)
    with pytest.raises(OSError, match="No space"):
        artefact.save_file(tmp_path / "x", b"new", {})
    with pytest.raises(CorruptArtefact, match="never finished"):
        artefact.load_file(tmp_path / "x")


def test_saving_the_same_bytes_again_never_shows_an_unfinished_file(saved, monkeypatch):
    """Two writers of one artefact: the second must not take back what the first has finished."""
    data = saved.read_bytes()
    replace, states = os.replace, []
    monkeypatch.setattr(
        os, "replace", lambda *paths: (replace(*paths), states.append(artefact.is_intact(saved)))
    )
    artefact.save_file(saved, data, {"seed": 3})
    assert states == [True, True]


def test_a_manifest_that_is_not_json_leaves_no_finished_file(tmp_path):
    with pytest.raises(TypeError):
        artefact.save_file(tmp_path / "x", b"data", {"when": object()})
    assert not artefact.is_intact(tmp_path / "x")


def test_a_file_is_replaced(saved):
    artefact.save_arrays(saved, {"y": np.ones(2)}, {"seed": 9})
    arrays, manifest = artefact.load_arrays(saved)
    assert list(arrays) == ["y"]
    assert manifest == {"seed": 9}


def test_key_depends_on_the_content_and_not_on_the_order():
    one = {"a": 1, "b": {"c": [1, 2], "d": None}}
    other = {"b": {"d": None, "c": [1, 2]}, "a": 1}
    assert artefact.key(one) == artefact.key(other)
    assert len(artefact.key(one)) == 16
    assert int(artefact.key(one), 16) >= 0
    for changed in ({**one, "a": 2}, {**one, "b": {"c": [2, 1], "d": None}}, {"a": 1}):
        assert artefact.key(changed) != artefact.key(one)


def test_record_checks_itself(tmp_path):
    path = tmp_path / "record.json"
    record = {"loss": 0.1, "nested": {"list": [1, None, True, "é"]}}
    artefact.save_record(path, record)
    assert artefact.load_record(path) == record
    path.write_text(path.read_text().replace("0.1", "0.2"))
    with pytest.raises(CorruptArtefact, match=r"record\.json"):
        artefact.load_record(path)
    path.write_text(json.dumps({"loss": 0.1}))
    with pytest.raises(CorruptArtefact, match=r"record\.json"):
        artefact.load_record(path)


def test_record_keeps_nan(tmp_path):
    artefact.save_record(tmp_path / "r.json", {"x": float("nan")})
    assert np.isnan(artefact.load_record(tmp_path / "r.json")["x"])


@pytest.mark.parametrize(
    "array",
    [
        np.arange(12, dtype=np.uint16).reshape(2, 3, 2),
        np.arange(12.0).reshape(3, 4).T,
        np.zeros((0, 5), np.int8),
        np.full((), np.nan),
    ],
    ids=["tokens", "transposed", "empty", "scalar"],
)
def test_an_array_is_an_ordinary_npy_file(tmp_path, array):
    path = tmp_path / "x.npy"
    artefact.save_array(path, array, {"first": 0})
    read = np.load(path, mmap_mode=None if array.size == 0 else "r")
    assert read.dtype == array.dtype
    np.testing.assert_array_equal(read, array)
    record = artefact.check_file(path)
    assert record["manifest"] == {"first": 0}
    assert record["bytes"] == path.stat().st_size
    assert record["sha256"] == hashlib.sha256(path.read_bytes()).hexdigest()


def test_what_killed_writers_left_is_removed_and_what_living_ones_write_is_not(tmp_path):
    path = tmp_path / "x[1].npy"  # a name that is also a pattern
    abandoned, foreign = tmp_path / ".x[1].npy.1.ab.tmp", tmp_path / ".y.npy.1.ab.tmp"
    empty = tmp_path / ".x[1].npy.2.ab.tmp"
    empty.touch()
    for file in (abandoned, foreign):
        file.write_bytes(b"half")
    with artefact.replacing(path) as mine:
        mine.write(b"mine")
        mine.flush()
        assert not abandoned.exists()
        assert not empty.exists()
        artefact.write_bytes(path, b"theirs")
        assert path.read_bytes() == b"theirs"
    assert path.read_bytes() == b"mine"
    assert sorted(os.listdir(tmp_path)) == [foreign.name, path.name]


def test_of_two_records_created_at_one_place_the_first_stays(tmp_path):
    path = tmp_path / "made" / "claim.json"
    assert artefact.create_record(path, {"seed": 1}) == {"seed": 1}
    assert artefact.create_record(path, {"seed": 2}) == {"seed": 1}
    assert os.listdir(path.parent) == ["claim.json"]
    path.write_text("{")
    with pytest.raises(CorruptArtefact, match=r"claim\.json"):
        artefact.create_record(path, {"seed": 2})


def test_abandoned_files_anywhere_below_a_folder_go_and_no_others(tmp_path):
    kept = [tmp_path / "x.tmp", tmp_path / ".x.tmp", tmp_path / ".x.1.ab.tmp.npy"]
    left = [tmp_path / ".x.1.0af3.tmp", tmp_path / "version_0" / "a" / ".last.ckpt.7.ab.tmp"]
    left[1].parent.mkdir(parents=True)
    for file in (*kept, left[0]):
        file.write_bytes(b"half")
    left[1].touch()  # killed before its first byte
    outside = tmp_path.parent / "outside"
    outside.write_bytes(b"mine")
    link = tmp_path / ".y.1.ab.tmp"
    link.symlink_to(outside)
    with artefact.replacing(tmp_path / "version_1" / "z") as file:
        file.write(b"living")
        artefact.remove_abandoned(tmp_path)
    assert (tmp_path / "version_1" / "z").read_bytes() == b"living"
    assert not any(path.exists() for path in left)
    assert all(path.exists() for path in kept)
    assert outside.read_bytes() == b"mine"
    artefact.remove_abandoned(tmp_path / "nowhere")


def test_a_writer_whose_file_is_removed_before_it_is_locked_takes_another(tmp_path, monkeypatch):
    flock, calls = fcntl.flock, []

    def late(file, how):
        if not calls:  # another writer takes it for abandoned
            calls.append(os.listdir(tmp_path))
            artefact.remove_abandoned(tmp_path)
        flock(file, how)

    monkeypatch.setattr(fcntl, "flock", late)
    artefact.write_bytes(tmp_path / "x", b"data")
    assert len(calls[0]) == 1
    assert (tmp_path / "x").read_bytes() == b"data"
    assert os.listdir(tmp_path) == ["x"]


def test_on_a_disk_without_locks_files_are_written_and_temporaries_stay(tmp_path, monkeypatch):
    monkeypatch.setattr(fcntl, "flock", no_such_thing)
    (tmp_path / ".x.1.ab.tmp").write_bytes(b"whose?")
    artefact.write_bytes(tmp_path / "x", b"data")
    assert sorted(os.listdir(tmp_path)) == [".x.1.ab.tmp", "x"]


def test_a_second_name_of_a_record_goes_when_the_record_is_asked_for_again(tmp_path):
    path = tmp_path / "claim.json"
    artefact.create_record(path, {"seed": 1})
    os.link(path, tmp_path / ".claim.json.1.ab.tmp")  # killed before this was removed
    assert artefact.create_record(path, {"seed": 2}) == {"seed": 1}
    assert os.listdir(tmp_path) == ["claim.json"]


def no_such_thing(*_):
    raise OSError(errno.EPERM, "Operation not permitted")


def test_on_a_disk_without_hard_links_the_first_record_stays(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "link", no_such_thing)
    path = tmp_path / "claim.json"
    assert artefact.create_record(path, {"seed": 1}) == {"seed": 1}
    assert artefact.create_record(path, {"seed": 2}) == {"seed": 1}
    with pytest.raises(FileExistsError), artefact.replacing(path, exclusive=True) as file:
        file.write(b"other")
    assert artefact.load_record(path) == {"seed": 1}
    assert os.listdir(tmp_path) == ["claim.json"]
    monkeypatch.setattr(os, "replace", full_disk)
    with pytest.raises(OSError, match="No space"):
        artefact.create_record(tmp_path / "other.json", {})
    assert os.listdir(tmp_path) == ["claim.json"], "the name is free again"


def test_without_hard_links_a_second_writer_waits_for_the_first_ones_record(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "link", no_such_thing)
    path = tmp_path / "claim.json"
    path.touch()  # as the first writer leaves it for a moment
    monkeypatch.setattr(time, "sleep", lambda _: artefact.save_record(path, {"seed": 1}))
    assert artefact.create_record(path, {"seed": 2}) == {"seed": 1}


@pytest.mark.parametrize("has_links", [True, False])
def test_a_file_has_a_second_name_or_a_copy_with_it(tmp_path, monkeypatch, has_links):
    (tmp_path / "x").write_bytes(b"data")
    if not has_links:
        monkeypatch.setattr(os, "link", no_such_thing)
    artefact.link(tmp_path / "x", tmp_path / "y")
    assert (tmp_path / "y").samefile(tmp_path / "x") == has_links
    assert (tmp_path / "y").read_bytes() == b"data"
    with pytest.raises(FileExistsError):
        artefact.link(tmp_path / "x", tmp_path / "y")
    assert sorted(os.listdir(tmp_path)) == ["x", "y"]


def test_a_name_in_a_manifest_lies_below_its_folder(tmp_path):
    assert artefact.below(tmp_path, "cells/ab/x.npz") == tmp_path / "cells" / "ab" / "x.npz"
    for name in ("../x", "/etc/x", "a/../../x", "", ".", "a//b", "a/", "x\0", None, 7, ["x"]):
        with pytest.raises(CorruptArtefact, match="names no file below") as refused:
            artefact.below(tmp_path, name)
        assert repr(name) in str(refused.value)


def test_an_error_without_a_number_keeps_its_text(tmp_path):
    with (
        pytest.raises(OSError, match=r"^the other end is gone$"),
        artefact.replacing(tmp_path / "x"),
    ):
        raise OSError("the other end is gone")
    assert list(tmp_path.iterdir()) == []


def test_a_record_nested_beyond_reading_is_damaged(tmp_path):
    path = tmp_path / "cell.json"
    path.write_text("[" * 100_000 + "]" * 100_000)
    with pytest.raises(CorruptArtefact, match="not a complete record"):
        artefact.load_record(path)


def test_lines_that_are_no_json_are_damaged(tmp_path):
    path = tmp_path / "results.jsonl"
    artefact.save_file(path, b'{"a": 1}\n{\n', {})
    with pytest.raises(CorruptArtefact, match="not lines of JSON"):
        artefact.load_lines(path)
