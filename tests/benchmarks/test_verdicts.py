"""The verdict of each kept report, its first sentence, is short enough to be read at a glance."""

import re
from pathlib import Path

import pytest

KEPT = Path(__file__).parents[2] / "benchmarks" / "results"
REPORTS = sorted(KEPT.rglob("report.md"))
assert len(REPORTS) > 30
LONGEST = 300
"""Characters, as a page shows them."""


def verdict(text):
    """Return the first sentence of a report, without what escapes its characters in Markdown."""
    head = text.partition("\n## ")[0]
    found = re.search(r"^- (.+)$", head, re.M)
    return re.sub(r"\\(.)", r"\1", found[1]) if found else ""


@pytest.mark.parametrize("report", REPORTS, ids=lambda path: str(path.parent.relative_to(KEPT)))
def test_a_verdict_is_short(report):
    said = verdict(report.read_text(encoding="utf-8"))
    assert len(said) <= LONGEST, said


def test_a_verdict_is_the_first_sentence():
    assert verdict("# Q?\n\n- A \\[1, 2\\].\n- B.\n\n## T\n\n- C.\n") == "A [1, 2]."
    assert verdict("# Q?\n\n## T\n\n- C.\n") == ""
