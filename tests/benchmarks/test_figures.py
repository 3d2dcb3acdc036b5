"""Figures of the newton report: who is drawn how."""

import matplotlib.pyplot as plt

from benchmarks import figures, views
from worldmodel.palette import COLOURS, MARKERS


def predictor(model, arm, labels, r2, seed=0):
    row = {"model": model, "arm": arm, "labels": labels, "seed": seed}
    return {"kind": "predictor", "row": row, "metrics": {"r2_log": r2}}


def test_no_colour_is_the_only_sign_of_a_model_or_an_arm():
    lines = [
        predictor(f"model {number}", arm, labels, 0.1 * number + 0.001 * labels, seed)
        for number in range(len(COLOURS) + 1)
        for arm in figures.ARM_STYLE
        for labels in (10, 100)
        for seed in (0, 1)
    ]
    figure = figures.label_efficiency(lines)
    axis = figure.axes[0]
    handles = axis.get_legend().legend_handles
    looks = {(x.get_marker(), x.get_markerfacecolor(), x.get_linestyle()) for x in handles}
    assert len(looks) == len(handles) == 2 * (len(COLOURS) + 1)
    assert {x.get_marker() for x in handles} <= set(MARKERS)
    plt.close(figure)


def test_a_training_of_another_world_looks_different():
    arms = ("pretraining", "scratch", "pretrained on power_1_5", "head, power_1_5")
    looks = [tuple(figures._look(0, arm).values()) for arm in arms]
    assert len(set(looks)) == 3
    assert looks[2] == looks[3]


def test_losses_of_models_have_markers(tmp_path):
    lines = []
    for model in ("softmax", "lssar"):
        file = tmp_path / f"{model}.csv"
        steps = "".join(f"{step},{2 / step},{3 / step}\n" for step in range(1, 40))
        file.write_text("step,train_loss,val_loss\n" + steps)
        row = {"model": model, "arm": "pretraining", "labels": None, "seed": 0}
        lines.append({"kind": "pretraining", "row": row, "files": {"curves": file.name}})
    figure, axis = plt.subplots()
    figures._loss_panel(axis, tmp_path, lines, ["softmax", "lssar"])
    markers = [drawn.get_marker() for drawn in axis.get_lines()]
    assert markers == ["None", MARKERS[0], "None", MARKERS[1]], "training is a thin line"
    plt.close(figure)


def test_a_dollar_sign_in_a_name_is_drawn_and_a_link_is_replaced(tmp_path):
    name, victim = "$x^{$", tmp_path / "victim"
    lines = [predictor(name, "pretrained", labels, 0.5) for labels in (10, 100)]
    for line in lines:
        line |= {"status": "ok", "files": {}}
    victim.write_text("mine")
    (tmp_path / "figures").mkdir()
    (tmp_path / "figures" / "label_efficiency.png").symlink_to(victim)
    (path,) = figures.draw_all(tmp_path, lines, [], "newton").values()
    assert path.read_bytes().startswith(b"\x89PNG")
    assert victim.read_text() == "mine"
    measured = lines[0] | {"kind": "measurement", "metrics": {"loss@2x": {"value": 1.0}}}
    for path in (
        views.curves([measured], "loss@", tmp_path / "curves.png", "x", "y"),
        views.bars({name: {0: 1.0}}, tmp_path / "bars.png", "x"),
        views.panels({name: {name: [1.0, 2.0]}}, tmp_path / "panels.png", "x"),
    ):
        assert path.read_bytes().startswith(b"\x89PNG")
