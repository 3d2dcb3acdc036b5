"""Published corpora. One file per corpus; a new file here is found automatically.

Nothing is downloaded to list them; :mod:`worldmodel.documents` reads them.
"""

from __future__ import annotations

import difflib
import functools
import importlib
import pkgutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class PublishedCorpus:
    """A text corpus on the Hugging Face hub.

    Attributes:
        name: The name used in configs and records; that of its file.
        repository: Repository on the hub.
        configuration: Which of the repository's configurations.
        splits: The hub's name of each split it has, by ours (train, val, test). A corpus with a
            training split alone is divided by its reader.
        n_tokens: Its size in GPT-2 tokens, roughly.
        reference: Where it was described.
        license: On what terms its publishers give it away; read theirs before you pass it on.
        column: The column that holds the text.
        starts_document: Where rows are lines: tells whether a line begins a new document.
    """

    name: str
    repository: str
    configuration: str
    splits: Mapping[str, str]
    n_tokens: float
    reference: str
    license: str
    column: str = "text"
    starts_document: Callable[[str], bool] | None = None


def names() -> tuple[str, ...]:
    """Return the names of all published corpora."""
    return tuple(sorted(module.name for module in pkgutil.iter_modules(__path__)))


@functools.cache
def get(name: str) -> PublishedCorpus:
    """Return the corpus called ``name``.

    Raises:
        ValueError: There is no such corpus; the message names near ones and lists the choices.
    """
    if name not in names():
        near = difflib.get_close_matches(str(name).lower(), names())
        hint = f"; did you mean {', '.join(near)}?" if near else ";"
        raise ValueError(f"unknown corpus {name!r}{hint} choose from {', '.join(names())}")
    corpus: PublishedCorpus = importlib.import_module(f"{__name__}.{name}").CORPUS
    if corpus.name != name:
        raise ValueError(f"worldmodel/corpora/{name}.py names its corpus {corpus.name!r}")
    return corpus
