"""The views of a leaderboard, on lines written by hand: what they say and how they are laid out."""

import html as html_module
import json
import math
import re
import shutil
import subprocess
import sys

import pytest

from symreg import leaderboard, published
from symreg.views import columns, figures, html, words
from symreg.views.html import DRAWN
from symreg.views.markdown import SHOWN
from tests.symreg.written_lines import Page, failed, predictor, search, table, text_at


@pytest.fixture
def no_figures(monkeypatch):
    for name in ("exponents", "spread", "residuals", "fronts"):
        monkeypatch.setattr(figures, name, lambda *_: None)


def cells(row, engine=0):
    own, law = columns.cells(row)[engine]
    return {
        heading: f"{cell.value} {cell.detail}".strip()
        for heading, cell in zip(columns.HEADINGS, (*own, *law), strict=True)
    }


def test_a_row_says_what_was_measured_and_what_each_engine_found():
    lines = [predictor(), search(), search(symbolic="yes"), search(symbolic="timeout")]
    lines += [search("law up to an offset"), failed(), search("another law", engine="pysr@2.7.2")]
    (row,) = table(lines)
    first, second = cells(row), cells(row, 1)
    assert first["seeds"] == "1 seed"
    assert first["r"] == "-2.000 [-2.100, -1.900]"
    assert first["R2 of ln F"] == "0.9900 2% dropped"
    assert first["law found"] == "3/5 [0.23, 0.88], 1 failed"
    assert first["up to an offset"] == "4/5"
    assert first["symbolic yes"] == "1/5 1 timeout"
    assert first["verdicts"] == "3 law, 1 failed, 1 law up to an offset"
    assert first["constant of law"] == "39.50 [39.50, 39.50]"
    assert first["shape"] == "C*m1*m2/r**2 (3 of 5; 2 different)"
    assert first["CPU s"] == "2.0"
    assert second["r"] == first["r"], "a line stands for itself, wherever it is sorted to"
    assert second["law found"] == "0/1 another law [0.00, 0.79]"
    assert second["constant of law"] == "-"


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ([search("no law found", r2_log=0.3)] * 3, "no law found"),
        # Two of three describe the predictions; the row as a whole does not.
        ([search("no law found", r2_log=0.8), search("another law", r2_log=0.91)], "no law found"),
        ([search("another law", r2_log=0.95)], "another law"),
        ([search("no law found", r2_log=None)], "no law found"),
        ([failed(), failed()], "all failed"),
    ],
)
def test_a_row_without_the_law_says_why(lines, said):
    lines = [entry | {"cell": str(place)} for place, entry in enumerate(lines)]
    (row,) = table([predictor(), *lines])
    assert cells(row)["law found"].startswith(f"0/{len(lines)} {said} [0.00, ")


@pytest.mark.parametrize(
    ("found", "total", "warned"), [(8, 10, True), (9, 10, False), (3, 3, False)]
)
def test_a_search_that_misses_the_true_force_is_named_in_every_view(
    found, total, warned, no_figures
):
    control = {"model": "true force", "arm": "control", "labels": "-"}
    lines = [
        search("law" if k < found else "another law", seed=None, **control) for k in range(total)
    ]
    lines += [predictor(), *(search("another law", "true force") for _ in range(5))]
    rows = table(lines)
    sentence = f"only {found} of {total} searches: the search, not the models, limits its law rates"
    views = leaderboard.to_text(rows), leaderboard.to_markdown(rows)
    page = leaderboard.to_html(lines, rows, "newton", {})
    for view in (*views, page):
        assert (sentence in " ".join(view.split())) == warned
        assert view.lower().count("warning") - view.count("-warning") == warned


def test_rows_whose_points_leave_the_verdict_open_say_so(monkeypatch, no_figures):
    one, other = predictor("a", alike=["power_2_5", "mond"]), predictor("b")
    sentence = "on these points the verdict cannot tell newton from mond, power_2_5."
    rows = table([one, other])
    assert f"a, pretrained, 300 labels: {sentence}" in text_at(monkeypatch, 160, rows)
    assert f"a, pretrained, 300 labels: {sentence}" in leaderboard.to_html([], rows, "newton", {})
    assert f"Every row: {sentence}".replace("_", "\\_") in leaderboard.to_markdown(table([one]))
    assert "cannot tell newton" not in leaderboard.to_markdown(table([other]))


def test_what_may_be_claimed_is_about_exponents_and_names_few_seeds():
    (sentence,) = words.claims(table([predictor(r=-1.95)]))
    assert sentence == (
        "gpt, pretrained, 300 labels (1 seed; another training may differ): exponent "
        "r -1.950 [-2.050, -1.850] contains the law's -2; "
        "m1 0.500 [0.400, 0.600] excludes the law's 1; "
        "m2 1.000 [0.900, 1.100] contains the law's 1."
    )
    (sentence,) = words.claims(table([predictor(seed=seed) for seed in range(3)]))
    assert "(3 seeds): exponent" in sentence


def test_too_few_sequences_are_said_and_nothing_is_claimed_from_them(tmp_path, monkeypatch):
    line = predictor()
    line["metrics"]["exponents"]["r"] = [-2.0, -math.inf, math.inf]
    (tmp_path / "lines.jsonl").write_text(json.dumps(line) + "\n")
    lines = leaderboard.read_lines(tmp_path / "lines.jsonl")
    (row,) = table(lines)
    assert cells(row)["r"] == "-2.000 [too few sequences]"
    assert cells(row)["m1"] == "0.500 [0.400, 0.600]"
    (sentence,) = words.claims([row])
    assert "exponent m1 0.500 [0.400, 0.600] excludes the law's 1; m2" in sentence
    for name in ("m1", "m2"):
        line["metrics"]["exponents"][name] = [5.0, -math.inf, math.inf]
    (row,) = table([line, predictor(seed=1)])
    assert words.claims([row]) == [], "a seed without an interval leaves the row without one"
    markdown, page = (
        leaderboard.to_markdown([row]),
        leaderboard.to_html([line], [row], "newton", {}),
    )
    for view in (markdown, page, text_at(monkeypatch, 200, [row])):
        assert "too few" in view
        assert not re.search(r"\b(inf|nan|Infinity)\b", view)


