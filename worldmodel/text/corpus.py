"""A text corpus as documents that each belong to one split, read in place."""

from __future__ import annotations

import hashlib
import os
import sysconfig
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from worldmodel.text import corpora, documents

SPLITS = ("train", "val", "test")
SUFFIXES = (".txt", ".md", ".py")
STANDARD_LIBRARY = "python-standard-library"
LARGEST = 1e9
"""Tokens of the largest published corpus that is read whole."""


@dataclass(frozen=True)
class Document:
    """A text and the split it belongs to.

    Attributes:
        name: Path relative to the corpus, with forward slashes.
        split: One of ``SPLITS``.
        text: The whole text.
    """

    name: str
    split: str
    text: str


@dataclass(frozen=True)
class Corpus:
    """Documents in the order of their names."""

    name: str
    documents: tuple[Document, ...]

    def texts(self, split: str) -> list[str]:
        """Return the texts of a split, in order."""
        return [document.text for document in self.documents if document.split == split]

    def sha256(self) -> str:
        """Return the sha256 over the names, splits and texts of all documents."""
        digest = hashlib.sha256()
        for document in self.documents:
            text = document.text.encode()
            # The length keeps two documents from reading like another pair.
            digest.update(f"{document.name}\0{document.split}\0{len(text)}\0".encode() + text)
        return digest.hexdigest()


def read_corpus(
    path: str | None = None, corpus: str | None = None, column: str | None = None
) -> Corpus:
    """Read a corpus into memory.

    Args:
        path: None for the standard library of the running Python (its ``.py`` files without
            tests); a folder for its ``.txt``, ``.md`` and ``.py`` files; or one file. A file of a
            folder belongs to the split that :func:`split_of` gives its relative path, for good.
            One file is cut by position: its first 95% of characters are for training, the next
            2.5% for validation and the rest for the test. Parquet and JSON lines are read by row.
        corpus: A name of ``worldmodel.text.corpora.names()``: read from the hub, or from a copy
            of its files at ``path``. Its own splits are kept.
        column: The column that holds the text of Parquet or JSON lines; None for ``text``. With a
            folder as ``path``, it says that such files are meant. Rows belong to the split that
            the files' names say, else to what :func:`split_of` gives the row's number.

    Raises:
        FileNotFoundError: There is no such file or folder.
        ValueError: There is no text in it, it is not UTF-8, there is no such corpus or column, or
            the corpus cannot be reached or is too large for memory.
    """
    if _has_rows(path, corpus, column):
        if corpus is not None and path is None and corpora.get(corpus).n_tokens > LARGEST:
            raise ValueError(
                f"corpus {corpus!r} has about {corpora.get(corpus).n_tokens:.0e} tokens, too many "
                f"for memory; make shards of it: python -m worldmodel shards --corpus {corpus}"
            )
        content = _rows(documents.source(path, corpus, column))
    elif path is None:
        folder = Path(sysconfig.get_path("stdlib"))
        content = _folder(STANDARD_LIBRARY, folder, standard_library_files(folder))
    elif Path(path).is_dir():
        folder = Path(path)
        files = (file for file in folder.rglob("*") if file.suffix in SUFFIXES and file.is_file())
        content = _folder(folder.resolve().name, folder, files)
    elif Path(path).is_file():
        content = _one_file(Path(path))
    else:
        raise FileNotFoundError(
            f"corpus {path!r}: no such file or folder; give a text that is there, leave it out for "
            "the standard library, or name a published corpus: "
            f"{', '.join(corpora.names())}"
        )
    if not any(document.text for document in content.documents):
        raise ValueError(
            f"corpus {path or content.name!r} has no text; give a UTF-8 file or a folder of "
            f"{', '.join(SUFFIXES)} files, or a column of {', '.join(documents.SUFFIXES)} files"
        )
    return content


def open_corpus(
    path: str | None = None,
    corpus: str | None = None,
    column: str | None = None,
    revision: str | None = None,
) -> documents.Source:
    """Return a corpus as streams that can be resumed; nothing is read yet.

    Text files are read at once: their names decide their splits.
    """
    if _has_rows(path, corpus, column):
        return documents.source(path, corpus, column, revision)
    whole = read_corpus(path)
    texts = {split: whole.texts(split) for split in SPLITS}
    return documents.in_memory(whole.name, {"sha256": whole.sha256()}, texts)


def _has_rows(path: str | None, corpus: str | None, column: str | None) -> bool:
    return bool(corpus or column or (path or "").endswith(documents.SUFFIXES))


def split_of(name: str) -> str:
    """Return the split of a document by its name alone: 18 of 20 train, 1 val, 1 test."""
    residue = int(hashlib.sha256(name.encode()).hexdigest(), 16) % 20
    return {0: "val", 1: "test"}.get(residue, "train")


def standard_library_files(folder: Path) -> list[Path]:
    """Return the ``.py`` files of a standard library that are the same on every machine.

    Tests are left out because slim installations lack them; installed packages, build
    configurations and site customisations because they belong to the machine.
    """
    foreign = {"test", "tests", "idle_test", "site-packages", "dist-packages", "__pycache__"}
    files = []
    for parent, folders, names in os.walk(folder):
        # Assigned in place, so that os.walk does not enter the others.
        folders[:] = [f for f in folders if f not in foreign and not f.startswith("config-")]
        files += [
            Path(parent, name)
            for name in names
            if name.endswith(".py") and not name.startswith(("_sysconfigdata", "sitecustomize"))
        ]
    return files


def _rows(source: documents.Source) -> Corpus:
    divided = set(source.splits) != {"train"}
    rows = []
    for split, texts in source.splits.items():
        for number, text in enumerate(texts):
            name = f"{split}/{number}"
            rows.append(Document(name, split if divided else split_of(name), text))
    return Corpus(source.name, tuple(rows))


def _folder(name: str, folder: Path, files: Iterable[Path]) -> Corpus:
    named = {file.relative_to(folder).as_posix(): file for file in files}
    return Corpus(name, tuple(Document(n, split_of(n), _text(named[n])) for n in sorted(named)))


def _one_file(file: Path) -> Corpus:
    text = _text(file)
    end, middle = int(0.95 * len(text)), int(0.975 * len(text))
    parts = (text[:end], text[end:middle], text[middle:])
    return Corpus(
        file.name,
        tuple(Document(file.name, s, part) for s, part in zip(SPLITS, parts, strict=True)),
    )


def _text(file: Path) -> str:
    try:
        return file.read_bytes().decode()
    except UnicodeDecodeError as error:
        raise ValueError(f"{file}: not UTF-8 text (byte {error.start})") from None
