"""Figures of the flagship's report: who is drawn how."""

import pytest

from benchmarks.newton import figures
from orbits.runs import figure
from orbits.runs.palette import COLOURS, MARKERS
from orbits.runs.result import Case, Metric, Result


def forces(variant, arm, labels, r2, seed=0, **more):
    case = Case("newton", "forces", variant, arm, seed, "newton", "fixed", {"labels": labels})
    return Result(case, metrics={"r2_log": Metric(r2)}, **more)


@pytest.fixture
def drawn(monkeypatch):
    """Return the list of figures that are saved, before they are closed."""
    found = []
    monkeypatch.setattr(figures, "save_figure", lambda picture, path: found.append(picture))
    return found


def test_no_colour_is_the_only_sign_of_a_model_or_an_arm(drawn, tmp_path):
    results = [
        forces(f"model {number}", arm, labels, 0.1 * number + 0.001 * labels, seed)
        for number in range(len(COLOURS) + 1)
        for arm in figures.ARMS
        for labels in (10, 100)
        for seed in (0, 1)
    ]
    figures.label_efficiency(results, tmp_path / "figure.png")
    handles = drawn[0].axes[0].get_legend().legend_handles
    looks = {(x.get_marker(), x.get_markerfacecolor(), x.get_linestyle()) for x in handles}
    assert len(looks) == len(handles) == 2 * (len(COLOURS) + 1)
    assert {x.get_marker() for x in handles} <= set(MARKERS)


def test_a_training_of_another_world_looks_different():
    arms = ("pretraining", "scratch", "pretrained on power_1_5", "head, power_1_5")
    looks = [tuple(figures._look(0, arm).values()) for arm in arms]
    assert len(set(looks)) == 3
    assert looks[2] == looks[3]


def test_losses_of_models_have_markers(drawn, tmp_path):
    results = []
    for variant in ("softmax", "lssar"):
        file = tmp_path / f"{variant}.csv"
        steps = "".join(f"{step},{2 / step},{3 / step}\n" for step in range(1, 40))
        file.write_text("step,train_loss,val_loss\n" + steps)
        case = Case("newton", "world model", variant, "pretraining", 0, "newton", "fixed")
        results.append(Result(case, files={"curves": file.name}))
    figures.loss_curves(results, tmp_path, tmp_path / "figure.png")
    markers = [line.get_marker() for line in drawn[0].axes[0].get_lines()]
    assert markers == ["None", MARKERS[0], "None", MARKERS[1]], "training is a thin line"


def test_a_dollar_sign_in_a_name_is_drawn_and_a_link_is_replaced(tmp_path):
    name, victim = "$x^{$", tmp_path / "victim"
    results = [forces(name, "pretrained", labels, 0.5) for labels in (10, 100)]
    victim.write_text("mine")
    (tmp_path / "figures").mkdir()
    (tmp_path / "figures" / "label_efficiency.png").symlink_to(victim)
    (picture,) = figures.pictures(results, tmp_path, tmp_path / "figures")
    (path,) = picture.images
    assert path.read_bytes().startswith(b"\x89PNG")
    assert victim.read_text() == "mine"
    for path in (
        figure.curves({name: {2.0: [1.0]}}, tmp_path / "curves.png", "x", "y"),
        figure.bars({name: [1.0]}, tmp_path / "shares.png", "x"),
    ):
        assert path.read_bytes().startswith(b"\x89PNG")