@pytest.mark.parametrize("law", ["newton", "harmonic"])
def test_published_rows_stand_apart_and_name_their_world(law, monkeypatch, no_figures):
    rows = table([predictor(), search()], law)
    page = leaderboard.to_html([], rows, law, {})
    for view in (text_at(monkeypatch, 160, rows, law), leaderboard.to_markdown(rows, law), page):
        said = html_module.unescape(" ".join(view.split()))
        assert "ublished, not measured here" in said
        assert "Under the paper's protocol and Newton's law" in said
        assert "no interval and no number of seeds" in said
        assert said.count("Oracle (k-NN)") == 1
    boards = [part for part in Page(page).tables if "law found" in str(part)]
    assert not any(row.source in str(boards) for row in published.ROWS)


def test_failed_cells_are_listed_with_their_error(monkeypatch, no_figures):
    lines = [predictor(), search(), failed(seed=4)]
    rows = table(lines)
    sentence = (
        "gpt, pretrained, 300 labels, seed 4, operon@0.6.2 search 4: ValueError: no such orbit"
    )
    assert sentence in text_at(monkeypatch, 160, rows, "newton", lines)
    assert sentence in leaderboard.to_markdown(rows, "newton", lines)
    assert sentence in leaderboard.to_html(lines, rows, "newton", {})


@pytest.mark.parametrize("width", [200, 160, 120, 100, 80])
def test_the_terminal_table_fits_and_keeps_exponents_and_rate(monkeypatch, width):
    lines = [predictor("a model of another group with a long name"), search(model="gpt")]
    lines += [predictor(), predictor("true force", arm="control", labels="-", seed=None)]
    text = text_at(monkeypatch, width, table(lines))
    assert max(map(len, text.splitlines())) <= width
    assert "\x1b" not in text, "no terminal, no colour"
    heading = next(part for part in text.splitlines() if part.startswith("model"))
    assert {"r", "m1", "m2", "law", "found"} <= set(heading.split())
    if width >= 160:
        assert "[-2.100, -1.900]" in text
        assert "C*m1*m2/r**2" in text
        assert text.index("of another") < text.index("\ncontrols\n") < text.index("true force ")


def test_every_column_is_explained_where_it_is_shown(monkeypatch):
    rows = table([predictor(), search()])
    markdown, text = leaderboard.to_markdown(rows), text_at(monkeypatch, 160, rows)
    assert "CPU s" not in markdown, "the same cells give the same file"
    for heading in SHOWN:
        assert re.search(rf"^- (.*, )?{re.escape(heading)}(, .*)?: ", markdown, re.MULTILINE)
    assert "law found: searches whose formula is the law" in text
    assert "Markdown and HTML have more columns: arm" in text


def test_the_page_is_one_file_with_sortable_tables():
    lines = [predictor(), search(), predictor("true force", arm="control")]
    page = leaderboard.to_html(lines, table(lines), "newton", {"config": {"seeds": 3}})
    assert "://" not in page
    seen = Page(page)
    for part in seen.tables:
        assert len({len(row) for row in part if len(row) > 3}) == 1
    headings = [
        attributes for tag, attributes in seen.tags if tag == "th" and attributes["scope"] == "col"
    ]
    assert headings
    assert {attributes["aria-sort"] for attributes in headings} == {"none"}
    assert [tag for tag, _ in seen.tags].count("button") == len(headings)
    assert page.count('src="data:image/png;base64,') == 4
    assert "&#34;seeds&#34;: 3" in page


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
        "SCRIPT", (html.TEMPLATES / "sort.js").read_text().replace('"use strict";', "")
    )
    run = subprocess.run(["node", "-e", program], capture_output=True, text=True, check=True)
    assert json.loads(run.stdout) == [
        [["=-2.5", "=9e-3", "=10", "="], ["ascending", "none"]],
        [["=10", "=9e-3", "=-2.5", "="], ["descending", "none"]],
        [["a 9", "a 10", "b", ""], ["none", "ascending"]],
        [["b", "a 10", "a 9", ""], ["none", "descending"]],
    ]


def test_nothing_heavy_is_imported_before_it_is_needed():
    code = "import sys, symreg.leaderboard; print([m for m in sys.argv[1:] if m in sys.modules])"
    names = ["matplotlib", "rich", "jinja2"]
    run = subprocess.run(
        [sys.executable, "-c", code, *names], capture_output=True, text=True, check=True
    )
    assert run.stdout.strip() == "[]"


def test_a_page_of_many_rows_stays_small_and_says_what_its_figures_leave_out():
    def page_of(n):
        lines = [predictor(f"model {i}") for i in range(n)]
        lines += [search(model=f"model {i}", seed=seed) for i in range(n) for seed in range(3)]
        return leaderboard.to_html(lines, table(lines), "newton", {})

    few, many = page_of(DRAWN), page_of(4 * DRAWN)
    assert few.count("data:image/png") == many.count("data:image/png")
    assert (len(many) - len(few)) / (3 * DRAWN) < 10_000, "bytes per further row"
    said = f"The figures show the first {DRAWN} of {4 * DRAWN} contestants"
    assert said in many
    assert "The figures show" not in few
    assert f"model {4 * DRAWN - 1}" in many, "the tables have all"
