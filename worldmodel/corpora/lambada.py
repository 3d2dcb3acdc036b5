"""LAMBADA as OpenAI prepared it: 5,153 passages whose last word needs the whole passage."""

from worldmodel.corpora import PublishedCorpus

CORPUS = PublishedCorpus(
    name="lambada",
    repository="EleutherAI/lambada_openai",
    configuration="default",
    splits={"test": "test"},
    n_tokens=4.4e5,
    reference="Paperno et al. (2016), arXiv:1606.06031; Radford et al. (2019)",
    license="MIT as prepared by OpenAI; the novels belong to their authors",
)
