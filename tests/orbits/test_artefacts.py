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
    with pytest.raises(CorruptArtefact, match="never finished"):
        artefacts.load_file(saved)


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
