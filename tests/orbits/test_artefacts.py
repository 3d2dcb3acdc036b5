import errno
import hashlib
import json
import os

import numpy as np
import pytest

from orbits import artefacts
from orbits.artefacts import CorruptArtefact


@pytest.fixture
def saved(tmp_path):
    path = tmp_path / "made" / "data.npz"
    artefacts.save_arrays(path, {"x": np.arange(6.0).reshape(2, 3)}, {"seed": 3})
    return path


def test_round_trip(saved):
    arrays, manifest = artefacts.load_arrays(saved, required=["x"])
    np.testing.assert_array_equal(arrays["x"], [[0, 1, 2], [3, 4, 5]])
    assert manifest == {"seed": 3}
    assert artefacts.is_intact(saved)
    assert artefacts.sha256(saved) == hashlib.sha256(saved.read_bytes()).hexdigest()
    assert sorted(os.listdir(saved.parent)) == ["data.npz", "data.npz.json"]


def test_missing_array_is_named(saved):
    with pytest.raises(ValueError, match="no array y"):
        artefacts.load_arrays(saved, required=["x", "y"])


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
        artefacts.load_arrays(saved)


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
    damage(artefacts.sidecar(saved))
    with pytest.raises(CorruptArtefact, match=r"data\.npz"):
        artefacts.load_arrays(saved)


def test_a_file_without_a_sidecar_is_not_done(saved):
    artefacts.sidecar(saved).unlink()
    assert not artefacts.is_intact(saved)
    with pytest.raises(FileNotFoundError):
        artefacts.load_file(saved.parent / "other.npz")


def full_disk(*_):
    raise OSError(errno.ENOSPC, "No space left on device")


@pytest.mark.parametrize("step", ["fsync", "replace"])
def test_a_failing_write_leaves_the_old_artefact_and_no_temporary_file(saved, monkeypatch, step):
    before = sorted(os.listdir(saved.parent))
    with monkeypatch.context() as broken:
        broken.setattr(os, step, full_disk)
        with pytest.raises(OSError, match="No space"):
            artefacts.write_bytes(saved, b"new")
        if step == "fsync":  # a file and its sidecar cannot be renamed in one step
            with pytest.raises(OSError, match="No space"):
                artefacts.save_file(saved, b"new", {})
    assert sorted(os.listdir(saved.parent)) == before
    assert artefacts.load_file(saved)[1] == {"seed": 3}


def test_a_failing_sidecar_leaves_the_file_unfinished(saved, monkeypatch):
    with monkeypatch.context() as broken:
        broken.setattr(artefacts, "save_record", full_disk)
        with pytest.raises(OSError, match="No space"):
            artefacts.save_file(saved, b"new", {})
    assert not artefacts.is_intact(saved)
    with pytest.raises(CorruptArtefact, match="3 bytes, but"):
        artefacts.load_file(saved)


def test_a_failing_first_sidecar_leaves_the_file_unfinished(tmp_path, monkeypatch):
    monkeypatch.setattr(artefacts, "save_record", full_disk)
    with pytest.raises(OSError, match="No space"):
        artefacts.save_file(tmp_path / "x", b"new", {})
    with pytest.raises(CorruptArtefact, match="never finished"):
        artefacts.load_file(tmp_path / "x")


def test_saving_the_same_bytes_again_never_shows_an_unfinished_file(saved, monkeypatch):
    """Two writers of one artefact: the second must not take back what the first has finished."""
    data = saved.read_bytes()
    replace, states = os.replace, []
    monkeypatch.setattr(
        os, "replace", lambda *paths: (replace(*paths), states.append(artefacts.is_intact(saved)))
    )
    artefacts.save_file(saved, data, {"seed": 3})
    assert states == [True, True]


def test_a_manifest_that_is_not_json_leaves_no_finished_file(tmp_path):
    with pytest.raises(TypeError):
        artefacts.save_file(tmp_path / "x", b"data", {"when": object()})
    assert not artefacts.is_intact(tmp_path / "x")


