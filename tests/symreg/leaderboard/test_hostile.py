"""Strings from files are text in every view of a leaderboard, whatever they hold."""

import re

import pytest
from markdown_it import MarkdownIt

from orbits.runs import page, untrusted
from symreg.leaderboard import sections
from tests.symreg.leaderboard.written import Page, failed, forces, search, views

HOSTILE = (
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "a|b`c`*d*_e_[x](javascript:alert(1))\\|",
    "[bold red]x[/bold red] {{ 7*7 }} &amp; %s",
    "\x1b[31mred\x07\x1b]0;title\x07",
    "line\nbreak\r\n# head\u2028\u202ereversed",
    "\ud800 $\\frac{1}{0}$ $",
    "n" * 5000,
)


@pytest.fixture
def results():
    found = []
    for name in HOSTILE:
        named = {"model": name, "arm": name, "labels": name, "protocol": HOSTILE[0]}
        said = {"shape": name, "verdict": name, "expression": name}
        found += [forces(**named), search(engine=name, details=said, **named)]
        found.append(failed(search(**named), name))
    return found


@pytest.mark.full
def test_hostile_strings_are_text_in_html(results, tmp_path):
    html = views(results, tmp_path, drawn=True)[2]
    seen = Page(html)
    assert seen.scripts == ["".join((page.TEMPLATES / x).read_text() for x in page.SCRIPTS)]
    assert all(not name.startswith("on") for _, attributes in seen.tags for name in attributes)
    sources = [attributes["src"] for tag, attributes in seen.tags if tag == "img"]
    assert sources
    assert all(source.startswith("data:image/png;base64,") for source in sources)
    assert not {"link", "iframe", "object"} & {tag for tag, _ in seen.tags}
    links = [attributes["href"] for tag, attributes in seen.tags if tag == "a"]
    saved = r"data:(text/csv;charset=utf-8|image/svg\+xml|image/png);base64,[\w+/=]+"
    assert [x for x in links if not re.fullmatch(rf"#[\w-]+|{saved}", x)] == []
    shown = {cell.strip() for part in seen.tables for row in part for cell in row}
    for name in HOSTILE:
        assert untrusted.printable(name) in shown


def test_hostile_strings_are_text_in_markdown(results, tmp_path):
    markdown = views(results, tmp_path)[1]
    markdown.encode()  # a lone surrogate would not
    seen = Page(MarkdownIt("commonmark").enable("table").render(markdown))
    allowed = {"p", "h1", "h2", "h3", "table", "thead", "tbody", "tr", "th", "td", "code", "ul"}
    assert {tag for tag, _ in seen.tags} <= allowed | {"li", "strong"}
    assert "<" not in re.sub(r"(?<!\\)`[^`]*`", "", markdown), "renderers differ in what is a tag"
    board = seen.tables[0]
    assert len({len(row) for row in board}) == 1
    assert {untrusted.printable(name) for name in HOSTILE} <= {row[1] for row in board}


@pytest.mark.parametrize("terminal", [False, True])
def test_hostile_strings_are_text_in_a_terminal(monkeypatch, terminal, results):
    monkeypatch.setattr("sys.stdout.isatty", lambda: terminal)
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("COLUMNS", "2000")
    report = sections.report(results, drawn=False)
    text = report.to_text(page.failures(results))
    assert ("\x1b[1m" in text) == terminal
    plain = re.sub(r"\x1b\[[0-9;]*m", "", text) if terminal else text
    assert all(c.isprintable() or c == "\n" for c in plain)
    for name in HOSTILE:
        assert untrusted.printable(name) in plain


def test_printable_shows_what_would_hide():
    assert untrusted.printable("\x1b[2J\u202e\n") == "\\x1b[2J\\u202e\\n"
    assert untrusted.printable("π·10") == "π·10"
    assert untrusted.printable("abcdef", 4) == "abc…"
    assert untrusted.printable(3) == "3"
