"""Text corpora, their splits, and the windows made from them."""

import hashlib
import itertools
import platform

import numpy as np
import pytest
import torch

from tests.worldmodel.text_file import data
from worldmodel.data.orbits import OrbitData
from worldmodel.data.sequences import StepSampler
from worldmodel.data.text import TextData
from worldmodel.text.corpus import read_corpus, split_of
from worldmodel.text.tokenizers import load_tokenizer

END = 256


def by_hand(names):
    """Sort names into splits by the rule as it is documented."""
    residues = {name: int(hashlib.sha256(name.encode()).hexdigest(), 16) % 20 for name in names}
    splits = {"val": [n for n in names if residues[n] == 0]}
    splits["test"] = [n for n in names if residues[n] == 1]
    splits["train"] = [n for n in names if residues[n] > 1]
    return {split: sorted(members) for split, members in splits.items()}


def test_a_folder_is_split_by_document_and_every_document_starts_with_end_of_text(tmp_path):
    folder = tmp_path / "texts"
    names = [f"{'sub/' if i % 2 else ''}{i}.{('txt', 'md', 'py')[i % 3]}" for i in range(120)]
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(f"this is document {name}. " * 3, "utf-8")
    (folder / "picture.png").write_bytes(b"\xff\x00")
    found = data(folder, seq_len=8)
    assert found.corpus_record["documents"] == 120
    for split, members in by_hand(names).items():
        expected = b"".join(b"\0" + (folder / name).read_bytes() for name in members)
        stream = found.streams[split]
        assert (stream == END).sum() == len(members) > 0
        assert bytes(np.where(stream == END, 0, stream).tolist()) == expected


def test_a_document_keeps_its_split_when_others_come_and_go():
    names = [f"{i}.txt" for i in range(1000)]
    for split, members in by_hand(names).items():
        assert {split_of(name) for name in members} == {split}


def test_a_file_is_split_by_position(file):
    found, text = data(file, seq_len=8), file.read_text("utf-8")
    parts = [load_tokenizer("bytes").decode(found.streams[s]) for s in ("train", "val", "test")]
    assert "".join(parts) == text
    sizes = np.array([len(part) for part in parts]) / len(text)
    np.testing.assert_allclose(sizes, [0.95, 0.025, 0.025], atol=1e-3)
    assert all(stream[0] == END for stream in found.streams.values())


def test_the_standard_library_is_the_default_corpus():
    corpus = read_corpus()
    names = [document.name for document in corpus.documents]
    assert names == sorted(names)
    assert {"json/decoder.py", "doctest.py", "this.py"} <= set(names)
    machine = ("site-packages", "_sysconfigdata", "config-", "sitecustomize")
    assert not [n for n in names if any(part in n for part in machine)]
    assert not [n for n in names if "test" in n.split("/")[:-1] or "tests" in n.split("/")[:-1]]
    sizes = {split: sum(map(len, corpus.texts(split))) for split in ("train", "val", "test")}
    assert sum(sizes.values()) > 5e6
    assert min(sizes["val"], sizes["test"]) > 1e5


def test_the_record_names_the_text_and_not_the_machine(tmp_path, file):
    record = data(file).corpus_record
    assert record["corpus"] == "numbers.txt"
    assert record["python"] == platform.python_version()
    assert str(tmp_path) not in str(record)
    assert sum(record["tokens"].values()) == 3 + len(file.read_bytes())
    assert data(file).corpus_record == record
    file.write_text(file.read_text("utf-8").replace("1 + 2", "1 + 3"), "utf-8")
    changed = data(file).corpus_record
    assert changed.pop("sha256") != record.pop("sha256")
    assert changed == record


def test_evaluation_windows_predict_every_token_once_and_in_order(file):
    found = data(file, seq_len=20, n_val=10**6, n_test=2, eval_batch_size=3)
    batches = list(found.val_dataloader())
    windows = torch.cat([batch["tokens"] for batch in batches])
    assert windows.dtype == torch.int64
    assert [len(batch["tokens"]) for batch in batches[:-1]] == [3] * (len(batches) - 1)
    stream = torch.from_numpy(found.streams["val"]).long()
    n = (len(stream) - 1) // 20
    assert windows.shape == (n, 21)
    torch.testing.assert_close(windows[:, 1:].flatten(), stream[1 : 20 * n + 1])
    torch.testing.assert_close(windows[:, 0], stream[: 20 * n : 20])
    assert sum(len(batch["tokens"]) for batch in found.test_dataloader()) == 2


def test_training_windows_are_a_pure_function_of_the_step(file):
    one, again, other = data(file), data(file), data(file, train_seed=5)
    stream = bytes(np.where(one.streams["train"] == END, 0, one.streams["train"]).tolist())
    batches = list(itertools.islice(one.train_dataloader(), 6))
    seen = []
    for step in (5, 0, 3):
        indices = StepSampler(8, None, seed=0).indices(step)
        alone = again.sequences("train", 2**62).__getitems__(indices)["tokens"]
        assert torch.equal(batches[step]["tokens"], alone)
        seen += [bytes(i % 256 for i in row) for row in alone.tolist()]
    assert all(window in stream for window in seen)
    assert len(set(seen)) == len(seen) == 24
    assert not torch.equal(next(iter(other.train_dataloader()))["tokens"], batches[0]["tokens"])
    same = zip(one.val_dataloader(), other.val_dataloader(), strict=True)
    assert all(torch.equal(a["tokens"], b["tokens"]) for a, b in same)


def test_choosing_text_on_the_command_line_keeps_no_default_of_orbits(file):
    orbits, text = OrbitData().hparams, TextData(str(file), seq_len=32).hparams
    shared = orbits.keys() & text.keys() - {"path"}  # given here, and None by default in both
    assert {"n_val", "n_test", "batch_size", "eval_batch_size", "train_seed"} <= shared
    assert {key: orbits[key] for key in shared} == {key: text[key] for key in shared}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"path": "nowhere.txt"}, r"'nowhere\.txt': no such file or folder"),
        ({"seq_len": 10_000}, r"train split has \d+ tokens, fewer than the 10001 of a window"),
        ({"seq_len": 300}, "val split"),
        ({"seq_len": 0}, "seq_len must be at least 1, got 0"),
        ({"n_val": 0}, "n_val must be at least 1"),
        ({"tokenizer": "gpt3"}, r"'gpt3' is no file; choose bytes, gpt2 or .* tokenizer\.json"),
    ],
)
def test_bad_arguments_are_named(file, changes, message):
    with pytest.raises((ValueError, FileNotFoundError), match=message):
        data(file, **changes)


def test_a_corpus_without_text_is_refused_by_name(tmp_path):
    (tmp_path / "empty.txt").write_bytes(b"")
    (tmp_path / "bad.txt").write_bytes(b"caf\xe9")
    (tmp_path / "folder").mkdir()
    with pytest.raises(ValueError, match=r"empty\.txt' has no text"):
        read_corpus(str(tmp_path / "empty.txt"))
    with pytest.raises(ValueError, match=r"folder' has no text; .*\.txt, \.md, \.py"):
        read_corpus(str(tmp_path / "folder"))
    with pytest.raises(ValueError, match=r"bad\.txt: not UTF-8 text \(byte 3\)"):
        read_corpus(str(tmp_path / "bad.txt"))
