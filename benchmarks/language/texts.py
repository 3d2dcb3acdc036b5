"""The texts that language models are trained and scored on: checksums and held-out windows."""

from __future__ import annotations

import contextlib
import functools
import math
import platform
from collections.abc import Iterator, Mapping
from typing import Any

from torch import Tensor

from benchmarks import learners
from orbits.runs.cell import Skipped
from worldmodel.data.sequences import Sequences
from worldmodel.data.shards import ShardData
from worldmodel.data.text import CorpusData, TextWindows, stream_of
from worldmodel.text.corpus import read_corpus
from worldmodel.text.documents import Unreachable
from worldmodel.text.tokenizers import Tokenizer, Tokens, load_tokenizer

PLACES = ("path", "corpus", "column")
"""Arguments of a data module that name the place of its text."""


@contextlib.contextmanager
def skipping() -> Iterator[None]:
    """Skip a cell whose text cannot be downloaded."""
    try:
        yield
    except Unreachable as error:
        raise Skipped(str(error)) from None


@functools.cache
def text_sha256(
    path: str | None = None, corpus: str | None = None, column: str | None = None
) -> str:
    """Return the checksum of a corpus, see :func:`worldmodel.text.corpus.read_corpus`."""
    return read_corpus(path, corpus, column).sha256()


@functools.cache
def shards_sha256(path: str, tokenizer: str) -> str:
    """Return the checksum of a folder of token files."""
    return ShardData(path, tokenizer).corpus_record["sha256"]


def corpus_data(learner: str, data: Mapping[str, Any], sha256: str) -> CorpusData:
    """Return the data module of a text."""
    module = learners.get(learner).data(**data)
    assert isinstance(module, CorpusData)
    record = module.corpus_record
    if record["sha256"] != sha256:
        raise ValueError(
            f"the corpus {record['corpus']} has changed since its checksum was taken; "
            "use --overwrite to train again"
        )
    return module


def held_out(
    learner: str, data: Mapping[str, Any], sha256: str, length: int, n_tokens: int
) -> Tensor:
    """Return windows of the held-out part of a training's text, int64 [N, length + 1].

    Windows of every length read the same tokens, as far as they are cut off at whole windows.
    """
    n = n_tokens // length
    if learner == "text":  # what it was trained on need not be tokenised again
        places = {name: data.get(name) for name in PLACES}
        tokenizer = load_tokenizer(data["tokenizer"])
        return cut(stream_of_test(tokenizer, sha256, **places)[0], length, n_tokens)
    # Shards have one held-out file: what is scored begins behind what training validated on, at
    # the same token for every length.
    validated = corpus_data(learner, data, sha256).hparams["n_val"] * data["seq_len"]
    n_val = max(1, math.ceil(validated / n_tokens)) * n
    sizes = {"seq_len": length, "n_test": n, "n_val": n_val}
    module = corpus_data(learner, {**data, **sizes}, sha256)
    try:
        windows: Sequences | range = module.sequences("test", n)
    except ValueError:  # none is left
        windows = range(0)
    return _first(windows, length, n)


def stream_of_test(
    tokenizer: Tokenizer, sha256: str, **text: str | None
) -> tuple[Tokens, dict[str, Any]]:
    """Return the tokens of the test part of a text, and which text it is as plain data."""
    corpus = read_corpus(**text)
    if corpus.sha256() != sha256:
        raise ValueError(f"the corpus {corpus.name} has changed since its checksum was taken")
    texts = corpus.texts("test")
    return stream_of(tokenizer, texts), {
        "corpus": corpus.name,
        "documents": len(texts),
        "sha256": sha256,
        "python": platform.python_version(),
    }


def cut(stream: Tokens, length: int, n_tokens: int) -> Tensor:
    """Return the first windows of a stream, int64 [N, length + 1]."""
    windows = TextWindows(stream, length, max(0, len(stream) - 1) // length, None)
    return _first(windows, length, n_tokens // length)


def _first(windows: Any, length: int, n: int) -> Tensor:
    """Return the first n windows of a text, int64 [n, length + 1]."""
    if len(windows) < n:
        raise ValueError(
            f"the held-out text has {len(windows)} windows of {length} tokens, {n} are needed: "
            "give more text or take fewer tokens"
        )
    return windows.__getitems__(list(range(n)))["tokens"]
