"""``python -m worldmodel shards``: write a corpus as files of tokens, the first held out."""

from __future__ import annotations

import argparse
import functools
import itertools
import math
import sys
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from tqdm import tqdm

from orbits.runs import artefact, locks
from orbits.runs.cli import OneLineParser, called, one_line_errors
from worldmodel.text.corpus import open_corpus
from worldmodel.text.documents import Documents, Source
from worldmodel.text.shards import (
    MOST_TOKENS,
    RECORD,
    adopt,
    format_of,
    load_record,
    new_record,
    verify,
    write_shard,
)
from worldmodel.text.tokenizers import Tokenizer, Tokens, identity, load_tokenizer

DOCUMENTS = 256
"""Documents that are tokenised together; a resumed run reads at most so many again."""


class TokenStream:
    """The tokens of documents, each behind an end-of-text token."""

    def __init__(
        self,
        documents: Documents,
        end_of_text: int,
        encode: Callable[[list[str]], Iterable[Tokens]],
        dtype: str,
        position: Mapping[str, Any] | None = None,
    ) -> None:
        self._documents, self._encode = documents, encode
        self._end, self._dtype = np.array([end_of_text], dtype), dtype
        if position:
            documents.load_state_dict(position["documents"])
        self._texts = iter(documents)
        self._refill()
        if position:
            self._used = position["used"]

    def take(self, n: int, progress: tqdm) -> npt.NDArray:
        """Return the next n tokens, or those that are left."""
        parts, missing = [self._tokens[:0]], n
        while missing and not self.ended():
            parts.append(self._tokens[self._used : self._used + missing])
            self._used += len(parts[-1])
            missing -= len(parts[-1])
            progress.update(len(parts[-1]))
        return np.concatenate(parts)

    def ended(self) -> bool:
        """Return whether no token is left."""
        return self._used == len(self._tokens) and not self._refill()

    def position(self) -> dict[str, Any]:
        """Return the position of the stream, as plain data."""
        return {"documents": self._start, "used": self._used}

    def _refill(self) -> bool:
        self._start, self._used = self._documents.state_dict(), 0
        texts = list(itertools.islice(self._texts, DOCUMENTS))
        parts = [self._end[:0]]
        for tokens in self._encode(texts):
            parts += [self._end, tokens.astype(self._dtype)]
        self._tokens = np.concatenate(parts)
        return bool(texts)


def make_shards(
    out: str | Path,
    source: Source,
    tokenizer: Tokenizer,
    *,
    n_tokens: int | None = None,
    shard_tokens: int = 10**8,
    workers: int = 1,
    overwrite: bool = False,
    progress: bool = True,
) -> dict[str, Any]:
    """Write a corpus as files of tokens; again, to go on after a kill.

    The first file is for validation: the corpus's own validation split, whole, or else the head of
    its stream. Finished files are kept, and the stream is entered where the last of them ended, so
    the files are those of a run that was not interrupted.

    Args:
        out: Folder of the files and of ``shards.json``, which describes them.
        source: The corpus.
        tokenizer: The tokeniser.
        n_tokens: Number of tokens to write, those for validation included; None for all.
        shard_tokens: Tokens per file, but for a validation split of the corpus's own; fewer than
            2^31, which is what their header can say.
        workers: Threads that tokenise.
        overwrite: Delete the shards of a record that is there, and begin anew.
        progress: Show a progress bar.

    Raises:
        ValueError: Bad input, the folder holds something else, or the corpus has no training
            split or is too small for both kinds of files. Nothing was written or deleted.
        OSError: The source could not be read to its end, or the disk is full; run it again.
    """
    counts = {"n_tokens": n_tokens, "shard_tokens": shard_tokens, "workers": workers}
    for label, value in counts.items():
        if value is not None and value < 1:
            raise ValueError(f"{label} must be at least 1, got {value}")
    if shard_tokens > MOST_TOKENS:
        raise ValueError(f"shard_tokens must be at most {MOST_TOKENS}, got {shard_tokens}")
    if "train" not in source.splits:
        raise ValueError(f"corpus {source.name!r} has no training split; it is for evaluation")
    if "val" not in source.splits and n_tokens is not None and n_tokens <= shard_tokens:
        raise ValueError(
            f"n_tokens must be more than the {shard_tokens} of the first shard, which is for "
            f"validation, got {n_tokens}"
        )
    config = {
        "corpus": source.name,
        "source": dict(source.record),
        "tokenizer": identity(tokenizer),
        "vocab_size": tokenizer.vocab_size,
        "n_tokens": n_tokens,
        "shard_tokens": shard_tokens,
    }
    out = Path(out)
    _check_owner(out, config, overwrite)
    with locks.lock(out), ThreadPoolExecutor(workers) as pool:
        begun = (out / RECORD).exists() and not overwrite
        record = load_record(out) if begun else new_record(config)
        if record["complete"]:
            return record
        stream = functools.partial(
            TokenStream,
            end_of_text=tokenizer.end_of_text,
            encode=functools.partial(pool.map, tokenizer.encode),
            dtype=format_of(tokenizer.vocab_size).dtype,
        )
        written = sum(shard["n_tokens"] for shard in record["shards"])
        with tqdm(
            total=n_tokens, initial=written, unit="tok", unit_scale=True, disable=not progress
        ) as bar:
            training = stream(source.splits["train"], position=record["position"])
            if not record["shards"]:
                tokens = _held_out(source, stream, training, config, bar)
                if overwrite:
                    _delete(out)
                # Before the first file, which after a kill would belong to nothing.
                record = artefact.create_record(out / RECORD, record)
                _add(out, record, tokens, None if "val" in source.splits else training.position())
            while not record["complete"]:
                written = sum(shard["n_tokens"] for shard in record["shards"])
                size = min(shard_tokens, (n_tokens or written + shard_tokens) - written)
                tokens = training.take(size, bar)
                ended = len(tokens) < size
                record["complete"] = ended or written + size == n_tokens
                _add(out, record, tokens, training.position())
    return record


