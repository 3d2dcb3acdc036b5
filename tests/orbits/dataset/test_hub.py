"""The export for dataset hubs: what ``load_dataset`` reads is the dataset, and its card says so."""

import sys

import numpy as np
import pytest
import yaml

from orbits import protocols
from orbits.__main__ import main
from orbits.dataset import OrbitDataset, generate
from orbits.dataset.hub import CARD, COLUMNS, SPLITS, write_hub

parquet = pytest.importorskip("pyarrow.parquet")
COUNTS = {"train": 5, "val": 2, "test": 3}


def make(folder, population="force"):
    protocol = protocols.get("identifiable", {"n_points": 6})
    generate(folder, protocol, COUNTS, population=population, sequences_per_shard=2, progress=False)
    return folder


@pytest.fixture
def data(tmp_path):
    return make(tmp_path / "data")


def header(out):
    """Return the header and the text of a card."""
    _, head, text = (out / CARD).read_text().split("---\n", 2)
    return yaml.safe_load(head), text


@pytest.mark.parametrize("population", ["force", "pretrain"])
def test_the_files_that_the_card_names_hold_the_dataset(tmp_path, population):
    data = make(tmp_path / "data", population)
    out = write_hub(data, tmp_path / "new" / "hub")
    head, text = header(out)
    (config,) = head["configs"]
    assert [each["split"] for each in config["data_files"]] == [*SPLITS.values()]
    for (ours, theirs), each in zip(SPLITS.items(), config["data_files"], strict=True):
        assert each["split"] == theirs
        files = sorted(out.glob(each["path"]))
        assert len(files) == -(-COUNTS[ours] // 2)
        expected = OrbitDataset(data, ours).batch(range(COUNTS[ours]))
        tables = [parquet.read_table(file) for file in files]
        for name, values in expected.items():
            found = np.array([row for table in tables for row in table[name].to_pylist()])
            np.testing.assert_array_equal(found, values)
            assert name in COLUMNS
            assert f"| `{name}` |" in text
        assert {*tables[0].column_names} == {*expected}
    assert head["license"] == "cc0-1.0"
    assert OrbitDataset(data).record["dataset_sha256"] in text
    assert str(tmp_path) not in text
    assert [x.name for x in out.parent.iterdir()] == ["hub"], "nothing unfinished is left"


@pytest.mark.full
def test_load_dataset_reads_the_folder(data, tmp_path, monkeypatch):
    datasets = pytest.importorskip("datasets")
    monkeypatch.chdir(tmp_path)
    out = write_hub(data, "hub")
    found = datasets.load_dataset("hub", cache_dir=str(tmp_path / "cache"))
    assert {split: len(rows) for split, rows in found.items()} == {
        theirs: COUNTS[ours] for ours, theirs in SPLITS.items()
    }
    expected = OrbitDataset(data, "val").batch(range(2))
    for name, values in expected.items():
        np.testing.assert_array_equal(np.array(found["validation"][:][name]), values)
    code = header(out)[1].split("```python\n")[1].split("```")[0]
    monkeypatch.setattr(datasets, "load_dataset", lambda name, split: found[split])
    names = {}
    exec(code, names)
    places = OrbitDataset(data).layout.decode(OrbitDataset(data)[0]["tokens"][1:])
    np.testing.assert_allclose(names["places"], places, rtol=1e-12)


def test_the_command_writes_one_split_and_no_folder_twice(data, tmp_path, capsys, refusal):
    out = str(tmp_path / "hub")
    words = ["export", str(data), "--form", "hub", "--out", out, "--split", "test"]
    main(words)
    assert capsys.readouterr().out.startswith(
        f"written    {out}\nin Python: datasets.load_dataset("
    )
    assert [x.name for x in (tmp_path / "hub" / "data").iterdir()] == [
        "test-00000-of-00002.parquet",
        "test-00001-of-00002.parquet",
    ]
    assert "hub exists; choose another folder" in refusal(main, words)


def test_what_cannot_be_exported_leaves_nothing(data, tmp_path, monkeypatch):
    with pytest.raises(ValueError, match="has no split 'dev'; choose from train"):
        write_hub(data, tmp_path / "hub", ["dev"])
    shard = data / "test/state/00000.npy"
    shard.write_bytes(shard.read_bytes()[:-1])
    with pytest.raises(ValueError, match=r"state/00000\.npy"):
        write_hub(data, tmp_path / "hub")
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    with pytest.raises(ValueError, match=r"pyarrow is not installed; pip install .*parquet"):
        write_hub(data, tmp_path / "hub")
    assert [x.name for x in tmp_path.iterdir()] == ["data"]
