"""Tokenisers: bytes, and tokenizer.json files where the package is installed."""

import json
import sys

import pytest
import torch

from tests.worldmodel.trainings import trainer
from worldmodel.data.text import TextData
from worldmodel.models.load import load_model
from worldmodel.models.text import TextModel
from worldmodel.text.tokenizers import load_tokenizer

END = 256


def word_level(**others):
    """Return a tokenizer.json that knows three words; ids have a gap."""
    vocabulary = {"<|endoftext|>": 2, "to": 0, "be": 5, "or": 9, "?": 1}
    content = {
        "version": "1.0",
        "added_tokens": [],
        "pre_tokenizer": {"type": "Whitespace"},
        "model": {"type": "WordLevel", "vocab": vocabulary, "unk_token": "?"},
        **others,
    }
    return json.dumps(content)


def test_bytes_go_there_and_back():
    tokenizer = load_tokenizer("bytes")
    text = "naïve café: 数 🙂\r\n\ttab\0"
    ids = tokenizer.encode(text)
    assert bytes(ids.tolist()) == text.encode("utf-8")
    assert tokenizer.decode(ids) == text
    assert tokenizer.decode([END, *ids.tolist(), END]) == text
    assert (tokenizer.vocab_size, tokenizer.end_of_text) == (257, END)
    assert tokenizer.decode([0xC3]) == "\ufffd"


def test_a_json_tokenizer_gives_the_ids_it_says(tmp_path):
    pytest.importorskip("tokenizers")
    path = tmp_path / "tokenizer.json"
    path.write_text(word_level(), "utf-8")
    tokenizer = load_tokenizer(str(path))
    assert tokenizer.encode("to be or not to be").tolist() == [0, 5, 9, 1, 0, 5]
    assert tokenizer.decode([0, 5]) == "to be"
    assert (tokenizer.vocab_size, tokenizer.end_of_text) == (10, 2)
    assert load_tokenizer(tokenizer.definition).encode("or").tolist() == [9]


PADDING = {
    "strategy": {"Fixed": 8},
    "direction": "Right",
    "pad_to_multiple_of": None,
    "pad_id": 2,
    "pad_type_id": 0,
    "pad_token": "<|endoftext|>",
}
TRUNCATION = {"direction": "Right", "max_length": 2, "strategy": "LongestFirst", "stride": 0}


@pytest.mark.parametrize("others", [{"padding": PADDING}, {"truncation": TRUNCATION}])
def test_a_published_file_neither_cuts_nor_pads_a_text(others):
    tokenizers = pytest.importorskip("tokenizers")
    definition = word_level(**others)
    theirs = tokenizers.Tokenizer.from_str(definition).encode("to be or").ids
    assert len(theirs) != 3, "the file does ask for it"
    assert load_tokenizer(definition).encode("to be or").tolist() == [0, 5, 9]


def test_a_checkpoint_carries_its_json_tokenizer(tmp_path):
    pytest.importorskip("tokenizers")
    path, corpus = tmp_path / "tokenizer.json", tmp_path / "words.txt"
    path.write_text(word_level(), "utf-8")
    corpus.write_text("to be or be " * 100, "utf-8")
    data = TextData(str(corpus), tokenizer=str(path), seq_len=4)
    assert data.streams["train"].tolist()[:6] == [2, 0, 5, 9, 5, 0]
    task = TextModel(tokenizer=str(path), n_layer=1, n_head=2, head_dim=8)
    run = trainer(tmp_path)
    run.fit(task, data)
    run.save_checkpoint(tmp_path / "model.ckpt")
    path.unlink()
    again = load_model(tmp_path / "model.ckpt")
    tokens = torch.from_numpy(again.tokenizer.encode("be or")).long()[None]
    assert tokens.tolist() == [[5, 9]]
    batch = {"tokens": tokens}
    torch.testing.assert_close(again.eval()(batch), task.eval()(batch), rtol=0, atol=0)


def test_a_json_tokenizer_that_cannot_serve_is_refused(tmp_path):
    pytest.importorskip("tokenizers")
    without_end = word_level().replace("<|endoftext|>", "end")
    with pytest.raises(ValueError, match=r"no end-of-text token; add one of <\|endoftext\|>"):
        load_tokenizer(without_end)
    (tmp_path / "x.json").write_text("{}", "utf-8")
    with pytest.raises(ValueError, match=r"not the content of a tokenizer\.json"):
        load_tokenizer(str(tmp_path / "x.json"))


def test_a_missing_package_is_named_with_its_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "tokenizers", None)
    with pytest.raises(ValueError, match=r"needs the package tokenizers: pip install .*\[eval\]"):
        load_tokenizer(word_level())
