"""Published text corpora; :mod:`worldmodel.text.documents` reads them.

Nothing is downloaded to list them. A plug-in adds its own (:mod:`orbits.runs.plugins`).
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from orbits.runs import plugins
from orbits.runs.choices import check_choice


@dataclass(frozen=True)
class PublishedCorpus:
    """A text corpus on the Hugging Face hub.

    Attributes:
        name: The name used in configs and records.
        repository: Repository on the hub.
        configuration: Configuration of the repository.
        splits: The hub's name of each split it has, by ours (train, val, test). A corpus with a
            training split alone is divided by its reader.
        n_tokens: Size in GPT-2 tokens, roughly.
        reference: Publication that describes it.
        license: On what terms its publishers give it away; read theirs before you pass it on.
        column: The column that holds the text.
        starts_document: Function that tells whether a line begins a new document, where rows are
            lines.
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


WIKITEXT_TITLE = re.compile(r" = [^= ](?:[^=]*[^= ])? = \n?")
"""Title of an article: one equals sign on each side; a section has more.

Nothing else marks an article, so a line of one that looks like this begins a document too.
"""

_CORPORA = (
    # English web pages of Common Crawl, filtered and deduplicated.
    PublishedCorpus(
        name="fineweb",
        repository="HuggingFaceFW/fineweb",
        configuration="sample-10BT",
        splits={"train": "train"},
        n_tokens=1e10,
        reference="Penedo et al. (2024), arXiv:2406.17557",
        license="ODC-By 1.0, and the terms of use of Common Crawl",
    ),
    # The pages of FineWeb that a classifier found educational.
    PublishedCorpus(
        name="fineweb_edu",
        repository="HuggingFaceFW/fineweb-edu",
        configuration="sample-10BT",
        splits={"train": "train"},
        n_tokens=1e10,
        reference="Penedo et al. (2024), arXiv:2406.17557",
        license="ODC-By 1.0, and the terms of use of Common Crawl",
    ),
    # 5,153 passages whose last word needs the whole passage, as OpenAI prepared them.
    PublishedCorpus(
        name="lambada",
        repository="EleutherAI/lambada_openai",
        configuration="default",
        splits={"test": "test"},
        n_tokens=4.4e5,
        reference="Paperno et al. (2016), arXiv:1606.06031; Radford et al. (2019)",
        license="MIT as prepared by OpenAI; the novels belong to their authors",
    ),
    # Web pages that Reddit linked to. The hub has the original release only as one tar archive of
    # 29 GB, which cannot be streamed. This repository has its text as Parquet, deduplicated once
    # more and without pages that are not English, so losses on it differ from losses on the
    # original.
    PublishedCorpus(
        name="openwebtext2",
        repository="Geralt-Targaryen/openwebtext2",
        configuration="default",
        splits={"train": "train"},
        n_tokens=1.5e10,
        reference="Gao et al. (2020), arXiv:2101.00027, Sect. 2.5",
        license="none stated for the texts, which belong to the authors of the pages",
    ),
    # Verified good and featured articles of Wikipedia, raw. A row of the hub is a line; lines are
    # joined into articles, each a document. The text is taken as it is, with the spaces and the
    # `` @-@ `` of its authors' tokenisation, so perplexities per word are those of the
    # undetokenised text.
    PublishedCorpus(
        name="wikitext103",
        repository="Salesforce/wikitext",
        configuration="wikitext-103-raw-v1",
        splits={"train": "train", "val": "validation", "test": "test"},
        n_tokens=1.2e8,
        reference="Merity et al. (2016), arXiv:1609.07843",
        license="CC BY-SA 3.0 and GFDL",
        starts_document=lambda line: WIKITEXT_TITLE.fullmatch(line) is not None,
    ),
)


@functools.cache
def _catalogue() -> tuple[dict[str, PublishedCorpus], dict[str, str]]:
    """Return every corpus by name, and by plug-in the fault of each that makes none."""
    known = {corpus.name: corpus for corpus in _CORPORA}
    found, faults = plugins.definitions("CORPUS", known, PublishedCorpus)
    return known | found, faults


def names() -> tuple[str, ...]:
    """Return the names of all published corpora, sorted."""
    return tuple(sorted(_catalogue()[0]))


def get(name: str) -> PublishedCorpus:
    """Return the corpus called ``name``."""
    known, faults = _catalogue()
    left_out = "".join(f"; left out: {line}" for line in faults.values())
    check_choice("corpus", name, names(), also=left_out)
    return known[name]
