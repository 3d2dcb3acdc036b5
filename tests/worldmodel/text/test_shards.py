"""Folders of token files: the command that makes them of a corpus, resumed, verified, adopted."""

import json
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from orbits.runs import artefact
from tests.worldmodel.text.llm_c import by_hand
from worldmodel.text import documents
from worldmodel.text.make_shards import main, make_shards
from worldmodel.text.shards import (
    adopt,
    load_record,
    read_folder,
    read_shard,
    verify,
    write_shard,
)
from worldmodel.text.tokenizers import load_tokenizer

ROOT = Path(__file__).parents[3]
END = 256
TEXTS = [f"document {i}: " + "é" * (i * 37 % 61) for i in range(700)]
STREAM = [t for text in TEXTS for t in (END, *text.encode())]
"""What the bytes of TEXTS are as one stream, by the rule that every document starts with END."""


def source(texts=TEXTS, **others):
    pytest.importorskip("datasets")
    return documents.in_memory("numbers", {"made": "here"}, {"train": texts, **others})


def make(out, of=None, **changes):
    options = {"shard_tokens": 5000, "n_tokens": 17_000, "progress": False} | changes
    return make_shards(out, of or source(), load_tokenizer("bytes"), **options)


def content(out):
    return {path.name: path.read_bytes() for path in out.glob("*.bin")}


def test_a_corpus_becomes_shards_of_which_the_first_is_held_out(tmp_path):
    record = make(tmp_path)
    files = [(s["file"], s["split"], s["n_tokens"]) for s in record["shards"]]
    assert files == [
        ("numbers_val_000000.bin", "val", 5000),
        ("numbers_train_000001.bin", "train", 5000),
        ("numbers_train_000002.bin", "train", 5000),
        ("numbers_train_000003.bin", "train", 2000),
    ]
    tokens = np.concatenate([read_shard(tmp_path / name) for name, _, _ in files])
    assert tokens.tolist() == STREAM[:17_000]
    assert read_folder(tmp_path) == record
    assert record["config"]["tokenizer"] == "bytes"
    assert record["config"]["source"] == {"made": "here"}
    assert verify(tmp_path, progress=False) == []


def test_all_of_a_corpus_is_written_unless_told_otherwise(tmp_path):
    record = make(tmp_path, n_tokens=None, workers=3)
    tokens = np.concatenate([read_shard(tmp_path / s["file"]) for s in record["shards"]])
    assert tokens.tolist() == STREAM


@pytest.mark.parametrize("more", [0, 1])
def test_a_corpus_may_end_where_a_file_does(tmp_path, more):
    texts = ["x" * 99] * 3 + ["y" * (99 + more)]
    record = make(tmp_path, source(texts), n_tokens=None, shard_tokens=100)
    sizes = [shard["n_tokens"] for shard in record["shards"]]
    assert sizes == [100, 100, 100, 100, 1][: 4 + more]
    assert record["complete"]
    assert read_folder(tmp_path) == record


@pytest.mark.parametrize("shard_tokens", [len(STREAM), len(STREAM) + 1])
def test_a_corpus_without_a_token_for_training_is_refused(tmp_path, shard_tokens):
    changes = {"n_tokens": None, "shard_tokens": shard_tokens}
    message = f"{len(STREAM)} tokens, not more than the {shard_tokens} of the validation shard"
    with pytest.raises(ValueError, match=message):
        make(tmp_path, **changes)
    assert not (tmp_path / "shards.json").exists()
    record = make(tmp_path, n_tokens=None, shard_tokens=len(STREAM) - 1)  # as the error says
    assert [s["n_tokens"] for s in record["shards"]] == [len(STREAM) - 1, 1]


def test_a_validation_split_of_its_own_is_the_first_shard(tmp_path):
    record = make(tmp_path, source(val=["held out", "too"]), n_tokens=None)
    assert bytes(t % END for t in read_shard(tmp_path / record["shards"][0]["file"])) == (
        b"\0held out\0too"
    )
    training = [read_shard(tmp_path / s["file"]) for s in record["shards"][1:]]
    assert np.concatenate(training).tolist() == STREAM


