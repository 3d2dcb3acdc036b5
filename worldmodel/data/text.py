"""Windows of a text corpus for Lightning, made on the fly from (corpus, seed, index)."""

from __future__ import annotations

import platform
from typing import Any

import numpy as np
import torch

from worldmodel.data.sequences import SequenceData, Sequences
from worldmodel.text.corpus import SPLITS, read_corpus
from worldmodel.text.tokenizers import Tokenizer, Tokens, identity, load_tokenizer


class TextWindows(Sequences):
    """Windows of seq_len + 1 tokens of one stream.

    Args:
        tokens: The stream, [N].
        seq_len: Tokens to predict per window.
        length: Number of windows.
        seed: With a number, window i starts at a random place keyed by (seed, i); with None,
            windows follow each other and every token is predicted once.
    """

    def __init__(self, tokens: Tokens, seq_len: int, length: int, seed: int | None) -> None:
        super().__init__(length)
        self.tokens, self.seq_len, self.seed = tokens, seq_len, seed

    def __getitems__(self, indices: list[int]) -> dict[str, torch.Tensor]:
        """Return the collated batch of some windows: tokens, int64 [B, seq_len + 1]."""
        starts = np.array([self._start(index) for index in indices])
        windows = self.tokens[starts[:, None] + np.arange(self.seq_len + 1)]
        return {"tokens": torch.from_numpy(windows.astype(np.int64))}

    def _start(self, index: int) -> int:
        if self.seed is None:
            return index * self.seq_len
        places = len(self.tokens) - self.seq_len
        return int(np.random.default_rng((self.seed, index)).integers(places))


def stream_of(tokenizer: Tokenizer, texts: list[str]) -> Tokens:
    """Return texts as one stream of tokens, [N], each text behind an end-of-text token."""
    end = np.array([tokenizer.end_of_text], np.int32)
    parts = [part for text in texts for part in (end, tokenizer.encode(text))]
    return np.concatenate(parts) if parts else end[:0]


class CorpusData(SequenceData):
    """The base of data modules of text, which record their corpus in checkpoints.

    A subclass sets the two attributes when it is made.

    Attributes:
        tokenizer: The tokeniser of the tokens.
        corpus_record: Description of the corpus, as plain data: ``corpus`` (its name), ``tokens``
            (by split) and ``sha256`` at least.
    """

    tokenizer: Tokenizer
    corpus_record: dict[str, Any]

    def setup(self, stage: str) -> None:
        """Refuse a model with another vocabulary."""
        theirs = getattr(self.trainer.lightning_module if self.trainer else None, "tokenizer", None)
        if theirs is not None and identity(theirs) != identity(self.tokenizer):
            raise ValueError(
                f"the model has the tokenizer {identity(theirs)!r}, its data have "
                f"{identity(self.tokenizer)!r}; give both the same"
            )

    def state_dict(self) -> dict[str, Any]:
        """Return the record of the corpus, for the checkpoint."""
        return {"corpus_record": self.corpus_record}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Refuse to resume training on another corpus; evaluating on one is allowed."""
        theirs, ours = state_dict["corpus_record"], self.corpus_record
        resumes = self.trainer is not None and self.trainer.state.fn == "fit"
        if resumes and theirs["sha256"] != ours["sha256"]:
            raise ValueError(
                f"the checkpoint was trained on another corpus: {_named(theirs)}, not "
                f"{_named(ours)}"
            )


def _named(record: dict[str, Any]) -> str:
    python = f" of Python {record['python']}" if "python" in record else ""
    return f"{record['corpus']}{python} (sha256 {record['sha256'][:12]})"


class TextData(CorpusData):
    """Next-token windows over a text corpus.

    The documents of a split, each behind an end-of-text token, are one stream; a document is
    never in two splits. Training windows start at random places of their stream; validation and
    test windows follow each other from its start and depend on no seed. ``corpus_record`` says
    what was read, as plain data (name, number of documents, tokens by split, sha256, Python
    version), and travels in checkpoints.

    Args:
        path: None for the standard library of the running Python, else a UTF-8 file or a folder
            of ``.txt``, ``.md`` and ``.py`` files, or Parquet or JSON lines
            (:func:`worldmodel.text.corpus.read_corpus` tells how they are split).
        tokenizer: ``bytes``, ``gpt2`` or the path of a ``tokenizer.json``.
        seq_len: Tokens that a window predicts; batches have one more.
        corpus: A name of ``worldmodel.text.corpora.names()``: read from the hub, or from a copy
            of its files at ``path``. Of what is too large for memory, make shards
            (``ShardData``).
        column: The column that holds the text of Parquet or JSON lines; None for ``text``. A
            folder as ``path`` is read as such files if it is given.
        **kwargs: As for :class:`worldmodel.data.sequences.SequenceData`.

    Raises:
        FileNotFoundError: There is no such corpus.
        ValueError: An unknown tokeniser, a size below 1, a corpus without text or out of reach,
            or a split that is shorter than one window.
    """

    def __init__(
        self,
        path: str | None = None,
        tokenizer: str = "bytes",
        seq_len: int = 128,
        corpus: str | None = None,
        column: str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.tokenizer = load_tokenizer(tokenizer)
        content = read_corpus(path, corpus, column)
        self.streams = {split: stream_of(self.tokenizer, content.texts(split)) for split in SPLITS}
        for split, stream in self.streams.items():
            if len(stream) <= seq_len:
                raise ValueError(
                    f"corpus {content.name!r}: the {split} split has {len(stream)} tokens, fewer "
                    f"than the {seq_len + 1} of a window; reduce seq_len or give more text"
                )
        self.corpus_record = {
            "corpus": content.name,
            "documents": len(content.documents),
            "tokens": {split: len(stream) for split, stream in self.streams.items()},
            "sha256": content.sha256(),
            "python": platform.python_version(),
        }

    def sequences(self, split: str, length: int) -> TextWindows:
        """Return the first ``length`` windows of a split, or all where there are fewer."""
        stream, seq_len = self.streams[split], self.hparams["seq_len"]
        if split == "train":
            return TextWindows(stream, seq_len, length, self.train_seed)
        return TextWindows(stream, seq_len, min(length, (len(stream) - 1) // seq_len), None)
