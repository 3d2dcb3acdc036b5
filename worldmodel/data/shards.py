"""Windows of token files for Lightning, read through memory maps."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import torch

from worldmodel.data.sequences import Sequences
from worldmodel.data.text import CorpusData
from worldmodel.text.shards import check_tokens, folder_hash, read_folder, read_shard, verify
from worldmodel.text.tokenizers import identity, load_tokenizer

Order = Literal["random", "sequential"]


class ShardWindows(Sequences):
    """Windows of seq_len + 1 tokens, none of which spans two files.

    Args:
        files: Path and number of tokens of each file.
        vocab_size: Tokens that are not of this vocabulary are refused when they are read.
        seq_len: Tokens to predict per window.
        length: Number of windows.
        seed: With a number, window i starts at a random place keyed by (seed, i); with None,
            windows follow each other through the files, and start again after the last.
        first: With None as seed, the number of the first window.
    """

    def __init__(
        self,
        files: Sequence[tuple[Path, int]],
        vocab_size: int,
        seq_len: int,
        length: int,
        seed: int | None,
        first: int = 0,
    ) -> None:
        super().__init__(length)
        self.paths = [path for path, _ in files]
        self.vocab_size, self.seq_len = vocab_size, seq_len
        self.seed, self.first = seed, first
        sizes = np.array([size for _, size in files], np.int64)
        self.stride = seq_len if seed is None else 1
        # A window starts where seq_len tokens follow.
        starts = (sizes - 1) // seq_len if seed is None else sizes - seq_len
        self.ends = np.cumsum(np.maximum(starts, 0))
        self._open: dict[int, npt.NDArray] = {}

    @property
    def n_places(self) -> int:
        """Number of different windows there are."""
        return int(self.ends[-1]) if len(self.ends) else 0

    def __getitems__(self, indices: list[int]) -> dict[str, torch.Tensor]:
        """Return the collated batch of some windows: tokens, int64 [B, seq_len + 1]."""
        windows = np.stack([self._window(self._place(index)) for index in indices])
        return {"tokens": torch.from_numpy(windows)}

    def _place(self, index: int) -> int:
        if self.seed is None:
            return (self.first + index) % self.n_places
        return int(np.random.default_rng((self.seed, index)).integers(self.n_places))

    def _window(self, place: int) -> npt.NDArray[np.int64]:
        number = int(np.searchsorted(self.ends, place, side="right"))
        start = (place - (int(self.ends[number - 1]) if number else 0)) * self.stride
        if number not in self._open:
            self._open[number] = read_shard(self.paths[number])
        window = self._open[number][start : start + self.seq_len + 1]
        check_tokens(self.paths[number], window, self.vocab_size)
        return window.astype(np.int64)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_open": {}}  # a mapped file would travel as its content


class ShardData(CorpusData):
    """Next-token windows over a folder of token files (``python -m worldmodel shards``).

    The files stay on disk and may be larger than memory. ``corpus_record`` describes them,
    with one sha256 over those in their record, and travels in checkpoints.

    Args:
        path: The folder, with its ``shards.json``.
        tokenizer: The tokeniser of the files: ``bytes``, ``gpt2`` or the path of a
            ``tokenizer.json``.
        seq_len: Tokens that a window predicts; batches have one more.
        order: Order of the training windows: ``random``, each at a place keyed by (seed, index), or
            ``sequential``, one after the other through the files, as llm.c reads them.
        verify: Hash all files before training. Without it their sizes are compared with the
            record, and tokens beyond the vocabulary are refused when they are read.
        **kwargs: As for :class:`worldmodel.data.sequences.SequenceData`. Validation windows are
            from the start of the held-out file and test windows follow them; a training step has
            ``accumulate_grad_batches`` batches.

    Raises:
        FileNotFoundError: There is no such folder, or it has no record.
        CorruptArtefact: A file is missing or damaged.
        ValueError: The files were made with another tokeniser, are unfinished or too short, or a
            size is below 1.
    """

    def __init__(
        self,
        path: str,
        tokenizer: str = "gpt2",
        seq_len: int = 1024,
        order: Order = "random",
        verify: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        record = read_folder(path)
        self.tokenizer = load_tokenizer(tokenizer)
        made_with = record["config"]["tokenizer"]
        if identity(self.tokenizer) != made_with:
            raise ValueError(
                f"{path} holds tokens of the tokenizer {made_with!r}, not of "
                f"{identity(self.tokenizer)!r}; set data.tokenizer"
            )
        if verify:
            _check_hashes(path)
        self.files = {
            split: [
                (Path(path) / shard["file"], shard["n_tokens"])
                for shard in record["shards"]
                if shard["split"] == split
            ]
            for split in ("train", "val")
        }
        for split in self.files:
            if not self._windows(split, 1, None).n_places:
                raise ValueError(
                    f"{path}: no {split} file has the {seq_len + 1} tokens of a window; reduce "
                    "seq_len or make longer shards"
                )
        self.corpus_record = {
            "corpus": record["config"]["corpus"],
            "tokens": {split: sum(n for _, n in files) for split, files in self.files.items()},
            "sha256": folder_hash(record),
        }

    def sequences(self, split: str, length: int) -> ShardWindows:
        """Return the first ``length`` windows of a split, or all where there are fewer."""
        if split == "train":
            random = self.hparams["order"] == "random"
            return self._windows("train", length, self.train_seed if random else None)
        first = self.hparams["n_val"] if split == "test" else 0
        left = self._windows("val", 1, None).n_places - first
        if left < 1:
            raise ValueError(
                f"n_val {first} takes all windows of the held-out file; reduce it to test"
            )
        return self._windows("val", min(length, left), None, first)

    def _windows(self, files: str, length: int, seed: int | None, first: int = 0) -> ShardWindows:
        vocab_size, seq_len = self.tokenizer.vocab_size, self.hparams["seq_len"]
        return ShardWindows(self.files[files], vocab_size, seq_len, length, seed, first)


def _check_hashes(path: str) -> None:
    problems = verify(path)
    if problems:
        raise ValueError(problems[0])