def test_a_validation_split_of_its_own_is_whole_however_long_a_file_is(tmp_path):
    of = source(["training " * 20], val=TEXTS[:40])
    record = make(tmp_path, of, n_tokens=None, shard_tokens=100)
    held_out = [t for text in TEXTS[:40] for t in (END, *text.encode())]
    assert len(held_out) > 1000
    assert read_shard(tmp_path / record["shards"][0]["file"]).tolist() == held_out
    files = [(s["split"], s["n_tokens"]) for s in record["shards"]]
    assert files == [("val", len(held_out)), ("train", 100), ("train", 81)]


def test_n_tokens_counts_a_validation_split_of_its_own(tmp_path):
    of = source(val=["held out", "too"])
    with pytest.raises(ValueError, match="more than the 13 of the validation split, got 13"):
        make(tmp_path, of, n_tokens=13, shard_tokens=1000)
    assert not (tmp_path / "shards.json").exists()
    record = make(tmp_path, of, n_tokens=500, shard_tokens=1000)
    files = [(s["split"], s["n_tokens"]) for s in record["shards"]]
    assert files == [("val", 13), ("train", 487)]


@pytest.mark.parametrize("empty", ["train", "val"])
def test_a_split_of_its_own_without_text_is_refused(tmp_path, empty):
    of = source(**{"val": ["held out"], empty: ["", " "]})
    with pytest.raises(ValueError, match=f"'numbers': its {empty} split has no text"):
        make(tmp_path, of, n_tokens=None)
    assert content(tmp_path) == {}
    assert not (tmp_path / "shards.json").exists()


class _Failing:
    """A tokeniser that fails after some texts, as a network or a person would."""

    definition, vocab_size, end_of_text = "bytes", 257, END

    def __init__(self, texts):
        self.left, self.read = texts, 0

    def encode(self, text):
        self.read += 1
        if self.read > self.left:
            raise ConnectionError("gone")
        return load_tokenizer("bytes").encode(text)


@pytest.mark.full
@pytest.mark.parametrize("own_validation", [False, True])
@pytest.mark.parametrize("texts", [10, 520, 690])
def test_an_interrupted_run_goes_on_and_ends_with_the_same_files(tmp_path, texts, own_validation):
    def of():
        return source(val=TEXTS[:40]) if own_validation else source()

    options = {"shard_tokens": 8000, "n_tokens": None, "progress": False}
    whole = make(tmp_path / "whole", of(), **options)
    out = tmp_path / "out"
    with pytest.raises(ConnectionError):
        make_shards(out, of(), _Failing(texts), **options)
    finished = content(out)
    made_at = {path.name: path.stat().st_mtime_ns for path in out.glob("*.bin")}
    again = _Failing(10**9)
    record = make_shards(out, of(), again, **options)
    assert content(out) == content(tmp_path / "whole")
    assert record["shards"] == whole["shards"]
    assert {name: (out / name).stat().st_mtime_ns for name in finished} == made_at
    if texts == 690:
        assert again.read <= len(TEXTS) - 256, "the stream is entered where it stood"
    idle = _Failing(0)
    assert make_shards(out, of(), idle, **options) == record
    assert idle.read == 0


@pytest.mark.parametrize("last", ["val", "train"])
def test_a_file_that_is_not_yet_recorded_is_made_again(tmp_path, monkeypatch, last):
    texts = [f"{i:099}" for i in range(600)]
    options = {"n_tokens": None, "shard_tokens": 25_600}  # a file is one batch of documents

    def interrupted(path, *arguments):
        shard = write_shard(path, *arguments)
        if last in path.name:
            raise KeyboardInterrupt
        return shard

    monkeypatch.setattr("worldmodel.text.make_shards.write_shard", interrupted)
    with pytest.raises(KeyboardInterrupt):
        make(tmp_path, source(texts), **options)
    assert len(content(tmp_path)) == 1 + (last == "train")
    monkeypatch.undo()
    record = make(tmp_path, source(texts), **options)
    tokens = np.concatenate([read_shard(tmp_path / s["file"]) for s in record["shards"]])
    assert tokens.tolist() == [t for text in texts for t in (END, *text.encode())]


