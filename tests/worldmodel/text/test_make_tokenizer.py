"""Training a byte-level BPE, and its command line."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from worldmodel.text.make_tokenizer import main, train
from worldmodel.text.tokenizers import identity, load_tokenizer

pytest.importorskip("tokenizers")
ROOT = Path(__file__).parents[3]
TEXTS = [
    "the cat sat on the mat. " * 40,
    "naïve café: 数 🙂\r\n\ttab " * 5,
    " ".join(f"number {i * i}" for i in range(99)),
]


@pytest.fixture(scope="module")
def definition():
    return train(TEXTS, 300)


@pytest.mark.parametrize("text", [*TEXTS, "", " ", "unseen: żółć\0\x7f", "a\n\n b  "])
def test_any_text_goes_there_and_back(definition, text):
    tokenizer = load_tokenizer(definition)
    ids = tokenizer.encode(text)
    assert tokenizer.decode(ids) == text
    assert tokenizer.decode([tokenizer.end_of_text, *ids]) == text
    assert tokenizer.vocab_size == 300
    assert all(0 <= i < 300 for i in ids)


def test_the_first_merge_is_the_commonest_pair_and_frequent_words_are_one_token(definition):
    merges = json.loads(definition)["model"]["merges"]
    # "at" ends cat, sat and mat: 120 times; no other pair comes as often.
    assert merges[0] == ["a", "t"]
    tokenizer = load_tokenizer(definition)
    assert len(tokenizer.encode("the cat sat on the mat.")) == 7
    assert len(tokenizer.encode("qzx")) == 3


def test_two_trainings_give_the_same_tokeniser_whatever_the_threads(definition):
    code = (
        "import sys; from worldmodel.text.make_tokenizer import train; "
        f"sys.stdout.buffer.write(train({TEXTS!r}, 300).encode())"
    )
    alone = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, cwd=ROOT, env={"RAYON_NUM_THREADS": "1"}
    )
    assert alone.stdout.decode() == train(TEXTS, 300) == definition, alone.stderr.decode()


def test_an_end_of_text_token_in_a_text_is_text(definition):
    tokenizer = load_tokenizer(definition)
    text = "a<|endoftext|>b"
    ids = tokenizer.encode(text)
    assert tokenizer.end_of_text not in ids
    assert tokenizer.decode(ids) == text


def test_the_short_name_tells_tokenisers_apart(definition):
    other = train(TEXTS, 299)
    names = {identity(load_tokenizer(d)) for d in (definition, other, "bytes")}
    assert len(names) == 3
    assert "bytes" in names


@pytest.mark.parametrize(
    ("vocab_size", "message"),
    [
        (256, "vocab_size must be at least 257, got 256"),
        (4096, r"vocabulary of \d+ tokens at most, not 4096; reduce vocab_size"),
    ],
)
def test_a_vocabulary_that_cannot_be_made_is_refused(vocab_size, message):
    with pytest.raises(ValueError, match=message):
        train(TEXTS, vocab_size)


def test_the_command_trains_on_the_training_split_and_overwrites_nothing(tmp_path, capsys, refusal):
    folder, out = tmp_path / "texts", tmp_path / "tokenizer.json"
    folder.mkdir()
    # By the rule of split_of, which test_text checks, 7.txt of these is held out from training.
    for i in range(20):
        (folder / f"{i}.txt").write_text(f"document {i} says hello hello. " * 20, "utf-8")
    from worldmodel.text.corpus import read_corpus

    training = read_corpus(str(folder)).texts("train")
    assert 0 < len(training) < 20
    arguments = ["--vocab-size=280", f"--path={folder}", f"--out={out}"]
    main(arguments)
    assert out.read_text("utf-8") == train(training, 280)
    assert "280 tokens from texts" in capsys.readouterr().out
    out.write_text("mine", "utf-8")
    assert "exists; choose another --out or add --overwrite" in refusal(main, arguments)
    assert out.read_text("utf-8") == "mine"
    main([*arguments, "--overwrite"])
    assert out.read_text("utf-8") == train(training, 280)


def test_bad_input_is_one_line(tmp_path, refusal):
    out = f"--out={tmp_path / 'x.json'}"
    assert refusal(main, ["--path=nowhere", out]) == (
        "error: corpus 'nowhere': no such file or folder; give a text that is there, leave it out "
        "for the standard library, or name a published corpus: fineweb, fineweb_edu, lambada, "
        "openwebtext2, wikitext103"
    )
    assert refusal(main, ["--size=3", out]) == "error: unrecognized arguments: --size=3"
    assert not (tmp_path / "x.json").exists()


def test_what_cannot_be_trained_is_refused_before_a_corpus_is_read(tmp_path, refusal, monkeypatch):
    out = f"--out={tmp_path / 'x.json'}"
    read = "worldmodel.text.make_tokenizer.read_corpus"
    monkeypatch.setattr(read, lambda *_: pytest.fail("the corpus was read"))
    said = refusal(main, ["--vocab-size=10", out])
    assert said == "error: vocab_size must be at least 257, got 10"
    monkeypatch.setitem(sys.modules, "tokenizers", None)
    assert "needs the package tokenizers: pip install" in refusal(main, [out])
