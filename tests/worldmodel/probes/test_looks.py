"""Names and looks of models in the figures of probes, and what the colour-blind see."""

import dataclasses
import itertools

import numpy as np
import pytest

from orbits.runs.palette import COLOURS, CONTROL, MARKERS, TRUTH, shade
from tests.worldmodel.probes.evaluation import result
from worldmodel.probes.bias import figures as bias_figures
from worldmodel.probes.force import figures as force_figures
from worldmodel.probes.looks import Looks, once, without_repeats, world_of
from worldmodel.probes.motion import scatter

# Machado, Oliveira & Fernandes (2009), severity 1, on linear RGB.
SEEN = {
    "all": np.eye(3),
    "protanopia": [
        [0.152286, 1.052583, -0.204868],
        [0.114503, 0.786281, 0.099216],
        [-0.003882, -0.048116, 1.051998],
    ],
    "deuteranopia": [
        [0.367322, 0.860646, -0.227968],
        [0.280085, 0.672501, 0.047413],
        [-0.011820, 0.042940, 0.968881],
    ],
}
XYZ_OF_RGB = np.array(
    [
        [0.4124564, 0.3575761, 0.1804375],
        [0.2126729, 0.7151522, 0.0721750],
        [0.0193339, 0.1191920, 0.9503041],
    ]
)
ENOUGH = 15  # of CIELAB; the closest pair is at 17.9, that of the palette before it was at 5.2


def linear_rgb(colour):
    value = np.array([int(colour[k : k + 2], 16) for k in (1, 3, 5)]) / 255
    return np.where(value <= 0.04045, value / 12.92, ((value + 0.055) / 1.055) ** 2.4)


def lab(rgb):
    ratio = XYZ_OF_RGB @ np.clip(rgb, 0, 1) / XYZ_OF_RGB.sum(axis=1)
    small = ratio <= (6 / 29) ** 3
    x, y, z = np.where(small, ratio / (3 * (6 / 29) ** 2) + 4 / 29, np.cbrt(ratio))
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


def closest(colours, eye):
    seen = [lab(np.array(SEEN[eye]) @ linear_rgb(colour)) for colour in colours]
    return min(np.linalg.norm(a - b) for a, b in itertools.combinations(seen, 2))


@pytest.mark.parametrize("eye", SEEN)
def test_the_colour_blind_can_tell_all_colours_apart(eye):
    assert closest([*COLOURS, CONTROL, TRUTH], eye) > ENOUGH


def test_the_distance_is_that_of_cielab_and_the_old_palette_fails():
    np.testing.assert_allclose(lab(linear_rgb("#ffffff")), [100, 0, 0], atol=1e-6)
    np.testing.assert_allclose(lab(linear_rgb("#ff0000")), [53.24, 80.09, 67.20], atol=0.02)
    old = ["#3b6ea5", "#c8553d", "#4f8f5b", "#8a5aa8", "#b08a2e", "#5c6670"]
    assert closest(old, "deuteranopia") < ENOUGH / 2


def test_no_two_of_many_models_look_the_same():
    lines = [result(f"model {number}") for number in range(len(COLOURS) * len(MARKERS))]
    looks = Looks(lines)
    styles = [looks.style(x) for x in lines]
    assert len({(style["color"], style["marker"]) for style in styles}) == len(lines)


@pytest.mark.parametrize(
    ("other", "names"),
    [
        ({"trained_on": "mond"}, ["softmax (trained on newton)", "softmax (trained on mond)"]),
        ({"size": "n_layer 3, n_bins 512"}, ["softmax (n_layer 2)", "softmax (n_layer 3)"]),
        ({"steps": 500}, ["softmax (100 steps)", "softmax (500 steps)"]),
        ({"labels": 20}, ["softmax", "softmax (20 labels)"]),
        ({"seed": 1}, ["softmax", "softmax"]),
    ],
)
def test_models_that_differ_are_told_apart_and_seeds_are_not(other, names):
    lines = [result(), result(**other)]
    looks = Looks(lines)
    assert [looks.model(x) for x in lines] == names
    apart = len(set(names)) == 2
    assert (looks.style(lines[0]) != looks.style(lines[1])) == apart
    drawn = [dataclasses.replace(x, files={"role": str(n)}) for n, x in enumerate(lines)]
    assert len(looks.first_of_each(drawn, "role")) == 1 + apart


