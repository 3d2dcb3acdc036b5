"""``python -m worldmodel bpe``: train a byte-level BPE on a corpus."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path

from orbits.runs import artefact, folder
from orbits.runs.cli import OneLineParser, called, one_line_errors
from worldmodel.text.corpus import read_corpus
from worldmodel.text.tokenizers import END_OF_TEXT, load_tokenizer, tokenizers_library

SMALLEST = 257
"""Ids of the smallest BPE: the 256 bytes and end-of-text."""
USE = "training a BPE"


def check(vocab_size: int) -> None:
    """Refuse settings that no texts could train."""
    if vocab_size < SMALLEST:
        raise ValueError(f"vocab_size must be at least {SMALLEST}, got {vocab_size}")
    tokenizers_library(USE)


def train(texts: Iterable[str], vocab_size: int) -> str:
    """Return the ``tokenizer.json`` of a byte-level BPE (Sennrich et al. 2016; GPT-2's variant).

    The same texts in the same order give the same tokeniser.
    """
    check(vocab_size)
    library = tokenizers_library(USE)
    tokenizer = library.Tokenizer(library.models.BPE())
    tokenizer.pre_tokenizer = library.pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = library.decoders.ByteLevel()
    trainer = library.trainers.BpeTrainer(
        vocab_size=vocab_size,
        special_tokens=[END_OF_TEXT[0]],
        initial_alphabet=library.pre_tokenizers.ByteLevel.alphabet(),
        show_progress=sys.stderr.isatty(),
    )
    tokenizer.train_from_iterator(texts, trainer)
    if tokenizer.get_vocab_size() != vocab_size:
        raise ValueError(
            f"the texts give a vocabulary of {tokenizer.get_vocab_size()} tokens at most, not "
            f"{vocab_size}; reduce vocab_size or give more text"
        )
    return str(tokenizer.to_str())


def main(arguments: list[str] | None = None) -> None:
    """Run the command line; bad input is one line on stderr and exit code 2."""
    parser = OneLineParser(prog=called("worldmodel bpe"), description="Train a byte-level BPE.")
    parser.add_argument("--vocab-size", type=int, default=4096, help="number of token ids (4096)")
    parser.add_argument("--path", help="text, as for TextData (default: the standard library)")
    parser.add_argument("--corpus", help="a published corpus; --path is then a copy of its files")
    parser.add_argument("--column", help="the text's column in Parquet or JSON lines")
    parser.add_argument("--out", default="tokenizer.json", help="file to write (tokenizer.json)")
    parser.add_argument("--overwrite", action="store_true", help="replace a file that is there")
    options = parser.parse_args(arguments)
    with one_line_errors(resumes=False):
        if Path(options.out).exists() and not options.overwrite:
            raise ValueError(f"{options.out} exists; choose another --out or add --overwrite")
        folder.check_writable(Path(options.out))
        check(options.vocab_size)
        corpus = read_corpus(options.path, options.corpus, options.column)
        definition = train(corpus.texts("train"), options.vocab_size)
        artefact.write_bytes(options.out, definition.encode())
    held_out = corpus.texts("val")
    n_bytes = sum(len(text.encode()) for text in held_out)
    tokenizer = load_tokenizer(definition)
    n_tokens = sum(len(tokenizer.encode(text)) for text in held_out)
    print(f"{options.out}: {options.vocab_size} tokens from {corpus.name} {corpus.sha256()[:12]}")
    if n_tokens:
        print(f"{n_bytes / n_tokens:.3f} bytes per token on the validation split")
