import pickle
import shutil

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader

from orbits import protocols
from orbits.__main__ import main
from orbits.dataset import OrbitDataset, generate, read_index, verify
from orbits.dataset.read import dataset_hash
from orbits.runs import artefact
from tests.orbits.worlds import TIERED

COUNTS = {"train": 10, "val": 3}
SMALL = protocols.get("identifiable", {"n_points": 6})
DERIVED = {"sequence_id", "body", "dt"}


def make(folder, **changes):
    call = {"protocol": SMALL, "counts": COUNTS, "seed": 3, "sequences_per_shard": 4, **changes}
    assert generate(folder, call.pop("protocol"), call.pop("counts"), progress=False, **call) == 0
    return folder


@pytest.fixture(scope="module")
def original(tmp_path_factory):
    return make(tmp_path_factory.mktemp("original") / "data")


@pytest.fixture
def made(original, tmp_path):
    """Return a copy of a dataset, to read and to damage."""
    return shutil.copytree(original, tmp_path / "data")


def files(folder):
    return {p.relative_to(folder).as_posix(): p for p in folder.rglob("*") if p.is_file()}


@pytest.mark.parametrize(("name", "population"), TIERED)
def test_what_is_read_is_what_the_protocol_makes(tmp_path, name, population):
    protocol = protocols.get(name, {"n_points": 25})
    make(tmp_path, protocol=protocol, population=population, seed=2)
    for split, count in COUNTS.items():
        data = OrbitDataset(tmp_path, split)
        expected = protocol.batch(2, split, np.arange(count), population)
        del expected["coordinates"]
        assert len(data) == count
        scattered = [count - 1, 0, 2, 2]
        for read, rows in [(data.batch(range(count)), slice(None)),
                           (data.batch(scattered), scattered)]:  # fmt: skip
            assert set(read) == set(expected)
            for key, array in read.items():
                assert array.dtype == expected[key].dtype
                np.testing.assert_array_equal(array, expected[key][rows])
        for key, array in data[1].items():
            np.testing.assert_array_equal(array, expected[key][1])


@pytest.mark.parametrize("num_workers", [0, 2])
def test_a_loader_gives_the_batches_that_streaming_gives(made, num_workers):
    data = OrbitDataset(made)
    data[0]  # what is mapped already is not sent to a worker
    loader = DataLoader(data, batch_size=5, num_workers=num_workers)
    for start, batch in zip((0, 5), loader, strict=True):
        streamed = SMALL.batch(3, "train", np.arange(start, start + 5), "force")
        assert set(batch) == set(streamed) - {"coordinates"}
        for name, tensor in batch.items():
            torch.testing.assert_close(
                tensor, torch.from_numpy(streamed[name]), rtol=0, atol=0, equal_nan=True
            )


def test_a_copy_for_another_process_carries_no_data(made):
    data = OrbitDataset(made)
    size = len(pickle.dumps(data))
    data.batch(range(10))
    assert len(pickle.dumps(data)) == size
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(data))[9]["tokens"], data[9]["tokens"])


def test_a_dataset_prints_what_it_holds(made):
    data = OrbitDataset(made, "val")
    lines = repr(data).splitlines()
    assert lines[0].endswith("split val: 3 sequences; others: 10 train")
    assert lines[1] == "protocol  identifiable, law newton, seed 3"
    assert "tokens uint16 [7, 2]" in lines[2]
    data.record["config"]["protocol"]["law"] = "<b>"
    assert "law &lt;b&gt;, seed 3" in data._repr_html_()


def test_layout_of_the_folder(made):
    names = [f"{split}/{array}/0000{k}.npy" for split, n in (("train", 3), ("val", 1))
             for k in range(n) for array in ("tokens", "force", "state", "n_planets")]  # fmt: skip
    assert set(files(made)) == {
        "config.json",
        "dataset.json",
        *names,
        *(f"{name}.json" for name in names),
    }
    index = read_index(made)
    assert list(index["sha256"]) == names  # the order in which the dataset hash takes them
    assert index["dataset_sha256"] == dataset_hash(index["sha256"])
    ordinary = [np.load(made / f"train/tokens/0000{k}.npy") for k in range(3)]
    assert [len(shard) for shard in ordinary] == [4, 4, 2]
    expected = SMALL.batch(3, "train", np.arange(10), "force")["tokens"]
    np.testing.assert_array_equal(np.concatenate(ordinary), expected)
    sidecar = artefact.load_record(made / "train/tokens/00002.npy.json")
    assert sidecar["sha256"] == artefact.sha256(made / "train/tokens/00002.npy")
    about = sidecar["manifest"]
    assert (about["split"], about["first"], about["n"], about["seed"]) == ("train", 8, 2, 3)
    assert set(about) >= {"config", "code"}


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


def test_an_older_format_is_refused(made):
    index = read_index(made)
    artefact.save_record(made / "dataset.json", {**index, "schema": 1})
    with pytest.raises(ValueError, match="format 1"):
        OrbitDataset(made)


def truncate(path):
    path.write_bytes(path.read_bytes()[:-2])