def test_twins_look_like_their_model_and_controls_have_no_training():
    models = [result(trained_on=law) for law in ("newton", "mond")]
    twins = [result(arm="untrained", trained_on=law) for law in ("newton", "mond")]
    controls = [
        result("k-NN on the true state", "oracle", trained_on=law) for law in ("newton", "mond")
    ]
    looks = Looks([*controls, *twins, *models])
    for model, twin in zip(models, twins, strict=True):
        assert looks.colour(model) == looks.colour(twin)
        assert looks.style(model)["marker"] == looks.style(twin)["marker"]
        assert looks.style(twin)["markerfacecolor"] == "white"
    assert looks.name(twins[1]) == "softmax (trained on mond), untrained"
    assert {looks.name(control) for control in controls} == {"k-NN on the true state"}
    assert looks.colour(models[0]) == COLOURS[0], "whatever controls came before"
    assert looks.style(controls[0])["color"] == CONTROL
    assert without_repeats([*controls, *twins]) == [controls[0], *twins]
    assert once(["a", "b", "a"]) == ["a", "b", None]


def test_models_of_one_attention_and_world_have_shades_of_its_colour():
    lines = [result(), result(arm="state-trained", of="state-trained"), result("lssar p=15")]
    looks = Looks(lines)
    colours = [looks.colour(x) for x in lines]
    assert colours == [COLOURS[0], shade(COLOURS[0], 1), COLOURS[1]]
    assert len({looks.style(x)["marker"] for x in lines[:2]}) == 2


def test_names_and_words_of_an_axis_lie_within_the_figure(drawn, tmp_path):
    metrics = {"angle_deg": [20.0, 15.0, 25.0]}
    mine = [result("lssar p=15", metrics=metrics, setting={"planet": "all"})]
    force_figures.angles(mine, tmp_path)
    (figure,) = drawn
    figure.savefig(tmp_path / "angles.png")
    whole = figure.bbox
    for text in (figure.axes[0].xaxis.label, figure._suptitle):
        box = text.get_window_extent()
        assert whole.x0 <= box.x0 < box.x1 <= whole.x1


def test_twins_of_models_that_were_trained_for_other_things_are_told_apart():
    lines = [
        result(arm=arm, of=of) for of in ("pretrained", "force head") for arm in (of, "untrained")
    ]
    assert [Looks(lines).name(x) for x in lines] == [
        "softmax, pretrained",
        "softmax (pretrained), untrained",
        "softmax, force head",
        "softmax (force head), untrained",
    ]


def test_the_world_says_where_all_models_come_from():
    assert world_of([result()]) == "identifiable, newton"
    assert world_of([result(trained_on="mond")] * 2) == "identifiable, newton, trained on mond"
    assert world_of([result(), result(trained_on="mond")]) == "identifiable, newton"


@pytest.fixture
def drawn(monkeypatch):
    """Return the figures that are saved."""
    figures = []

    def keep(figure, path):
        figures.append(figure)
        return path

    for module in (force_figures, scatter):
        monkeypatch.setattr(module, "save_figure", keep)
    return figures


def test_rows_of_the_figure_of_forces_are_models(drawn, tmp_path):
    intervals = {key: [0.5, 0.4, 0.6] for key in force_figures.PANELS}
    setting = {"rows": "unlabelled", "leak": 2}
    results = [
        result(trained_on=law, metrics=intervals, setting=setting) for law in ("newton", "mond")
    ]
    nothing_has_a_logarithm = {"cosine": [0.5, 0.4, 0.6]}
    results.append(result(metrics=nothing_has_a_logarithm, setting=setting))
    force_figures.inference(results, tmp_path)
    assert [text.get_text() for text in drawn[0].axes[0].get_yticklabels()] == [
        "softmax (trained on mond), pre-trained, labels leak",
        "softmax (trained on newton), pre-trained, labels leak",
    ]


@pytest.mark.parametrize("there", [(), ("m2 star bend",), ("m2 star bend", "m1 planet bend")])
def test_what_no_intervention_changed_has_no_panel(tmp_path, monkeypatch, drawn, there):
    names = [f"{mass} {body} bend" for mass in ("m1", "m2") for body in ("planet", "star")]
    changes = {name: np.full((2, 5 if name in there else 0), 0.1) for name in names}
    monkeypatch.setattr(scatter.artefact, "load_arrays", lambda path: (changes, {}))
    (tmp_path / "changes.npz").touch()
    one = result(files={"changes": "changes.npz"}, setting={"of": "planet bend"})
    assert len(scatter.draw_all([one], tmp_path)) == bool(there)
    assert sum(len(figure.axes) for figure in drawn) == len(there)


def test_a_dollar_sign_in_a_label_does_not_cost_the_figure(tmp_path):
    metrics = {"r_ib": [0.5, 0.4, 0.6], "d_ib": [0.5, 0.4, 0.6]}
    one = result("$x^{$", metrics=metrics)
    bias_figures.state_bias_dots([one], tmp_path / "dots.png")
    assert (tmp_path / "dots.png").read_bytes().startswith(b"\x89PNG")
