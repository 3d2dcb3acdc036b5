"""Docstrings begin with a noun phrase or an imperative, which names the thing held or done."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
RIDDLES = re.compile(
    r'^\s*r?"""((?:What|When|Where|Which|Who|Whose|Why|How|It|Its|If|Of|By|Their|There|Those|That|'
    r"Said|Such|The same)\b.*)",
    re.MULTILINE,
)
"""Beginnings that leave the noun out; strings below a constant are docstrings too."""


def test_the_pattern_knows_a_riddle():
    text = '"""What is asked."""\nSTRENGTH = 1.0\n"""Of the ridge."""\n"""In-context recall."""\n'
    assert RIDDLES.findall(text) == ['What is asked."""', 'Of the ridge."""']


@pytest.mark.parametrize(
    "package", ["attention", "benchmarks", "orbits", "orrery", "symreg", "worldmodel"]
)
def test_first_lines_name_the_thing(package):
    paths = sorted((ROOT / package).rglob("*.py"))
    found = {
        f"{path.relative_to(ROOT)}: {line}"
        for path in paths
        for line in RIDDLES.findall(path.read_text("utf-8"))
    }
    assert paths
    assert not found
