"""Documents of Parquet and JSON-lines files, streamed from the hub or from local files alike.

Both go through ``datasets.load_dataset(..., streaming=True)``, so what is tested on small local
files is the code that reads the hub.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from orbits.runs import artefact
from worldmodel.text import corpora
from worldmodel.text.corpora import PublishedCorpus

BUILDERS = {
    "parquet": (".parquet",),
    "json": (".jsonl", ".jsonl.gz", ".jsonl.zst"),
}
"""Builders of ``datasets`` by the suffixes of the files they read."""
SUFFIXES = tuple(suffix for suffixes in BUILDERS.values() for suffix in suffixes)
SPLITS = {"train": "train", "val": "validation", "test": "test"}
"""The hub's names of splits, by ours."""
TIMEOUT = 10.0
"""Seconds to wait for the hub's first answer."""


class Unreachable(ValueError):
    """A corpus cannot be reached; the message says how to give local files instead."""


class Documents:
    """The texts of one split, in a fixed order that can be resumed.

    Args:
        rows: A ``datasets.IterableDataset``.
        column: The column that holds the text.
        starts_document: None where a row is a document; where rows are lines, it tells whether a
            line begins the next one.
    """

    def __init__(
        self, rows: Any, column: str, starts_document: Callable[[str], bool] | None = None
    ) -> None:
        self.rows, self.column, self.starts_document = rows, column, starts_document
        self._entered: list[str] = []  # lines of the document in which the stream was left
        self._lines: list[str] = []

    def __iter__(self) -> Iterator[str]:
        """Yield the texts from the position of the stream on; empty ones are left out."""
        self._lines = list(self._entered)
        for row in self.rows:
            if self.column not in row:
                raise ValueError(f"no column {self.column!r}; choose from {', '.join(row)}")
            text = "" if row[self.column] is None else row[self.column]
            if not isinstance(text, str):
                raise ValueError(
                    f"column {self.column!r} holds {type(text).__name__}, not text; "
                    f"choose from {', '.join(row)}"
                )
            if self.starts_document is None:
                document = text
            elif self.starts_document(text):
                document, self._lines = "".join(self._lines), [text]
            else:
                self._lines.append(text)
                continue
            if document.strip():
                yield document
        document, self._lines = "".join(self._lines), []
        if document.strip():
            yield document

    def state_dict(self) -> dict[str, Any]:
        """Return the position of the stream, as plain data."""
        return {"rows": self.rows.state_dict(), "lines": list(self._lines)}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Resume at the position of a stream of the same files; earlier files are not read."""
        self.rows.load_state_dict(state["rows"])
        self._entered = list(state["lines"])


@dataclass(frozen=True)
class Source:
    """A corpus as streams of documents.

    Attributes:
        name: The corpus.
        record: Record of what determines the texts, without the machine's paths.
        splits: The documents of each split there is; nothing is read until they are iterated.
    """

    name: str
    record: Mapping[str, Any]
    splits: Mapping[str, Documents]


def source(
    path: str | None = None,
    corpus: str | None = None,
    column: str | None = None,
    revision: str | None = None,
) -> Source:
    """Return a published corpus from the hub, or the documents of local files."""
    published = None if corpus is None else corpora.get(corpus)
    if path is not None:
        return tables(path, published, column)
    if published is None:
        raise ValueError("name a published corpus, or the path of Parquet or JSON-lines files")
    return hub(published, revision)


def hub(corpus: PublishedCorpus, revision: str | None = None) -> Source:
    """Return a corpus as it is on the hub; only its description is fetched."""
    datasets = _datasets()
    from huggingface_hub import HfApi  # comes with datasets, an extra

    try:
        # Fails at once or after TIMEOUT, where load_dataset would try for half a minute.
        info = HfApi().dataset_info(corpus.repository, revision=revision, timeout=TIMEOUT)
    except Exception as error:  # the hub's client lets its HTTP library's own errors through
        raise Unreachable(
            f"cannot reach {corpus.repository} on the Hugging Face hub "
            f"({' '.join(str(error).split()) or type(error).__name__}); "
            "get its files elsewhere and give their folder as path"
        ) from None
    loaded = datasets.load_dataset(
        corpus.repository, corpus.configuration, revision=info.sha, streaming=True
    )
    record = {
        "repository": corpus.repository,
        "configuration": corpus.configuration,
        "revision": info.sha,
        "column": corpus.column,
    }
    return _source(corpus.name, record, loaded, corpus.splits, corpus.column, corpus)


def tables(path: str, corpus: PublishedCorpus | None = None, column: str | None = None) -> Source:
    """Return the documents of local Parquet or JSON-lines files.

    Args:
        path: One file, or a folder in the layout of a repository of the hub: the names of its
            files (``train-*``, ``validation-*``, ``test-*``), or its README, say their splits.
        corpus: The published corpus whose files these are; None for others.
        column: The column that holds the text; None for the corpus's own or ``text``.
    """
    datasets, place = _datasets(), Path(path).resolve()
    splits = SPLITS if corpus is None else corpus.splits
    column = column or (corpus.column if corpus else "text")
    if place.is_dir():
        if not any(file.name.endswith(SUFFIXES) for file in place.rglob("*")):
            raise ValueError(f"{path!r} has no {', '.join(SUFFIXES)} files")
        described = corpus is not None and (place / "README.md").is_file()
        configuration = corpus.configuration if corpus and described else None
        loaded = datasets.load_dataset(str(place), configuration, streaming=True)
    elif place.is_file():
        builders = [b for b, suffixes in BUILDERS.items() if place.name.endswith(suffixes)]
        if not builders:
            raise ValueError(f"{path!r} is none of {', '.join(SUFFIXES)}")
        files = {next(iter(splits.values())): str(place)}
        loaded = datasets.load_dataset(builders[0], data_files=files, streaming=True)
    else:
        raise FileNotFoundError(f"corpus {path!r}: no such file or folder")
    name = corpus.name if corpus else place.name
    record = {"files": place.name, "sizes": _sizes(place), "column": column}
    return _source(name, record, loaded, splits, column, corpus)


def _sizes(place: Path) -> str:
    """Return a digest of the names and sizes of all files."""
    files = [place] if place.is_file() else place.rglob("*")
    sizes = {
        str(file.relative_to(place.parent)): file.stat().st_size
        for file in files
        if file.name.endswith(SUFFIXES)
    }
    return artefact.key(sizes)


def in_memory(name: str, record: Mapping[str, Any], texts: Mapping[str, Sequence[str]]) -> Source:
    """Return documents that were read already, by split; empty splits are left out."""
    datasets = _datasets()
    rows = {
        split: datasets.Dataset.from_dict({"text": list(members)}).to_iterable_dataset()
        for split, members in texts.items()
        if members
    }
    return Source(name, record, {split: Documents(rows[split], "text") for split in rows})


def _source(
    name: str,
    record: Mapping[str, Any],
    loaded: Mapping[str, Any],
    splits: Mapping[str, str],
    column: str,
    corpus: PublishedCorpus | None,
) -> Source:
    starts = corpus.starts_document if corpus else None
    streams = {
        ours: Documents(loaded[theirs], column, starts)
        for ours, theirs in splits.items()
        if theirs in loaded
    }
    if not streams:
        raise ValueError(
            f"corpus {name!r} has the splits {', '.join(loaded)}, not {', '.join(splits.values())}"
        )
    return Source(name, record, streams)


def _datasets() -> Any:
    try:
        import datasets  # an extra
    except ModuleNotFoundError:
        raise ValueError(
            "Parquet, JSON lines and the hub need the package datasets: pip install -e '.[eval]'"
        ) from None
    return datasets
