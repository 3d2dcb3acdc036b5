"""Figures are written whole, through no link, and their texts are drawn as they stand."""

import itertools
from pathlib import Path

import matplotlib.pyplot as plt
import pytest
from matplotlib.text import Text

from orbits.runs.figure import (
    FORMATS,
    End,
    as_written,
    canvas,
    check_picture,
    figure_path,
    figure_png,
    headline,
    label_ends,
    label_level,
    save_figure,
)
from orbits.runs.page import Picture
from orbits.runs.plots import shares
from orbits.runs.statistics import Interval

ROOT = Path(__file__).parents[3]
FORMULA = "x^{$ of $5"  # no formula that matplotlib could read


def drawn(text=FORMULA):
    figure, axes = plt.subplots(1, 2, layout="constrained")
    for axis in axes:
        axis.plot([1, 1000], [1e-3, 1e6], label=text)
    axes[0].set_xscale("log")
    axes[0].set_yscale("log")
    axes[0].set_title(text)
    axes[0].set_xlabel(text)
    axes[1].set_yticks([0, 1], [text, "other"])
    figure.suptitle(text)
    figure.legend(loc="outside right upper")
    return figure


@pytest.mark.full
def test_a_dollar_sign_is_drawn_and_powers_of_ten_stay_formulas(tmp_path):
    figure = as_written(drawn())
    figure.draw_without_rendering()
    powers = [label.get_text() for label in figure.axes[0].get_xticklabels()]
    assert r"$\mathdefault{10^{1}}$" in powers
    assert all(label.get_parse_math() for label in figure.axes[0].get_xticklabels())
    plt.close(figure)
    assert save_figure(drawn(), tmp_path / "new" / "x.png").read_bytes()[:4] == b"\x89PNG"
    figure = drawn()
    made = figure_png(figure)
    assert made[:4] == b"\x89PNG"
    assert b"</svg>" in made.svg
    assert Picture("x", [made, bytes(made)]).drawings[0].startswith("data:image/svg+xml;base64,")
    assert not Picture("x", [bytes(made)]).drawings[0]
    plt.close(figure)


@pytest.mark.full
def test_a_link_is_replaced_and_its_target_kept(tmp_path):
    victim, path = tmp_path / "victim.txt", tmp_path / "figures" / "x.png"
    victim.write_text("mine")
    path.parent.mkdir()
    path.symlink_to(victim)
    save_figure(drawn("x"), path)
    assert victim.read_text() == "mine"
    assert not path.is_symlink()
    assert path.read_bytes()[:4] == b"\x89PNG"


@pytest.mark.parametrize(
    ("name", "start"), [pytest.param("x.pdf", b"%PDF", marks=pytest.mark.full), ("x", b"\x89PNG")]
)
def test_the_suffix_is_the_format(tmp_path, name, start):
    assert save_figure(drawn(), tmp_path / name).read_bytes()[:4] == start


@pytest.mark.full
def test_a_drawing_stands_beside_a_png_and_is_always_the_same(tmp_path):
    contents = []
    for name in ("x.png", "y.png"):
        save_figure(drawn(), tmp_path / name)
        contents.append((tmp_path / name).with_suffix(".svg").read_text())
    assert contents[0] == contents[1]
    assert f">{FORMULA}</text>" in contents[0], "text stays text"
    save_figure(drawn(), tmp_path / "z.pdf")
    assert not (tmp_path / "z.svg").exists()


def test_no_figure_is_written_in_another_way():
    packages = ("attention", "benchmarks", "orbits", "symreg", "worldmodel")
    files = [path for name in packages for path in (ROOT / name).rglob("*.py")]
    assert [path.name for path in files if "savefig(" in path.read_text()] == ["figure.py"]


def heights(figure, axis):
    """Return where the names at the right of a panel stand, in points, by name."""
    figure.draw_without_rendering()
    bottom = axis.bbox.y0
    return {
        text.get_text(): (Text.get_window_extent(text).y0 - bottom) / figure.dpi * 72  # no arrow
        for text in axis.texts
    }