def test_a_file_is_replaced(saved):
    artefacts.save_arrays(saved, {"y": np.ones(2)}, {"seed": 9})
    arrays, manifest = artefacts.load_arrays(saved)
    assert list(arrays) == ["y"]
    assert manifest == {"seed": 9}


def test_key_depends_on_the_content_and_not_on_the_order():
    one = {"a": 1, "b": {"c": [1, 2], "d": None}}
    other = {"b": {"d": None, "c": [1, 2]}, "a": 1}
    assert artefacts.key(one) == artefacts.key(other)
    assert len(artefacts.key(one)) == 16
    assert int(artefacts.key(one), 16) >= 0
    for changed in ({**one, "a": 2}, {**one, "b": {"c": [2, 1], "d": None}}, {"a": 1}):
        assert artefacts.key(changed) != artefacts.key(one)


def test_record_checks_itself(tmp_path):
    path = tmp_path / "record.json"
    record = {"loss": 0.1, "nested": {"list": [1, None, True, "é"]}}
    artefacts.save_record(path, record)
    assert artefacts.load_record(path) == record
    path.write_text(path.read_text().replace("0.1", "0.2"))
    with pytest.raises(CorruptArtefact, match=r"record\.json"):
        artefacts.load_record(path)
    path.write_text(json.dumps({"loss": 0.1}))
    with pytest.raises(CorruptArtefact, match=r"record\.json"):
        artefacts.load_record(path)


def test_record_keeps_nan(tmp_path):
    artefacts.save_record(tmp_path / "r.json", {"x": float("nan")})
    assert np.isnan(artefacts.load_record(tmp_path / "r.json")["x"])


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
    artefacts.save_array(path, array, {"first": 0})
    read = np.load(path, mmap_mode=None if array.size == 0 else "r")
    assert read.dtype == array.dtype
    np.testing.assert_array_equal(read, array)
    record = artefacts.check_file(path)
    assert record["manifest"] == {"first": 0}
    assert record["bytes"] == path.stat().st_size
    assert record["sha256"] == hashlib.sha256(path.read_bytes()).hexdigest()


def test_what_killed_writers_left_is_removed_and_what_living_ones_write_is_not(tmp_path):
    path = tmp_path / "x[1].npy"  # a name that is also a pattern
    abandoned, foreign = tmp_path / ".x[1].npy.1.ab.tmp", tmp_path / ".y.npy.1.ab.tmp"
    for file in (abandoned, foreign):
        file.write_bytes(b"half")
    with artefacts.replacing(path) as mine:
        mine.write(b"mine")
        mine.flush()
        assert not abandoned.exists()
        artefacts.write_bytes(path, b"theirs")
        assert path.read_bytes() == b"theirs"
    assert path.read_bytes() == b"mine"
    assert sorted(os.listdir(tmp_path)) == [foreign.name, path.name]


def test_of_two_records_created_at_one_place_the_first_stays(tmp_path):
    path = tmp_path / "made" / "claim.json"
    assert artefacts.create_record(path, {"seed": 1}) == {"seed": 1}
    assert artefacts.create_record(path, {"seed": 2}) == {"seed": 1}
    assert os.listdir(path.parent) == ["claim.json"]
    path.write_text("{")
    with pytest.raises(CorruptArtefact, match=r"claim\.json"):
        artefacts.create_record(path, {"seed": 2})


def test_a_failing_write_names_the_file(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "fsync", full_disk)
    with pytest.raises(OSError, match="No space") as failure:
        artefacts.write_bytes(tmp_path / "x", b"data")
    assert failure.value.filename == str(tmp_path / "x")


def test_an_error_without_a_number_keeps_its_text(tmp_path):
    with (
        pytest.raises(OSError, match=r"^the other end is gone$"),
        artefacts.replacing(tmp_path / "x"),
    ):
        raise OSError("the other end is gone")
    assert list(tmp_path.iterdir()) == []


def test_two_runs_do_not_share_a_folder(tmp_path):
    with (
        artefacts.lock(tmp_path / "out"),
        pytest.raises(ValueError, match="another run is using"),
        artefacts.lock(tmp_path / "out"),
    ):
        pass
    with artefacts.lock(tmp_path / "out"):
        pass
