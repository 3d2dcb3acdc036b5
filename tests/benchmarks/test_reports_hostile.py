"""Strings from result lines are text in every report, whatever they hold."""

import shutil
from pathlib import Path

import pytest
from markdown_it import MarkdownIt

from benchmarks.__main__ import main
from orbits.runs import artefact
from orbits.runs import folder as results
from tests.symreg.leaderboard.written import Page

KEPT = Path(__file__).parents[2] / "benchmarks" / "results"
HOSTILE = "<script>alert(1)</script>|[x](http://x) ![x][y] `c\\| \u202eback\x1b[31m\n# $x^{$"
SHOWN = HOSTILE.replace("\u202e", "\\u202e").replace("\x1b", "\\x1b").replace("\n", "\\n")


@pytest.fixture(params=["mqar-small", "newton-free-step"])
def pages(request, tmp_path, capsys):
    """Return the Markdown, the page and what was printed of a report of hostile lines."""
    out = tmp_path / "out"
    shutil.copytree(KEPT / request.param, out)
    lines, proof = artefact.load_lines(out / results.LINES)
    name = lines[-1]["variant"]
    for line in lines:
        if line["variant"] == name:
            line["variant"] = HOSTILE
    lines.append({**lines[-1], "cell": "lost", "status": "failed", "error": HOSTILE, "metrics": {}})
    artefact.save_lines(out / results.LINES, lines, proof)
    main(["report", str(out), "--full"])
    (markdown,) = (path for path in out.glob("*.md") if path.name != "README.md")
    return markdown.read_text(), (out / "report.html").read_text(), capsys.readouterr().out


@pytest.mark.full
def test_hostile_names_are_text_in_a_report(pages):
    markdown, page, printed = pages
    for text in pages:
        assert all(c.isprintable() or c == "\n" for c in text)
    assert not printed or "\\x1b" in printed
    seen = Page(MarkdownIt("commonmark").enable("table").render(markdown))
    tags = {tag for tag, _ in seen.tags}
    assert not tags & {"script", "a"}
    sources = [attributes["src"] for tag, attributes in seen.tags if tag == "img"]
    assert all(source.startswith("figures/") for source in sources)
    assert any(SHOWN[:40] in cell for table in seen.tables for row in table for cell in row)
    seen = Page(page)
    assert not any("alert" in script for script in seen.scripts)
    assert any("alert(1)" in cell for table in seen.tables for row in table for cell in row)
