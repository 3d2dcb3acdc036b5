"""The page: whole in one file, inert strings, and the policy that names its only script."""

import base64
import hashlib
import json
import re
import shutil
import subprocess

import pytest

from orbits.runs import download, page
from orbits.runs.page import Picture, Report, Section
from orbits.runs.result import Case, Quantity, Result
from orbits.runs.table import Column, Table, Value

EVIL = "<script>alert(1)</script> [x](javascript:1) `a` \u202e\x1b"
MANIFEST = {"git": {"commit": "0123456789ab"}, "device": "cpu"}
RESULTS = [
    Result(Case("s", "k", "good", seed=0), manifest=MANIFEST, cpu_s=60.0),
    Result(Case("s", "k", EVIL, seed=1), status="failed", error=EVIL, manifest=MANIFEST),
]
TABLE = Table(EVIL, [Column("a", EVIL, group="g"), Column("b")], [
    [Value(EVIL, EVIL, kind="name"), Value("2", order=2.0)],
    [Value("x", kind="formula"), Value("-")],
])  # fmt: skip
REPORT = Report(
    "Question?",
    EVIL,
    [EVIL],
    [Section(EVIL, [TABLE], [EVIL], [Picture(EVIL, [b"png"])], [EVIL]), Section("b"), Section("c")],
    [EVIL],
)


@pytest.fixture
def html(tmp_path):
    metrics = {EVIL: Quantity("lower", "AU", EVIL)}
    path = page.write(REPORT, RESULTS, {"config": {"name": EVIL}}, tmp_path, metrics)
    return path.read_text()


def test_strings_are_text_and_nothing_is_loaded_or_run_but_the_sorting(html):
    (script,) = re.findall(r"<script>(.*?)</script>", html, re.DOTALL)
    assert "alert" not in script
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"script-src &#39;sha256-{digest}&#39;" in html
    assert "default-src &#39;none&#39;" in html
    assert not re.search(r'(src|href)="(?!data:|#)', html)
    assert "\u202e" not in html
    assert "\x1b" not in html


def test_the_page_has_contents_failures_devices_and_time(html):
    # the headline, sections of which the first has no more, failures, words, provenance
    assert html.count("<h2") == 1 + 3 + 3
    for text in ("#section-2", "1.0 CPU minutes", "0123456789", "AU, lower is better", "failed"):
        assert text in html
    assert 'data-order="2.0"' in html


def test_the_text_and_the_markdown_say_the_same(tmp_path):
    failed = page.failures(RESULTS)
    text, markdown = REPORT.to_text(failed), REPORT.to_markdown(failed)
    for each in (text, markdown):
        assert "\x1b" not in each
        assert "\u202e" not in each
        assert "Cells without a result" in each
    assert "<script>" not in markdown
    assert markdown.count("&lt;script&gt;") >= 6


def test_a_picture_says_what_kind_of_image_it_is():
    assert [url[:15] for url in Picture("", [b"GIF89a", b"\x89PNG"]).urls] == [
        "data:image/gif;",
        "data:image/png;",
    ]


def test_markdown_links_the_figures_of_its_folder_alone(tmp_path):
    places = [tmp_path / "run" / "figures" / "a b.png", tmp_path / "other.png", b"GIF89a"]
    report = Report("?", sections=[Section("Figures", pictures=[Picture("[1]", places)])])
    assert report.to_markdown(place=tmp_path / "run").endswith(
        "## Figures\n\n![\\[1\\]](figures/a%20b.png)\n"
    )
    assert "Figures" not in report.to_markdown()


def test_a_report_explains_each_column_once_and_leaves_out_folded_tables():
    columns = [Column("name", "a word."), *(Column(x, "in metres.") for x in ("one", "two"))]
    lengths = Table("Lengths", columns, [[Value("a"), Value("1"), Value("2")]])
    folded = Table("Formulas", [Column("formula")], [[Value("m1/r", kind="formula")]], folded=True)
    sections = [Section("Lengths", [lengths, lengths]), Section("Formulas", [folded])]
    report = Report("What is long?", sections=sections)
    markdown, text = report.to_markdown(), report.to_text()
    assert "- one, two: in metres.\n" in markdown
    assert "name: a word.\none, two: in metres.\n" in text
    for view in (markdown, text):
        assert view.count("in metres") == 1
        assert "m1/r" not in view
    assert "1 rows: see report.html" in markdown
    assert "Formulas" not in text
    assert text.count("Lengths") == 1


SORT_HARNESS = """
const cell = (text) => ({
  dataset: text.startsWith("=") ? { order: text.slice(1) } : {}, textContent: text });
const rows = DATA.map((texts) => ({ cells: texts.map(cell) }));
const body = { rows, append(...sorted) { body.rows = sorted; } };
const line = { cells: [] };
line.cells = [0, 1].map(() => ({
  attributes: { "aria-sort": "none" }, parentNode: line, closest: () => ({ tBodies: [body] }),
  getAttribute(name) { return this.attributes[name]; },
  setAttribute(name, value) { this.attributes[name] = value; },
}));
const buttons = line.cells.map((parentNode) => ({
  parentNode, addEventListener(_, act) { this.click = act; } }));
globalThis.document = { querySelectorAll: () => buttons };
SCRIPT
const told = [];
for (const column of [0, 0, 1, 1]) {
  buttons[column].click();
  const texts = body.rows.map((row) => row.cells[column].textContent);
  told.push([texts, line.cells.map((heading) => heading.attributes["aria-sort"])]);
}
console.log(JSON.stringify(told));
"""


@pytest.mark.skipif(shutil.which("node") is None, reason="needs node")
def test_a_click_sorts_numbers_and_names_and_keeps_what_is_missing_last():
    data = [["=10", "b"], ["=-2.5", "a 10"], ["=", ""], ["=9e-3", "a 9"]]
    program = SORT_HARNESS.replace("DATA", json.dumps(data))
    program = program.replace(
        "SCRIPT", (page.TEMPLATES / "sort.js").read_text().replace('"use strict";', "")
    )
    run = subprocess.run(["node", "-e", program], capture_output=True, text=True, check=True)
    assert json.loads(run.stdout) == [
        [["=-2.5", "=9e-3", "=10", "="], ["ascending", "none"]],
        [["=10", "=9e-3", "=-2.5", "="], ["descending", "none"]],
        [["a 9", "a 10", "b", ""], ["none", "ascending"]],
        [["b", "a 10", "a 9", ""], ["none", "descending"]],
    ]


def test_what_was_skipped_for_one_reason_is_one_line_and_every_failure_has_its_own():
    skipped = [Result(Case("s", "k", x), status="skipped", error="no GPU") for x in "ab"]
    failed = [Result(Case("s", "k", x), status="failed", error="no") for x in "cd"]
    assert page.failures([failed[0], skipped[0], failed[1], skipped[1]]) == [
        "failed: k, c: no",
        "skipped: k, a and 1 more: no GPU",
        "failed: k, d: no",
    ]


def test_the_first_screen_hands_out_all_rows_and_columns(tmp_path):
    heads = [Column(f"c{i}") for i in range(9)]
    table = Table("Long", heads, [[Value(f"{row}.{i}") for i in range(9)] for row in range(40)])
    place = page.write(Report("?", sections=[Section("Long", [table])]), [], {}, tmp_path)
    handed = re.findall(r'href="(data:text/csv[^"]+)"', place.read_text())
    assert handed == [download.csv_url(table)] * 2
