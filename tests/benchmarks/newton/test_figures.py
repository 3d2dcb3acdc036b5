"""Figures of the flagship's report: who is drawn how."""

import pytest

from benchmarks.newton import figures, label_efficiency
from orbits.runs.palette import COLOURS, MARKERS, looks
from orbits.runs.result import Case, Metric, Result


def forces(variant, arm, labels, r2, seed=0, **more):
    case = Case("newton", "forces", variant, arm, seed, "newton", "fixed", {"labels": labels})
    return Result(case, metrics={"r2_log": Metric(r2)}, **more)


@pytest.fixture
def drawn(monkeypatch):
    """Return the list of figures that are saved, before they are closed."""
    found = []
    for module in (figures, label_efficiency):
        monkeypatch.setattr(module, "save_figure", lambda picture, path: found.append(picture))
    return found


@pytest.mark.parametrize("count", [3, len(COLOURS) + 1])
def test_no_colour_is_the_only_sign_of_a_model_or_an_arm(drawn, tmp_path, count):
    results = [
        forces(f"model {number}", arm, labels, 0.1 * number + 0.001 * labels, seed)
        for number in range(count)
        for arm in ("pretrained", "scratch")
        for labels in (10, 100)
        for seed in (0, 1)
    ]
    figures.label_efficiency(results, tmp_path / "figure.png")
    (axis,) = drawn[0].axes
    named = {text.get_text() for text in axis.texts}
    assert len({line.get_linestyle() for line in axis.get_lines()} - {"None"}) == 2, "of arms"
    if count == 3:
        assert len(named) == 6
        dots = {
            (line.get_marker(), line.get_markerfacecolor())
            for line in axis.get_lines()
            if line.get_linestyle() == "None"
        }
        assert len(dots) == 6
        assert {marker for marker, _ in dots} <= set(MARKERS)
    else:
        assert named == {f"pre-trained: {count} attentions", f"from scratch: {count} attentions"}


def test_a_training_of_another_world_looks_different():
    arms = ("pretraining", "scratch", "pretrained on power_1_5", "head, power_1_5")
    style = looks(["softmax"])["softmax"]
    found = [tuple(label_efficiency.look(style, arm).values()) for arm in arms]
    assert len(set(found)) == 3
    assert found[2] == found[3]


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
