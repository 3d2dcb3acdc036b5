"""OpenWebText2: web pages that Reddit linked to.

The hub has the original release only as one tar archive of 29 GB, which cannot be streamed. This
repository has its text as Parquet, deduplicated once more and without pages that are not English,
so losses on it differ from losses on the original.
"""

from worldmodel.corpora import PublishedCorpus

CORPUS = PublishedCorpus(
    name="openwebtext2",
    repository="Geralt-Targaryen/openwebtext2",
    configuration="default",
    splits={"train": "train"},
    n_tokens=1.5e10,
    reference="Gao et al. (2020), arXiv:2101.00027, Sect. 2.5",
    license="none stated for the texts, which belong to the authors of the pages",
)
