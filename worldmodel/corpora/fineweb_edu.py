"""FineWeb-Edu: the pages of FineWeb that a classifier found educational."""

from worldmodel.corpora import PublishedCorpus

CORPUS = PublishedCorpus(
    name="fineweb_edu",
    repository="HuggingFaceFW/fineweb-edu",
    configuration="sample-10BT",
    splits={"train": "train"},
    n_tokens=1e10,
    reference="Penedo et al. (2024), arXiv:2406.17557",
    license="ODC-By 1.0, and the terms of use of Common Crawl",
)
