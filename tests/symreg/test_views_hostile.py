"""Strings from files are text in every view, whatever they hold."""

import base64
import hashlib
import re

import pytest
from markdown_it import MarkdownIt

from orbits import untrusted
from symreg import leaderboard
from symreg.views import html
from symreg.views.markdown import SHOWN
from tests.symreg.written_lines import Page, failed, predictor, search, table, text_at

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


def hostile_lines():
    lines = []
    for name in HOSTILE:
        lines += [predictor(name, arm=name, labels=name), failed(model=name) | {"error": name}]
        found = search(model=name, arm=name, labels=name, engine=name, expression=name)
        found["metrics"] |= {"shape": name, "verdict": name}
        lines.append(found)
    return [entry | {"row": entry["row"] | {"protocol": HOSTILE[0]}} for entry in lines]


def test_hostile_strings_are_text_in_html():
    lines = hostile_lines()
    page = leaderboard.to_html(lines, table(lines), "newton", {"note": HOSTILE[0]})
    page.encode()  # a lone surrogate would not
    seen = Page(page)
    script = (html.TEMPLATES / "sort.js").read_text()
    assert seen.scripts == [script]
    assert all(not name.startswith("on") for _, attributes in seen.tags for name in attributes)
    sources = [attributes["src"] for tag, attributes in seen.tags if tag == "img"]
    assert sources
    assert all(source.startswith("data:image/png;base64,") for source in sources)
    assert not {"link", "iframe", "a", "object"} & {tag for tag, _ in seen.tags}
    policy = next(
        a["content"]
        for tag, a in seen.tags
        if tag == "meta" and "content" in a and "src" in a["content"]
    )
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert policy.endswith(f"script-src 'sha256-{digest}'")
    shown = {cell.strip() for part in seen.tables for row in part for cell in row}
    for name in HOSTILE:
        assert untrusted.printable(name) in shown


def test_hostile_strings_are_text_in_markdown():
    lines = hostile_lines()
    markdown = leaderboard.to_markdown(table(lines), "newton", lines)
    markdown.encode()
    seen = Page(MarkdownIt("commonmark").enable("table").render(markdown))
    allowed = {"p", "h3", "table", "thead", "tbody", "tr", "th", "td", "code", "ul", "li"}
    assert {tag for tag, _ in seen.tags} <= allowed
    assert "<" not in re.sub(r"(?<!\\)`[^`]*`", "", markdown), "renderers differ in what is a tag"
    board = seen.tables[0]
    assert {len(row) for row in board} == {len(SHOWN)}
    assert {untrusted.printable(name) for name in HOSTILE} <= {row[0] for row in board}


@pytest.mark.parametrize("terminal", [False, True])
def test_hostile_strings_are_text_in_a_terminal(monkeypatch, terminal):
    monkeypatch.setattr("sys.stdout.isatty", lambda: terminal)
    monkeypatch.delenv("NO_COLOR", raising=False)
    lines = hostile_lines()
    text = text_at(monkeypatch, 2000, table(lines), "newton", lines)
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