KILLED = """
import os, signal, sys
from pathlib import Path
from worldmodel.text import make_shards
replace = os.replace
def killed(new, name):
    if len(list(Path(name).parent.glob("*.bin"))) == 3:
        os.kill(os.getpid(), signal.SIGKILL)
    replace(new, name)
os.replace = killed
make_shards.main(sys.argv[1:])
"""
"""The command, killed when its fourth shard is written and has not yet its name."""


@pytest.mark.full
def test_a_killed_command_goes_on_when_it_is_run_again(tmp_path):
    pytest.importorskip("datasets")
    rows = "".join(json.dumps({"text": f"row {i} " * 20}) + "\n" for i in range(8000))
    (tmp_path / "rows.jsonl").write_text(rows, "utf-8")
    killed, whole = tmp_path / "killed", tmp_path / "whole"
    arguments = [f"--path={tmp_path / 'rows.jsonl'}", "--tokenizer=bytes", "--shard-tokens=1e5"]
    program = [sys.executable, "-c", KILLED, *arguments, f"--out={killed}"]
    assert subprocess.run(program, cwd=ROOT, capture_output=True).returncode == -signal.SIGKILL
    assert len(list(killed.glob("*.bin"))) == 3
    assert not load_record(killed)["complete"]
    for out in (killed, whole):
        main([*arguments, f"--out={out}"])
    assert content(killed) == content(whole)
    assert not list(killed.glob(".*.tmp"))


def test_nothing_is_overwritten_without_being_asked(tmp_path):
    make(tmp_path)
    before = content(tmp_path)
    with pytest.raises(ValueError, match="holds shards of another n_tokens, shard_tokens; choose"):
        make(tmp_path, shard_tokens=4000, n_tokens=9000)
    assert content(tmp_path) == before
    make(tmp_path, shard_tokens=4000, n_tokens=9000, overwrite=True)
    assert len(content(tmp_path)) == 3
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "x.bin").write_bytes(b"mine")
    before = content(tmp_path)
    with pytest.raises(ValueError, match="not more than the 4000 of the validation shard"):
        make(tmp_path, source(["short"]), shard_tokens=4000, n_tokens=9000, overwrite=True)
    assert content(tmp_path) == before, "the old files stay until there are new ones"
    for overwrite in (False, True):
        with pytest.raises(ValueError, match=r"mine is not empty and has no shards\.json"):
            make(tmp_path / "mine", overwrite=overwrite)
    assert (tmp_path / "mine" / "x.bin").read_bytes() == b"mine"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"shard_tokens": 0}, "shard_tokens must be at least 1, got 0"),
        ({"shard_tokens": 2**31}, "shard_tokens must be at most 2147483647, got 2147483648"),
        ({"workers": 0}, "workers must be at least 1"),
        ({"n_tokens": 0}, "n_tokens must be at least 1, got 0"),
        ({"n_tokens": 5000}, "n_tokens must be more than the 5000 of the first shard"),
        ({"shard_tokens": 10**6, "n_tokens": None}, r"has \d+ tokens, not more than the 1000000"),
        ({"of": "evaluation"}, "'numbers' has no training split; it is for evaluation"),
    ],
)
def test_what_cannot_be_made_is_refused_and_leaves_no_shard(tmp_path, changes, message):
    pytest.importorskip("datasets")
    if changes.get("of"):
        changes = {"of": documents.in_memory("numbers", {}, {"test": TEXTS})}
    with pytest.raises(ValueError, match=message):
        make(tmp_path, **changes)
    assert content(tmp_path) == {}
    assert not (tmp_path / "shards.json").exists()


