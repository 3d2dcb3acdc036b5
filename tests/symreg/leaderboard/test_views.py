"""What the views of a leaderboard say and how they are laid out, on results written by hand."""

import html as html_module
import math
import re
import subprocess
import sys

import pytest

from symreg.leaderboard import published, sections, tables, words
from symreg.leaderboard.sections import DRAWN
from tests.symreg.leaderboard.written import Page, failed, forces, search, table, views


def boxes(row, engine=0):
    made = tables.contestants("", [row])
    return {
        column.heading: f"{value.text} {value.detail}".strip()
        for column, value in zip(made.columns, made.rows[engine], strict=True)
    }


def test_a_row_says_what_was_measured_and_what_each_engine_found():
    results = [forces(), search(), search(symbolic="yes"), search(symbolic="timeout")]
    results += [search("law up to an offset"), failed(search())]
    results += [search("another law", engine="pysr@2.7.2", labels=300)]
    (row,) = table(results)
    first, second = boxes(row), boxes(row, 1)
    assert first["seeds"] == "one training"
    assert first["r"] == "-2.000 [-2.100, -1.900]"
    assert first["R2 of ln F"] == "0.9900 2% dropped"
    assert first["within 0.05"] == "3/5 [0.23, 0.88], 1 failed"
    assert first["up to an offset"] == "4/5"
    assert first["symbolic yes"] == "1/5 1 timeout"
    assert first["verdicts"] == "3 law, 1 failed, 1 law up to an offset"
    assert first["constant of law"] == "39.50 [39.50, 39.50]"
    assert first["shape"] == "C*m1*m2/r**2 (3 of 5; 2 different)"
    assert first["CPU s"] == "2.0"
    assert second["r"] == first["r"], "a line stands for itself, wherever it is sorted to"
    assert second["within 0.05"] == "0/1 another law [0.00, 0.79]"
    assert second["constant of law"] == "-"


@pytest.mark.parametrize(
    ("results", "said"),
    [
        ([search("no law found", r2_log=0.3) for _ in range(3)], "no law found"),
        # Two of three describe the predictions; the row as a whole does not.
        ([search("no law found", r2_log=0.8), search("another law", r2_log=0.91)], "no law found"),
        ([search("another law", r2_log=0.95)], "another law"),
        ([search("no law found", r2_log=None)], "no law found"),
        ([failed(search()), failed(search())], "all failed"),
    ],
)
def test_a_row_without_the_law_says_why(results, said):
    (row,) = table([forces(), *results])
    assert boxes(row)["within 0.05"].startswith(f"0/{len(results)} {said} [0.00, ")


@pytest.mark.parametrize(
    ("found", "total", "warned"), [(8, 10, True), (9, 10, False), (3, 3, False)]
)
def test_a_search_that_misses_the_true_force_is_named_in_every_view(tmp_path, found, total, warned):
    control = {"model": "true force", "arm": "control", "labels": "-"}
    results = [
        search("law" if k < found else "another law", seed=None, **control) for k in range(total)
    ]
    results += [forces(), *(search("another law", "true force") for _ in range(5))]
    sentence = f"only {found} of {total} searches: the search, not the models, limits its law rates"
    for view in views(results, tmp_path):
        assert (sentence in " ".join(view.split())) == warned
        assert view.lower().count("warning") - view.count("-warning") == warned


def test_rows_whose_points_leave_the_verdict_open_say_so(tmp_path):
    one, other = forces("a", alike=["power_2_5", "mond"]), forces("b")
    sentence = "on these points the verdict cannot tell newton from mond, power_2_5."
    text, markdown, page = views([one, other], tmp_path)
    for view in (text, markdown.replace("\\", "")):
        assert f"a, pretrained, 300 labels: {sentence}" in view
    assert f"a, pre-trained, 300 labels: {sentence.replace('power_2_5', 'r^-2.5')}" in page
    assert f"Every row: {sentence}" in views([one], tmp_path)[0]
    assert "cannot tell newton" not in views([other], tmp_path)[0]


def test_what_may_be_claimed_is_about_exponents_and_names_few_seeds():
    (sentence,) = words.claims(table([forces(r=-1.95)]))
    assert sentence == (
        "gpt, pretrained, 300 labels (one training; another training may differ): exponent "
        "r -1.950 [-2.050, -1.850] contains the law's -2; "
        "m1 0.500 [0.400, 0.600] excludes the law's 1; "
        "m2 1.000 [0.900, 1.100] contains the law's 1."
    )
    (sentence,) = words.claims(table([forces(seed=seed) for seed in range(3)]))
    assert "(3 seeds): exponent" in sentence


def test_too_few_sequences_are_said_and_nothing_is_claimed_from_them(tmp_path, monkeypatch):
    monkeypatch.setenv("COLUMNS", "160")
    unbounded = {"exponent_r": (-2.0, -math.inf, math.inf)}
    (row,) = table([forces(metrics=unbounded)])
    assert boxes(row)["r"] == "-2.000 [too few to tell]"
    assert boxes(row)["m1"] == "0.500 [0.400, 0.600]"
    (sentence,) = words.claims([row])
    assert "exponent m1 0.500 [0.400, 0.600] excludes the law's 1; m2" in sentence
    unbounded |= {f"exponent_{name}": (5.0, -math.inf, math.inf) for name in ("m1", "m2")}
    results = [forces(metrics=unbounded), forces(seed=1), forces(seed=2)]
    assert words.claims(table(results)) == [], "one seed without one leaves the row without"
    for view in views(results, tmp_path):
        assert "too few" in view
        assert not re.search(r"\b(inf|nan|Infinity)\b", view)


