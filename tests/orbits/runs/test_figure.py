"""Figures are written whole, through no link, and their texts are drawn as they stand."""

from pathlib import Path

import matplotlib.pyplot as plt
import pytest

from orbits.runs.figure import as_written, figure_png, save_figure

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


def test_a_dollar_sign_is_drawn_and_powers_of_ten_stay_formulas(tmp_path):
    figure = as_written(drawn())
    figure.draw_without_rendering()
    powers = [label.get_text() for label in figure.axes[0].get_xticklabels()]
    assert r"$\mathdefault{10^{1}}$" in powers
    assert all(label.get_parse_math() for label in figure.axes[0].get_xticklabels())
    plt.close(figure)
    assert save_figure(drawn(), tmp_path / "new" / "x.png").read_bytes()[:4] == b"\x89PNG"
    figure = drawn()
    assert figure_png(figure)[:4] == b"\x89PNG"
    plt.close(figure)


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
