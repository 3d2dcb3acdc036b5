"""Figures of a leaderboard: there when results hold them, and the same for the same results."""

import dataclasses

import pytest

from orbits.runs.figure import canvas
from symreg.leaderboard import axes, figures
from tests.letters import smallest
from tests.symreg.leaderboard.written import failed, forces, search, table


def drawn(results):
    rows = table(results)
    return {
        "exponents": figures.exponents(rows, "newton"),
        "spread": figures.spread(rows),
        "fronts": figures.fronts(rows),
        "residuals": figures.residuals(rows),
    }


@pytest.mark.full
def test_figures_are_the_same_for_the_same_results_and_show_what_changed():
    results = [forces(), search(), search("another law")]
    first = drawn(results)
    assert all(image.startswith(b"\x89PNG") for image in first.values())
    assert drawn(results) == first
    bins = results[0].details["residuals"]
    bins = {**bins, "r": {**bins["r"], "median": [0.05, 0.1]}}
    results[0] = forces(metrics={"law_exponent_r": -1.9}, details={"residuals": bins})
    details = {**results[1].details, "expression": "not on the front"}
    results[1] = dataclasses.replace(results[1], details=details)
    changed = drawn(results)
    assert all(changed[name] != first[name] for name in first)


def test_letters_can_be_read_on_a_telephone(monkeypatch):
    monkeypatch.setattr(figures, "figure_png", smallest)
    results = [forces(), forces("far", r=1e6), search(), search(engine="operon_vafa@0.6.2")]
    assert all(size >= 8 for size in drawn(results).values())


@pytest.mark.full
def test_figures_need_only_what_the_results_hold():
    missing = {f"law_exponent_{name}": None for name in ("r", "m1", "m2")}
    plain = forces(metrics=missing, details={"residuals": None})
    results = [plain, search(details={"front": []})]
    pictures = drawn(results)
    assert [name for name, image in pictures.items() if image is None] == ["fronts", "residuals"]
    results += [forces("far", r=1e6), forces("nan", r=float("nan"))]
    assert all(drawn(results)[name] for name in ("exponents", "spread"))
    pictures = drawn([failed(search())])
    assert [name for name, image in pictures.items() if image is not None] == ["spread"]


def test_no_interval_and_no_control_hides_the_others():
    with canvas(4, 2) as (_, axis):
        axes.limit(axis, [(-2.0, -2.1, -1.9), (-1.8, -90.0, 90.0)], [-2.0])
        low, high = axis.get_xlim()
        assert -3 < low < -2.1
        assert -1.8 < high < -1
        axes.interval(axis, 0, (-2.0, -2.1, -1.9), "black")
        axes.interval(axis, 1, (0.0, -0.1, 0.1), "black")
        axes.interval(axis, 2, (-5.0, -5.1, -4.9), "black")
        marks = [(mark.get_marker(), mark.get_xdata()[0]) for mark in axis.lines]
    assert marks == [("o", -2.0), (">", high), ("<", low)]


def test_a_number_beyond_an_axis_keeps_its_sign_and_models_from_outside_are_named(monkeypatch):
    monkeypatch.setattr(figures, "figure_png", lambda figure: seen.append(figure))
    seen = []
    control = {"arm": "control", "labels": "-", "seed": None}
    rows = table([forces(arm="-"), forces("far", r=-90.0, **control), forces(r=-1e-9, **control)])
    figures.exponents(rows, "newton")
    zero, number = sorted(seen[0].axes[0].texts, key=lambda text: text.get_text(), reverse=True)
    assert (number.get_text(), zero.get_text()) == ("-90", "0")
    assert number.get_bbox_patch().get_facecolor()[:3] == (1, 1, 1)
    assert number.get_zorder() > max(line.get_zorder() for line in seen[0].axes[0].lines)
    assert [text.get_text() for text in seen[0].legends[0].texts[:2]] == ["model", "control"]


def test_no_more_than_ten_seeds_and_searches_of_a_row_are_drawn(monkeypatch):
    lines = []
    monkeypatch.setattr(
        figures, "figure_png", lambda figure: lines.append(len(figure.axes[0].lines))
    )
    seeds = [forces(seed=seed) for seed in range(12)]
    figures.residuals(table(seeds))
    assert lines.pop() == figures.MOST + 1 == 11, "and the truth"
    front = search().details["front"]
    searches = [search(search=number, details={"front": front}) for number in range(12)]
    figures.fronts(table([forces(), *searches]))
    assert lines.pop() == 2 * figures.MOST, "each with the mark of the chosen formula"


def test_a_long_name_is_whole_in_two_lines_and_a_longer_one_is_cut():
    name = "true force + errors of softmax, pre-trained, unlimited labels, seed 2"
    (row, *_) = table([forces(name, arm="control", labels="-")])
    lines = axes.in_lines(row)
    assert lines.replace("\n", " ") == name
    assert lines.count("\n") == 1
    assert axes.row_height([row]) > 0.3
    (row, *_) = table([forces("a" * 200)])
    assert len(axes.in_lines(row)) <= 60


def test_a_budget_that_is_no_plain_number_is_drawn_first():
    """A stranger may write 10³, whose ³ is a digit to Python and no part of a number."""
    rows = table([forces(labels=each) for each in ("300", "10\u00b3", "1,000")])
    assert [row.labels for row in axes.by_budget(rows)] == ["10\u00b3", "1,000", "300"]