def flip_a_bit(path):
    data = bytearray(path.read_bytes())
    data[-3] ^= 4
    path.write_bytes(bytes(data))


def remove(path):
    path.unlink()


DAMAGES = [
    (truncate, "train/tokens/00001.npy"),
    (flip_a_bit, "train/tokens/00001.npy"),
    (flip_a_bit, "train/state/00001.npy"),
    (remove, "train/n_planets/00001.npy"),
    (truncate, "train/tokens/00001.npy.json"),
    (remove, "train/tokens/00001.npy.json"),
]
damages = pytest.mark.parametrize(
    ("damage", "name"), DAMAGES, ids=[f"{damage.__name__}-{name}" for damage, name in DAMAGES]
)


@damages
def test_a_damaged_shard_is_refused_by_name_and_the_others_are_read(made, damage, name):
    damage(made / name)
    data = OrbitDataset(made, "train")
    assert data[0]["sequence_id"] == 0
    assert data[9]["sequence_id"] == 9
    with pytest.raises((artefact.CorruptArtefact, FileNotFoundError), match=r"00001\.npy"):
        data[4]


@damages
def test_verify_names_what_is_bad_and_generate_repairs_it(made, damage, name):
    before, index = files(made), read_index(made)
    content = {name: path.read_bytes() for name, path in before.items() if name.endswith(".npy")}
    untouched = before["train/tokens/00000.npy"].stat().st_mtime_ns
    assert verify(made, progress=False) == []
    damage(made / name)
    (problem,) = verify(made, progress=False)
    assert str(made / name).removesuffix(".json") in problem
    make(made)
    assert verify(made, progress=False) == []
    assert {name: (made / name).read_bytes() for name in content} == content
    assert read_index(made) == index
    assert before["train/tokens/00000.npy"].stat().st_mtime_ns == untouched


def test_a_shard_of_another_dataset_is_refused_by_name_and_replaced(made, tmp_path):
    other = make(tmp_path / "other", seed=4)
    for end in ("", ".json"):
        name = f"train/tokens/00000.npy{end}"
        (made / name).write_bytes((other / name).read_bytes())
    with pytest.raises(artefact.CorruptArtefact, match=r"00000\.npy.*not the file"):
        OrbitDataset(made)[0]
    assert len(verify(made, progress=False)) == 1
    make(made)
    assert verify(made, progress=False) == []


@pytest.mark.parametrize("damage", [truncate, flip_a_bit, remove])
@pytest.mark.parametrize("name", ["dataset.json", "config.json"])
def test_a_damaged_record_is_named_and_made_again(made, damage, name):
    index = read_index(made)
    damage(made / name)
    (problem,) = verify(made, progress=False)
    assert name in problem
    if name == "dataset.json":
        with pytest.raises((artefact.CorruptArtefact, FileNotFoundError), match=r"dataset\.json"):
            OrbitDataset(made)
    make(made)
    assert verify(made, progress=False) == []
    assert read_index(made)["dataset_sha256"] == index["dataset_sha256"]


def test_verify_needs_a_dataset(tmp_path):
    with pytest.raises(FileNotFoundError, match="no dataset"):
        verify(tmp_path, progress=False)


def claims(folder, **changes):
    record = read_index(folder)
    artefact.save_record(folder / "dataset.json", {**record, **changes})


LONG = 10**12


@pytest.mark.parametrize(
    "lie",
    [
        lambda index: {"config": {**index["config"], "counts": {"train": LONG, "val": 3}}},
        lambda index: {"config": {**index["config"], "sequences_per_shard": LONG}},
        lambda index: {"config": {**index["config"], "sequences_per_shard": 0}},
        lambda index: {
            "arrays": {**index["arrays"], "tokens": {"dtype": "<u2", "shape": [LONG, 2]}}
        },
        lambda index: {"sha256": {f"../{x}": value for x, value in index["sha256"].items()}},
        lambda index: {"arrays": {"tokens": None}},
        lambda index: {"bytes": 10**15},
    ],
)
def test_an_index_that_claims_what_its_files_cannot_hold_is_refused(made, lie, refusal):
    claims(made, **lie(read_index(made)))
    (problem,) = verify(made, progress=False)
    assert "dataset.json: its files cannot hold the sequences that it claims" in problem
    for command in (["plot", str(made)], ["export", str(made), "--out", "x.h5"]):
        assert "dataset.json: its files cannot hold" in refusal(main, command)


def test_a_shard_of_another_shape_than_the_index_claims_is_refused(made):
    """The index agrees with itself, so only the file shows that it lies."""
    index = read_index(made)
    rows = LONG + index["arrays"]["tokens"]["shape"][0]
    index["arrays"]["tokens"] = {"dtype": "<u2", "shape": [rows, 2]}
    claims(made, arrays=index["arrays"], bytes=index["bytes"] + 4 * LONG * 13)
    with pytest.raises(artefact.CorruptArtefact, match=r"00000\.npy: holds uint16 .* claims <u2"):
        OrbitDataset(made)[0]
    assert len(verify(made, progress=False)) == len(list(made.rglob("tokens/*.npy")))
