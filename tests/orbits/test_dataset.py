import zipfile

import numpy as np
import pytest

from orbits import artefacts, dataset, protocols
from orbits.dataset import OrbitDataset, generate

COUNTS = {"train": 10, "val": 3}
SMALL = protocols.get("identifiable", {"n_points": 6})


@pytest.fixture(autouse=True)
def _small_shards(monkeypatch):
    monkeypatch.setattr(dataset, "SHARD", 4)


@pytest.fixture
def made(tmp_path):
    return generate(tmp_path / "data", SMALL, COUNTS, seed=3, progress=False)


def files(folder):
    return {p.relative_to(folder).as_posix(): p for p in folder.rglob("*") if p.is_file()}


@pytest.mark.parametrize("population", protocols.POPULATIONS)
@pytest.mark.parametrize("name", protocols.names())
def test_export_equals_the_protocol(tmp_path, name, population):
    protocol = protocols.get(name, {"n_points": 7})
    generate(tmp_path, protocol, COUNTS, seed=2, population=population, progress=False)
    for split, count in COUNTS.items():
        data = OrbitDataset(tmp_path, split)
        expected = protocol.batch(2, split, np.arange(count), population)
        assert len(data) == count
        for index in range(count):
            assert set(data[index]) == set(expected)
            for key, array in data[index].items():
                assert array.dtype == expected[key].dtype
                np.testing.assert_array_equal(array, expected[key][index])


def test_layout_of_the_folder(made):
    assert set(files(made)) == {
        "config.json",
        "dataset.json",
        *(f"train/0000{k}.npz{end}" for k in range(3) for end in ("", ".json")),
        "val/00000.npz",
        "val/00000.npz.json",
    }
    ids = [OrbitDataset(made).shard(k)["sequence_id"].tolist() for k in range(3)]
    assert ids == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]
    with zipfile.ZipFile(made / "train/00000.npz") as archive:
        assert {entry.date_time[0] for entry in archive.infolist()} == {1980}  # no clock in bytes


def bytes_of_shards(folder):
    return {name: p.read_bytes() for name, p in files(folder).items() if name.endswith(".npz")}


def interrupted(folder):
    (folder / "train/00001.npz").unlink()
    (folder / "dataset.json").unlink()


def unfinished(folder):
    (folder / "train/00001.npz.json").unlink()
    (folder / "train/00001.npz").write_bytes(b"half")


def damaged(folder):
    path = folder / "train/00001.npz"
    path.write_bytes(path.read_bytes()[:-5])


@pytest.mark.parametrize("damage", [interrupted, unfinished, damaged])
def test_running_again_makes_the_same_bytes(made, damage, monkeypatch):
    before, index = bytes_of_shards(made), dataset.read_index(made)["sha256"]
    untouched = (made / "train/00000.npz").stat().st_mtime_ns
    damage(made)
    generate(made, SMALL, COUNTS, seed=3, progress=False)
    assert bytes_of_shards(made) == before
    assert dataset.read_index(made)["sha256"] == index
    assert (made / "train/00000.npz").stat().st_mtime_ns == untouched


def test_an_interrupted_export_is_not_a_dataset(made):
    interrupted(made)
    with pytest.raises(FileNotFoundError, match=r"dataset\.json"):
        OrbitDataset(made)


@pytest.mark.parametrize(
    "change",
    [
        {"seed": 4},
        {"population": "pretrain"},
        {"counts": {"train": 11, "val": 3}},
        {"protocol": protocols.get("identifiable", {"n_points": 8})},
    ],
    ids=lambda change: next(iter(change)),
)
def test_a_folder_holds_one_dataset(made, change):
    before = {name: path.read_bytes() for name, path in files(made).items()}
    call = {"protocol": SMALL, "counts": COUNTS, "seed": 3, **change}
    with pytest.raises(ValueError, match="another dataset"):
        generate(made, call.pop("protocol"), call.pop("counts"), progress=False, **call)
    assert {name: path.read_bytes() for name, path in files(made).items()} == before


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"counts": {"train": 0}}, "0"),
        ({"counts": {"train": 5, "dev": 5}}, "unknown split 'dev'"),
        ({"population": "planets"}, "unknown population 'planets'"),
        ({"seed": -1}, "seed"),
        ({"seed": 2**64}, "seed"),
    ],
)
def test_bad_input_writes_nothing(tmp_path, change, message):
    call = {"counts": COUNTS, "seed": 0, **change}
    with pytest.raises(ValueError, match=message):
        generate(tmp_path / "data", SMALL, call.pop("counts"), progress=False, **call)
    assert not (tmp_path / "data").exists()


def test_a_foreign_folder_is_left_alone(tmp_path):
    (tmp_path / "thesis.tex").write_text("years of work")
    with pytest.raises(ValueError, match="not empty"):
        generate(tmp_path, SMALL, COUNTS, progress=False)
    assert set(files(tmp_path)) == {"thesis.tex"}


def test_reader_errors(made, tmp_path):
    with pytest.raises(FileNotFoundError, match="nowhere"):
        OrbitDataset(tmp_path / "nowhere")
    with pytest.raises(ValueError, match="no split 'test'; choose from train, val"):
        OrbitDataset(made, "test")
    data = OrbitDataset(made, "val")
    for index in (3, -1):
        with pytest.raises(IndexError, match=f"{index}"):
            data[index]
    assert len(list(data)) == 3  # iteration ends at the IndexError


@pytest.mark.parametrize("name", ["train/00001.npz", "train/00001.npz.json"])
def test_a_damaged_shard_is_refused_by_name_and_the_others_are_read(made, name):
    path = made / name
    path.write_bytes(path.read_bytes()[:-2])
    data = OrbitDataset(made, "train")
    assert data[0]["sequence_id"] == 0
    assert data[9]["sequence_id"] == 9
    with pytest.raises(artefacts.CorruptArtefact, match=r"00001\.npz"):
        data[4]


def test_a_shard_of_another_dataset_is_refused_by_name(made, tmp_path):
    other = generate(tmp_path / "other", SMALL, COUNTS, seed=4, progress=False)
    for end in ("", ".json"):
        name = f"train/00000.npz{end}"
        (made / name).write_bytes((other / name).read_bytes())
    with pytest.raises(artefacts.CorruptArtefact, match=r"00000\.npz.*not the shard"):
        OrbitDataset(made)[0]


def test_an_edited_index_is_refused(made):
    index = made / "dataset.json"
    index.write_text(index.read_text().replace('"train": 10', '"train": 11'))
    with pytest.raises(artefacts.CorruptArtefact, match=r"dataset\.json"):
        OrbitDataset(made)


def test_a_missing_shard_is_named(made):
    (made / "train/00002.npz").unlink()
    with pytest.raises(FileNotFoundError, match=r"00002\.npz"):
        OrbitDataset(made)[8]
