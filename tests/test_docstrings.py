"""Docstrings begin with a noun phrase or an imperative; their examples hold."""

import doctest
import importlib
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGES = ("attention", "benchmarks", "orbits", "orrery", "symreg", "worldmodel")
RIDDLES = re.compile(
    r'^\s*r?"""((?:What|When|Where|Which|Who|Whose|Why|How|It|Its|If|Of|By|Their|There|Those|That|'
    r"Said|Such|The same)\b.*)",
    re.MULTILINE,
)
"""Beginnings that leave the noun out; strings below a constant are docstrings too."""


def test_the_pattern_knows_a_riddle():
    text = '"""What is asked."""\nSTRENGTH = 1.0\n"""Of the ridge."""\n"""In-context recall."""\n'
    assert RIDDLES.findall(text) == ['What is asked."""', 'Of the ridge."""']


@pytest.mark.parametrize("package", PACKAGES)
def test_first_lines_name_the_thing(package):
    paths = sorted((ROOT / package).rglob("*.py"))
    found = {
        f"{path.relative_to(ROOT)}: {line}"
        for path in paths
        for line in RIDDLES.findall(path.read_text("utf-8"))
    }
    assert paths
    assert not found


def with_examples():
    """Return the names of the modules whose text has an example."""
    paths = [path for package in PACKAGES for path in sorted((ROOT / package).rglob("*.py"))]
    with_some = [path for path in paths if ">>> " in path.read_text("utf-8")]
    return [".".join(path.relative_to(ROOT).with_suffix("").parts) for path in with_some]


@pytest.mark.parametrize("module", with_examples())
def test_examples_hold(module):
    # Those of problems pin the random streams: numpy may change them only with a major reason.
    found = doctest.testmod(importlib.import_module(module))
    assert found.attempted > 0
    assert found.failed == 0