@pytest.mark.parametrize("law", ["newton", "harmonic"])
def test_published_rows_stand_apart_and_name_their_world(law, tmp_path):
    seen = views([forces(law=law), search(law=law)], tmp_path)
    for view in seen:
        said = html_module.unescape(" ".join(view.split()))
        assert "ublished, not measured here" in said
        assert "Under the paper's protocol and Newton's law" in said
        assert "no interval and no number of seeds" in said
        assert said.count("Oracle (k-NN)") == 1
    boards = [part for part in Page(seen[2]).tables if "within 0.05" in str(part)]
    assert boards
    assert not any(row.source in str(boards) for row in published.ROWS)


def test_each_law_has_its_own_leaderboard_and_failures_are_listed(tmp_path):
    results = [failed(search(law="harmonic", engine="e@1")), forces(), search()]
    sentence = "labels 300, engine e@1, search 0, seed 0: ValueError: no such orbit"
    for view in views(results, tmp_path):
        assert view.index("True law: harmonic, F = ") < view.index("True law: newton, F = ")
        assert sentence in view.replace("\\", "")


@pytest.mark.parametrize("width", [200, 160, 120, 100, 80])
def test_the_terminal_table_fits_and_keeps_exponents_and_rate(monkeypatch, width):
    monkeypatch.setenv("COLUMNS", str(width))
    results = [forces("a model of another group with a long name"), search(model="gpt")]
    results += [forces(), forces("true force", arm="control", labels="-", seed=None)]
    rows = table(results)
    text = tables.contestants("title", rows).to_text()
    assert max(map(len, text.splitlines())) <= width
    assert "\x1b" not in text, "no terminal, no colour"
    title, *lines = text.splitlines()
    assert title == "title"
    heading = " ".join(lines[:2])
    assert {"r", "m1", "m2", "within", "0.05"} <= set(heading.split())
    if width >= 160:
        assert "[-2.100, -1.900]" in text
        assert "C*m1*m2/r**2" in text
    else:
        assert "Columns not shown here" in text


def test_every_column_is_explained(tmp_path):
    text, markdown, page = views([forces(), search()], tmp_path)
    markdown = markdown.replace("\\", "")
    headings = [column.heading for column in tables.contestants("", []).columns]
    assert len(headings) > 20
    for heading in headings:
        assert re.search(rf"^- (.*, )?{re.escape(heading)}(, .*)?: ", markdown, re.MULTILINE)
        assert re.search(rf"^(.*, )?{re.escape(heading)}(, .*)?: ", text, re.MULTILINE)
        assert f">{heading}</button>" in page


def test_the_page_is_one_file_with_sortable_tables(tmp_path):
    results = [forces(), search(), forces("true force", arm="control")]
    page = views(results, tmp_path, drawn=True)[2]
    assert "://" not in page
    seen = Page(page)
    for part in seen.tables:
        assert len({len(row) for row in part if len(row) > 3}) == 1
    headings = [a for tag, a in seen.tags if tag == "th" and a["scope"] == "col"]
    assert headings
    assert {attributes["aria-sort"] for attributes in headings} == {"none"}
    assert [tag for tag, _ in seen.tags].count("button") == len(headings)
    assert page.count('src="data:image/png;base64,') == 4
    formulas = seen.tables[-1]
    assert formulas[0][-1] == "formula"
    assert [row[-1] for row in formulas[1:]] == ["39.5*m1*m2/r**2"]


def test_nothing_heavy_is_imported_before_it_is_needed():
    code = "import sys, symreg.leaderboard; print([m for m in sys.argv[1:] if m in sys.modules])"
    names = ["matplotlib", "rich", "jinja2", "pandas"]
    run = subprocess.run(
        [sys.executable, "-c", code, *names], capture_output=True, text=True, check=True
    )
    assert run.stdout.strip() == "[]"


def test_figures_show_the_first_rows_and_say_what_they_leave_out(monkeypatch):
    shown = []
    monkeypatch.setattr(sections, "pictures", lambda rows, *_: shown.extend(rows) or [])
    results = [forces(f"model {i}") for i in range(DRAWN + 3)]
    results += [forces(f"control {i}", arm="control") for i in range(2)]
    rows = table(results)
    (section,) = sections.leaderboard(rows, "newton")
    assert shown == [*rows[:DRAWN], *rows[-2:]]
    said = f"The figures show the first {DRAWN} of {DRAWN + 3} contestants"
    assert sum(said in sentence for sentence in section.sentences) == 1
    assert [len(part.rows) for part in section.tables] == [DRAWN + 3, 2], "the tables have all"
    (section,) = sections.leaderboard(rows[:DRAWN], "newton")
    assert "The figures show" not in str(section.sentences)
