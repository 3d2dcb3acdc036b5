"""RESULTS.md: tables that are marked stand there as in the kept report that they are taken from.

The reports are remade from their lines by ``test_kept.py``, so these tables come from lines too.
"""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MARK = re.compile(r"<!-- table: (?P<folder>[\w-]+): (?P<title>.+?) -->\n\n(?P<table>(?:\|.*\n)+)")
BLOCKS = list(MARK.finditer((ROOT / "RESULTS.md").read_text(encoding="utf-8")))


def test_tables_are_marked():
    assert BLOCKS


@pytest.mark.parametrize("block", BLOCKS, ids=lambda block: f"{block['folder']}: {block['title']}")
def test_a_marked_table_is_that_of_the_report(block):
    report = ROOT / "benchmarks/results" / block["folder"] / "report.md"
    section = report.read_text(encoding="utf-8").partition(f"# {block['title']}\n")[2]
    (table,) = re.findall(r"(?:^\|.*\n)+", section.partition("\n#")[0], re.MULTILINE)[:1]
    assert block["table"] == table
