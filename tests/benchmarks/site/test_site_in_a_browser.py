"""The leaderboard as a browser shows it, on a screen and on a telephone, by day and by night."""

from pathlib import Path
from urllib.parse import unquote

import pytest

from benchmarks.__main__ import main
from benchmarks.site import index, site
from benchmarks.submissions import sheet
from tests import browser
from tests.benchmarks import blank
from tests.benchmarks.submissions.test_submission import key, submit

__all__ = ["key"]
pytestmark = browser.MARKS


@pytest.fixture(scope="module")
def leaderboard(tmp_path_factory):
    """Return the index of a site with the kept exam and one submission, in small, to it."""
    place = tmp_path_factory.mktemp("site")
    exam = sheet.read_key(key.__wrapped__(place))
    answers = submit(place / "outside", exam, 1.1)
    options = ["--key", str(place / "key.json"), "--preset", "tiny", "--workers", "1"]
    main(["run", "submissions", str(answers), *options, "--out", str(place / "runs")])
    with pytest.MonkeyPatch.context() as patched:
        # 12 systems stand for the 1,000 of the public exam, whose orbit fits take minutes.
        patched.setattr(index, "same_exam", lambda run, _: run["study"] == "submissions")
        blank.undrawn(patched)
        kept = [str(site.KEPT / name) for name in ("newton-exam", "search_speed")]
        main(["site", str(place / "out"), *kept, str(place / "runs"), "--only"])
    return place / "out" / site.INDEX


@pytest.mark.parametrize("width", [390, 1280])
@pytest.mark.parametrize("name", ["index", "newton-exam", "coverage", "glossary"])
def test_nothing_but_what_scrolls_is_wider_than_the_window(leaderboard, name, width):
    scrolled, wide = browser.ask(leaderboard.with_name(f"{name}.html"), browser.TOO_WIDE, width)
    assert scrolled <= width
    assert wide == []


def test_a_heading_sorts_its_table(leaderboard):
    before, up, down, state = browser.ask(
        leaderboard,
        "const heading = [...page.querySelectorAll('.first thead th')]"
        ".find((x) => x.innerText.startsWith('in the box'));"
        "const button = heading.querySelector('button');"
        "const place = [...heading.parentNode.cells].indexOf(heading);"
        "const column = () => [...page.querySelectorAll('.first tbody tr')]"
        ".map((x) => parseFloat(x.cells[place].innerText)).filter((x) => !Number.isNaN(x));"
        "const before = column(); button.click(); const up = column(); button.click();"
        "return [before, up, column(), heading.getAttribute('aria-sort')]",
    )
    assert before != up == sorted(before)
    assert down == up[::-1]
    assert state == "descending"


def test_every_link_leads_to_a_page_or_a_word_that_is_there(leaderboard):
    read = (
        "return [[...page.querySelectorAll('a[href]')].map((x) => x.getAttribute('href'))"
        ".filter((x) => !x.startsWith('data:')),"
        " [...page.querySelectorAll('[id]')].map((x) => x.id)]"
    )
    pages = sorted(leaderboard.parent.glob("*.html"))
    found = {page.name: browser.ask(page, read) for page in pages}
    assert {"newton-exam.html", "runs.html", "glossary.html", "coverage.html"} <= set(found)
    for name, (links, _) in found.items():
        for link in links:
            file, _, anchor = link.partition("#")
            assert (Path(file).name or name) in found, (name, link)
            assert not anchor or unquote(anchor) in found[file or name][1], (name, link)
    assert any(link.startswith("#word-") for link in found["index.html"][0])


def test_dark_and_light_pages_have_readable_text(leaderboard):
    def contrast(dark):
        return browser.ask(
            leaderboard,
            "const linear = (x) => x <= .04045 ? x / 12.92 : ((x + .055) / 1.055) ** 2.4;"
            "const level = (colour) => {"
            " const [r, g, b] = colour.match(/[0-9.]+/g).map((x) => linear(x / 255));"
            " return .2126 * r + .7152 * g + .0722 * b; };"
            "const ground = level(inner.getComputedStyle(page.body).backgroundColor);"
            "const ratio = (x) => { const ink = level(inner.getComputedStyle(x).color);"
            " return (Math.max(ink, ground) + .05) / (Math.min(ink, ground) + .05); };"
            "return [ground, Math.min(...['.verdict', 'td', 'td small', 'nav a', '.soft']"
            ".map((x) => ratio(page.querySelector(x))))]",
            dark=dark,
        )

    (light, by_day), (dark, by_night) = contrast(False), contrast(True)
    assert dark < 0.05 < 0.9 < light
    assert min(by_day, by_night) >= 4.5  # WCAG 2.2, success criterion 1.4.3


def test_a_submission_is_shown_with_how_it_was_checked(leaderboard):
    rows, cards, checks = browser.ask(
        leaderboard,
        "const texts = (what) => [...page.querySelectorAll(what)].map((x) => x.innerText);"
        "return [texts('.first tbody tr'), texts('#submissions td'), texts('#submissions h3')]",
    )
    (row,) = (row for row in rows if "elsewhere, submitted" in row)
    assert row.startswith("outside")
    assert {"outside", "A. Nyone", "https://example.org"} <= set(cards)
    assert checks == ["Checked here", "Not checked, because no file shows it"]
