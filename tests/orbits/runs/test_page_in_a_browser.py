"""The page as a browser lays it out: one screen, a telephone, the keyboard and paper."""

import dataclasses
import io

import pytest
from PIL import Image

from orbits.runs import page
from orbits.runs.figure import DPI, WIDTH
from orbits.runs.page import Picture, Report, Section
from orbits.runs.result import Quantity
from orbits.runs.table import Column, Table, Value, interval
from tests import browser

pytestmark = browser.MARKS
MODELS = [f"softmax_reweighted p={i}" for i in range(30)]
NUMBERS = [Column(name, "times the ceiling.") for name in ("exam", "in the box", "r", "m1")]
HEADLINE = Table(
    "Who knows?",
    [Column("model"), Column("trained"), *NUMBERS, Column("formulas in the box")],
    [
        [
            Value(model, kind="name"),
            Value("pretrained, 5"),
            *(interval((i - 15.5, i - 16.123, i + 1234.5)) for _ in NUMBERS),
            Value("15 / 11 / 1 of 15"),
        ]
        for i, model in enumerate(MODELS)
    ],
)
WIDE = Table("Wide", [Column(f"a_long_heading_{i}") for i in range(30)], [[Value("1")] * 30] * 2)
NAME = Value("log-linear of motion and time step", kind="name")
NAMED = Table("Named", [Column("model"), *WIDE.columns], [[NAME, *WIDE.rows[0]]])
REPORT = Report(
    "Does a model that predicts orbits learn the law behind them?",
    "A long_name_that_cannot_break" * 4,
    ["A verdict of some length, " * 8, *(f"Finding {i}." for i in range(20))],
    [
        Section("Headline", [HEADLINE], pictures=[Picture("A figure.", [b"\x89PNG"])]),
        Section("Wide", [WIDE]),
        Section("Folded", [WIDE], folded=True),
        Section("Named", [NAMED]),
    ],
)


def _with_figure(size):
    file = io.BytesIO()
    Image.new("RGB", size).save(file, "PNG")
    headline = Section("Headline", [HEADLINE], pictures=[Picture("A figure.", [file.getvalue()])])
    return dataclasses.replace(REPORT, sections=[headline])


@pytest.fixture
def ask(tmp_path):
    def asked(script, width=1280):
        metrics = {"loss": Quantity("lower", "nats", "a loss")}
        page.write(REPORT, [], {"config": {}}, tmp_path, metrics)
        return browser.ask(tmp_path / "report.html", script, width)

    return asked


def test_the_headline_is_within_the_first_screen(ask):
    verdict, table, figure, columns = ask(
        "const box = (what) => page.querySelector(what).getBoundingClientRect();"
        "const last = [...page.querySelectorAll('.first thead th')].at(-1).getBoundingClientRect();"
        "return [box('.verdict').bottom, [box('.first .scroll').bottom, last.right,"
        " box('.first .scroll').right], [box('figure').top, box('figure').right],"
        " page.querySelectorAll('.first thead th').length]"
    )
    assert columns == 7
    assert verdict < table[0] < 800
    assert table[1] <= table[2] + 1, "the last column is cut"
    assert figure[0] < 800
    assert figure[1] <= 1280


def test_a_telephone_shows_the_figure_before_the_table(ask):
    figure, table = ask(
        "return ['figure', '.first .scroll']"
        ".map((x) => page.querySelector(x).getBoundingClientRect().top)",
        width=390,
    )
    assert figure < min(table, 800)


def test_a_tall_figure_is_made_to_fit(ask):
    height = ask(
        "const image = page.querySelector('.first img'); image.style.height = '3000px';"
        "return image.getBoundingClientRect().height"
    )
    assert height <= 48 * 16


@pytest.mark.parametrize(
    ("size", "beside"), [((726, 500), True), ((726, 880), True), ((990, 500), False)], ids=str
)
def test_letters_of_eight_points_have_ten_pixels(size, beside, tmp_path):
    page.write(_with_figure(size), [], {"config": {}}, tmp_path)
    scale, top, table = browser.ask(
        tmp_path / "report.html",
        "const image = page.querySelector('.first img'), box = image.getBoundingClientRect();"
        "const table = page.querySelector('.first .scroll').getBoundingClientRect();"
        "return [box.width / image.naturalWidth, box.top, table.bottom]",
    )
    assert 8 * 110 / 72 * scale >= 10
    assert (top < table) == beside


@pytest.mark.parametrize("width", [int(WIDTH * DPI), 902, 1800])
def test_letters_of_eight_points_have_seven_pixels_on_a_telephone(width, tmp_path):
    page.write(_with_figure((width, 500)), [], {"config": {}}, tmp_path)
    shown, whole, frame, scrolled = browser.ask(
        tmp_path / "report.html",
        "const image = page.querySelector('.first img');"
        "return [image.getBoundingClientRect().width, image.parentElement.scrollWidth,"
        " image.parentElement.clientWidth, page.documentElement.scrollWidth]",
        width=390,
    )
    assert 8 * DPI / 72 * shown / width >= 7
    assert shown == pytest.approx(whole, abs=1)
    assert scrolled <= 390
    assert (whole <= frame) == (width == int(WIDTH * DPI))  # the usual one needs no scrolling


def test_names_stay_when_other_columns_scroll(ask):
    before, after, other = ask(
        "const box = page.querySelector('.first .scroll');"
        "const left = (n) => box.querySelector(`tbody td:nth-child(${n})`)"
        ".getBoundingClientRect().left;"
        "const before = left(1); const column = left(3); box.scrollLeft = 100;"
        "return [before, left(1), column - left(3)]",
        width=390,
    )
    assert abs(before - after) <= 1
    assert other == 100


def test_a_long_name_leaves_a_telephone_room_for_numbers(ask):
    script = "return page.querySelector('td.stays.long').getBoundingClientRect().width"
    assert ask(script, width=390) <= 390 / 2


@pytest.mark.parametrize("width", [390, 1280])
def test_nothing_but_what_scrolls_is_wider_than_the_window(ask, width):
    wide = ask(browser.TOO_WIDE, width)
    assert wide[0] <= width
    assert wide[1] == []


def test_headings_sort_and_can_be_reached_by_the_keyboard(ask):
    focused, first, last, state = ask(
        "const heading = page.querySelectorAll('.first thead th')[2];"
        "const button = heading.querySelector('button'); button.focus();"
        "const focused = page.activeElement === button && button.tabIndex === 0;"
        "button.click(); button.click();"
        "const rows = [...page.querySelectorAll('.first tbody tr')]"
        ".map((x) => x.cells[0].innerText);"
        "return [focused, rows[0], rows.at(-1), heading.getAttribute('aria-sort')]"
    )
    assert focused
    assert (first, last, state) == (
        "re-weighted softmax, p = 11",
        "re-weighted softmax, p = 0",
        "descending",
    )


def test_a_link_unfolds_its_part_and_paper_has_no_folds(ask):
    linked, printed, after = ask(
        "const open = () => page.querySelectorAll('details[open]').length;"
        "inner.location.hash = '#section-3'; inner.dispatchEvent(new inner.Event('hashchange'));"
        "const linked = open(); inner.dispatchEvent(new inner.Event('beforeprint'));"
        "const printed = page.querySelectorAll('details:not([open])').length;"
        "inner.dispatchEvent(new inner.Event('afterprint'));"
        "return [linked, printed, open()]"
    )
    assert (linked, printed, after) == (1, 0, 1)
