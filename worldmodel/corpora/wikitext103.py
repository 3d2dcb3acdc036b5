"""WikiText-103, raw: verified good and featured articles of Wikipedia.

A row of the hub is a line; lines are joined into articles, each a document. The text is taken as
it is, with the spaces and the `` @-@ `` of its authors' tokenisation, so perplexities per word are
those of the undetokenised text.
"""

import re

from worldmodel.corpora import PublishedCorpus

TITLE = re.compile(r" = [^= ](?:[^=]*[^= ])? = \n?")
"""A title has one equals sign on each side; a section has more.

Nothing else marks an article, so a line of one that looks like this begins a document too.
"""

CORPUS = PublishedCorpus(
    name="wikitext103",
    repository="Salesforce/wikitext",
    configuration="wikitext-103-raw-v1",
    splits={"train": "train", "val": "validation", "test": "test"},
    n_tokens=1.2e8,
    reference="Merity et al. (2016), arXiv:1609.07843",
    license="CC BY-SA 3.0 and GFDL",
    starts_document=lambda line: TITLE.fullmatch(line) is not None,
)
