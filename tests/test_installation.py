"""What is installed is pinned, and what is depended on has its licence stated."""

import importlib.metadata
import re
import tomllib
from pathlib import Path

import pytest

from worldmodel.text import corpora

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
FLOATING = re.compile(r"triton|nvidia-.*|cuda-.*|setuptools")
"""Left out of constraints.txt, which says why; setuptools comes with the virtual environment."""


def plain(name):
    return re.sub(r"[-_.]+", "-", name).lower()


def named(requirement):
    return plain(re.match(r"[\w.-]+", requirement)[0])


def installed_for(roots):
    """Return all distributions that are here because of some: their requirements' requirements."""
    found, waiting = set(), list(roots)
    while waiting:
        name = waiting.pop()
        if name in found:
            continue
        try:
            required = importlib.metadata.requires(name) or []
        except importlib.metadata.PackageNotFoundError:
            continue  # of another platform, or of an extra that was not asked for
        found.add(name)
        waiting += [named(x) for x in required if "extra ==" not in x]
    return found


def test_everything_that_is_installed_is_pinned():
    dev = PROJECT["dependencies"] + PROJECT["optional-dependencies"]["dev"]
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    pinned = {named(line) for line in lines if "==" in line}
    here = {x for x in installed_for(map(named, dev)) if not FLOATING.fullmatch(x)}
    assert len(here) > 50
    assert sorted(here - pinned) == []


def test_every_dependency_has_its_licence_stated():
    text = (ROOT / "THIRD_PARTY.md").read_text()
    table = text[text.index("| package | licence |") :]
    names = (name for row in table.splitlines() for name in row.split("|")[1].split(","))
    stated = {plain(name.strip()) for name in names}
    groups = [PROJECT["dependencies"], *PROJECT["optional-dependencies"].values()]
    assert sorted({named(x) for group in groups for x in group} - stated) == []


@pytest.mark.parametrize("name", corpora.names())
def test_the_licence_of_a_corpus_is_stated_where_people_look(name):
    corpus = corpora.get(name)
    assert corpus.license
    assert corpus.license in (ROOT / "THIRD_PARTY.md").read_text()