def test_damage_is_found_by_size_at_once_and_by_hash_on_request(tmp_path):
    shards = make(tmp_path)["shards"]
    first, second = (tmp_path / shard["file"] for shard in shards[:2])
    data = bytearray(first.read_bytes())
    data[2000] ^= 1
    first.write_bytes(data)
    assert read_folder(tmp_path)["complete"]
    assert verify(tmp_path, progress=False) == [
        f"{first}: sha256 mismatch; it was edited or damaged"
    ]
    data[2001] = 9  # little-endian: a token of 9 * 256 and more
    first.write_bytes(data)
    second.write_bytes(second.read_bytes()[:-2])
    problems = verify(tmp_path, progress=False)
    assert "is beyond the vocabulary of 257" in problems[0]
    assert "truncated" in problems[1]
    with pytest.raises(artefact.CorruptArtefact, match="11022 bytes, but 11024"):
        read_folder(tmp_path)
    second.unlink()
    with pytest.raises(artefact.CorruptArtefact, match="missing"):
        read_folder(tmp_path)


def test_files_of_others_are_adopted_with_their_hashes(tmp_path):
    (tmp_path / "fineweb_val_000000.bin").write_bytes(by_hand([50256, 3]))
    with pytest.raises(FileNotFoundError, match="one with val in its name"):
        adopt(tmp_path, load_tokenizer("bytes"), progress=False)
    (tmp_path / "fineweb_train_000001.bin").write_bytes(by_hand([5, 6, 7]))
    with pytest.raises(ValueError, match="token 50256 is beyond the vocabulary of 257"):
        adopt(tmp_path, load_tokenizer("bytes"), progress=False)
    pytest.importorskip("tiktoken")
    record = adopt(tmp_path, load_tokenizer("gpt2"), progress=False)
    assert [(s["split"], s["n_tokens"]) for s in record["shards"]] == [("val", 2), ("train", 3)]
    assert read_folder(tmp_path) == record
    assert verify(tmp_path, progress=False) == []
    with pytest.raises(FileExistsError, match=r"has a shards\.json already"):
        adopt(tmp_path, load_tokenizer("gpt2"), progress=False)


def test_the_command_line_makes_verifies_and_refuses(tmp_path, capsys, refusal):
    pytest.importorskip("datasets")
    (tmp_path / "x.txt").write_text("0123456789" * 5000, "utf-8")
    out = tmp_path / "out"
    arguments = ["--tokenizer=bytes", f"--path={tmp_path / 'x.txt'}", "--shard-tokens=1e4"]
    main([*arguments, "--n-tokens=2e4", f"--out={out}"])
    assert "20000 tokens in 3 files" in capsys.readouterr().out
    assert str(tmp_path) not in (out / "shards.json").read_text("utf-8")
    with pytest.raises(SystemExit) as whole:
        main([f"--verify={out}"])
    assert whole.value.code == 0
    (out / "x.txt_val_000000.bin").unlink()
    with pytest.raises(SystemExit) as damaged:
        main([f"--verify={out}"])
    assert damaged.value.code == 1
    assert "missing" in capsys.readouterr().out
    for bad, message in (
        (["--corpus=finweb", f"--out={out}"], "did you mean fineweb"),
        (arguments, "--out names the folder"),
        (["--n-tokens=many", f"--out={out}"], "'many' is no whole number, for example 1e9"),
        (["--n-tokens=1.9", f"--out={out}"], "'1.9' is no whole number, for example 1e9"),
        (["--n-tokens=inf", f"--out={out}"], "'inf' is no whole number, for example 1e9"),
        (["--shard-tokens=3e9", f"--out={out}"], "shard_tokens must be at most 2147483647, got"),
        ([f"--verify={tmp_path}"], "has no shards.json; make shards with"),
    ):
        assert message in refusal(main, bad)


@pytest.mark.parametrize("name", ["../victim.bin", "inner/victim.bin", "..", "/victim.bin", ""])
def test_a_record_that_names_a_file_elsewhere_is_refused_and_deletes_nothing(tmp_path, name):
    out = tmp_path / "out"
    make(out)
    record = load_record(out)
    (out / "inner").symlink_to(tmp_path)
    victim = tmp_path / "victim.bin"
    victim.write_bytes(b"mine")
    record["shards"][1]["file"] = name
    artefact.save_record(out / "shards.json", record)
    for use in (read_folder, verify, lambda folder: make(folder, overwrite=True)):
        with pytest.raises(artefact.CorruptArtefact) as refused:
            use(out)
        assert repr(name) in str(refused.value)
    assert victim.read_bytes() == b"mine"
    assert len(content(out)) == 4