def _held_out(
    source: Source,
    stream: Callable[[Documents], TokenStream],
    training: TokenStream,
    config: Mapping[str, Any],
    bar: tqdm,
) -> npt.NDArray:
    """Return the tokens for validation, if there are others for training."""
    n_tokens, shard_tokens = config["n_tokens"], config["shard_tokens"]
    if "val" not in source.splits:
        tokens = training.take(shard_tokens, bar)
        if training.ended():
            raise ValueError(
                f"corpus {source.name!r} has {len(tokens)} tokens, not more than the "
                f"{shard_tokens} of the validation shard; reduce shard_tokens"
            )
        return tokens
    # One more than a file holds, so that a longer split is refused and not cut.
    tokens = stream(source.splits["val"]).take(MOST_TOKENS + 1, bar)
    for split, empty in (("val", not len(tokens)), ("train", training.ended())):
        if empty:
            raise ValueError(
                f"corpus {source.name!r}: its {split} split has no text; give more text"
            )
    if n_tokens is not None and n_tokens <= len(tokens):
        raise ValueError(
            f"n_tokens must be more than the {len(tokens)} of the validation split, got {n_tokens}"
        )
    return tokens


def _add(
    out: Path, record: dict[str, Any], tokens: npt.NDArray, position: Mapping[str, Any] | None
) -> None:
    """Write the next file, if there are tokens for it, and then the record."""
    config, number = record["config"], len(record["shards"])
    if len(tokens):
        split = "train" if number else "val"
        file = f"{config['corpus']}_{split}_{number:06d}.bin"
        shard = write_shard(out / file, tokens, config["vocab_size"])
        record["shards"].append({"file": file, "split": split, **shard})
    record["position"] = position
    artefact.save_record(out / RECORD, record)


def _check_owner(out: Path, config: Mapping[str, Any], overwrite: bool) -> None:
    """Refuse a folder that holds something else."""
    if (out / RECORD).exists():
        theirs = load_record(out)["config"]
        differing = [name for name, value in config.items() if theirs.get(name) != value]
        if differing and not overwrite:
            raise ValueError(
                f"{out} holds shards of another {', '.join(differing)}; choose another folder or "
                "add --overwrite"
            )
    elif out.exists() and any(not path.name.startswith(".") for path in out.iterdir()):
        raise ValueError(f"{out} is not empty and has no {RECORD}; choose another folder")


def _delete(out: Path) -> None:
    if (out / RECORD).exists():
        for shard in load_record(out)["shards"]:
            (out / shard["file"]).unlink(missing_ok=True)
        (out / RECORD).unlink()


def main(arguments: list[str] | None = None) -> None:
    """Run the command line; bad input is one line on stderr and exit code 2."""
    options = _parser().parse_args(arguments)
    with one_line_errors():
        if options.verify:
            problems = verify(options.verify)
            print("\n".join(problems) or f"{options.verify} is whole")
            sys.exit(1 if problems else 0)
        tokenizer = load_tokenizer(options.tokenizer)
        if options.adopt:
            folder, record = options.adopt, adopt(options.adopt, tokenizer)
        elif options.out is None:
            raise ValueError("--out names the folder to write")
        else:
            folder = options.out
            record = make_shards(
                folder,
                _source(options),
                tokenizer,
                n_tokens=options.n_tokens,
                shard_tokens=options.shard_tokens,
                workers=options.workers,
                overwrite=options.overwrite,
            )
    tokens = sum(shard["n_tokens"] for shard in record["shards"])
    print(f"{tokens} tokens in {len(record['shards'])} files in {folder}")


def _source(options: argparse.Namespace) -> Source:
    revision = options.revision
    if revision is None and not options.overwrite and (Path(options.out) / RECORD).exists():
        # What was begun goes on with the revision it was begun with.
        revision = load_record(options.out)["config"].get("source", {}).get("revision")
    return open_corpus(options.path, options.corpus, options.column, revision)


def _parser() -> argparse.ArgumentParser:
    parser = OneLineParser(
        prog=called("worldmodel shards"),
        description="Write a corpus as files of tokens in the format of llm.c. The first file is "
        "for validation. What is finished is kept: the same command goes on after a kill.",
    )
    parser.add_argument("--corpus", help="a published corpus, for example fineweb")
    parser.add_argument("--path", help="local text or tables; with --corpus, a copy of its files")
    parser.add_argument("--column", help="the text's column in Parquet or JSON lines")
    parser.add_argument("--revision", help="commit of the corpus's repository (the newest)")
    parser.add_argument("--tokenizer", default="gpt2", help="bytes, gpt2 or a tokenizer.json")
    parser.add_argument("--n-tokens", type=_count, help="tokens to write, validation's too (all)")
    parser.add_argument("--shard-tokens", type=_count, default=10**8, help="tokens per file (1e8)")
    parser.add_argument("--workers", type=int, default=1, help="threads that tokenise")
    parser.add_argument("--out", metavar="DIR", help="folder to write")
    parser.add_argument("--overwrite", action="store_true", help="delete shards that are there")
    other = parser.add_mutually_exclusive_group()
    other.add_argument("--verify", metavar="DIR", help="hash the files of a folder again")
    other.add_argument("--adopt", metavar="DIR", help="record files that were made elsewhere")
    return parser


def _count(text: str) -> int:
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not number.is_integer():
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number, for example 1e9")
    return int(number)