def test_names_at_ends_of_lines_keep_apart_and_in_order():
    with canvas() as (figure, axis):
        axis.set(xlim=(0, 1), ylim=(0, 1))
        values = {"low": 0.1, "lssar p=15": 0.5, "b": 0.501, "c": 0.502, "beyond": 3.0}
        ends = [End(name, 1, value, "black") for name, value in values.items()]
        label_ends(axis, [*ends, End("nowhere", 1, float("nan"), "black")])
        found = heights(figure, axis)
        assert list(found) == ["low", "LSSAR, p = 15", "b", "c", "beyond"]
        places = list(found.values())
        assert all(above - below > 8 for below, above in itertools.pairwise(places))
        panel = axis.bbox.height / figure.dpi * 72
        assert places[0] > -8
        assert places[-1] < panel
        assert found["low"] < 0.2 * panel, "a name that has room stands at its line"


def test_more_names_than_room_start_at_the_bottom():
    with canvas(4, 2) as (figure, axis):
        axis.set(xlim=(0, 1), ylim=(0, 1))
        label_ends(axis, [End(f"name {i}", 1, 0.5, "black") for i in range(14)])
        assert min(heights(figure, axis).values()) < 8
        label_ends(axis, [])


def test_a_name_points_at_its_line_though_limits_wait_for_the_data():
    with canvas(4, 2) as (figure, axis):
        axis.set_xticks([-2, -1])
        axis.plot([-2, -1], [0, 1])
        label_ends(axis, [End("line", -1, 1, "black")])
        figure.draw_without_rendering()
        tip = axis.transAxes.transform(axis.texts[0].xy)
        assert tip == pytest.approx(axis.transData.transform((-1, 1)))


def test_a_level_has_its_name_above_the_panel():
    with canvas() as (figure, axis):
        axis.set(xlim=(0, 10), ylim=(0, 1))
        label_level(axis, 3.0, "guessing")
        figure.draw_without_rendering()
        (text,) = axis.texts
        assert text.get_text() == "guessing"
        assert text.get_window_extent().y0 >= axis.bbox.y1
        assert axis.lines[0].get_xdata() == [3.0, 3.0]


def test_a_headline_breaks_inside_the_figure():
    with canvas(4, 3) as (figure, axis):
        axis.plot([0, 1])
        headline(figure, "What is seen in this figure, in words that are too long for a line")
        figure.draw_without_rendering()
        box = figure._suptitle.get_window_extent()
        assert "\n" in figure._suptitle.get_text()
        assert 0 <= box.x0 < box.x1 <= figure.bbox.x1
        assert box.y0 >= axis.bbox.y1


def test_shares_are_numbers_on_a_ground_and_what_may_be_none_is_grey():
    with canvas() as (_, axis):
        sure, unsure = Interval(0.91, 0.9, 0.92), Interval(-0.001, -0.1, 0.1)
        shares(axis, {"lssar p=15": [sure, unsure], "control": [None, sure]})
        assert [text.get_text() for text in axis.texts] == ["0.91", "0.00", "-", "0.91"]
        colours = [text.get_color() for text in axis.texts]
        assert colours[0] == colours[3]
        assert len(set(colours)) == 3
        assert axis.get_yticklabels()[0].get_text() == "LSSAR, p = 15"


@pytest.mark.parametrize("name", ["../../up", "/etc/passwd", "a/b\\c", "..", "", "x" * 500, "\x00"])
def test_a_figure_lies_in_its_folder_whatever_its_name(name, tmp_path):
    path = figure_path(tmp_path, name)
    assert path.parent == tmp_path
    assert path.suffix == ".png"
    path.write_bytes(b"")


def test_every_ending_of_a_picture_can_be_drawn():
    with canvas() as (figure, _):
        assert {*FORMATS} <= {*figure.canvas.get_supported_filetypes()}
    check_picture(Path("none.PNG"))
    with pytest.raises(ValueError, match=r"a\.docx: pictures are written as png, svg"):
        check_picture(Path("a.docx"))
