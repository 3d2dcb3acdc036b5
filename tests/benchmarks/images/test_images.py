"""Encoders on images: pictures of orbits and their best answers, the model, and a whole run."""

import numpy as np
import pytest
import torch

from benchmarks.__main__ import main
from benchmarks.images import cells, pictures, tasks
from benchmarks.images.images import CEILING, STUDY
from benchmarks.images.learner import DIGITS, ImageData, ImageModel, mixed
from benchmarks.rates import best
from orbits import kepler
from orbits.runs.result import Case, Metric, Result
from tests.benchmarks.runs import finished

SIZES = {"size": 8, "patch": 2, "channels": 1, "n_classes": 10, "n_layer": 1, "head_dim": 8}


def test_a_picture_depends_on_its_own_number_alone():
    images, classes = pictures.examples("mass_ratio", "test", 0, np.arange(5))
    one, number = pictures.examples("mass_ratio", "test", 0, [3])
    np.testing.assert_array_equal(images[3], one[0])
    assert classes[3] == number[0]
    other, _ = pictures.examples("mass_ratio", "train", 0, [3])
    assert not np.array_equal(one, other)


def test_a_picture_is_the_sum_of_the_light_at_each_pixel():
    places = np.random.default_rng(0).uniform(-1, 1, (1, 3, 2))
    image = pictures.render(places)[0]
    for row, column in ((0, 0), (5, 17), (23, 11)):
        x, y = (2.4 * (i + 0.5) / pictures.SIZE - 1.2 for i in (column, row))
        squares = [(px - x) ** 2 + (py - y) ** 2 for px, py in places[0]]
        wanted = sum(np.exp(-0.5 * square / pictures.WIDTH**2) for square in squares)
        assert image[row, column] == pytest.approx(wanted, rel=1e-9)


def test_what_is_asked_is_what_is_drawn():
    u = np.random.default_rng(0).random((50, 5))
    places, asked = pictures.TASKS["eccentricity"](u)
    distance = np.linalg.norm(places, axis=-1)
    near, far = distance.min(axis=1), distance.max(axis=1)
    # 48 places miss the turning points by a little, more so at high eccentricity.
    np.testing.assert_allclose((far - near) / (far + near), 0.9 * asked, atol=0.06)
    places, asked = pictures.TASKS["mass_ratio"](u)
    heavy, light = places[:, pictures.POINTS :], places[:, : pictures.POINTS]
    ratio = np.linalg.norm(heavy, axis=-1) / np.linalg.norm(light, axis=-1)
    np.testing.assert_allclose(ratio, np.repeat(0.1 + 0.9 * asked[:, None], 48, axis=1))
    assert np.abs(places).max() < 1.2  # all of it is in the picture
    assert float(kepler.period(1.0, 1.0)) == pytest.approx(1.0, rel=1e-3)


def test_the_best_answers_are_those_of_the_posterior(monkeypatch):
    monkeypatch.setattr(pictures, "NOISE", 0.5)
    images, truth = pictures.examples("eccentricity", "test", 0, np.arange(40))
    answers = pictures.best_answers("eccentricity", images, 300, seed=3)
    tracks, asked = pictures.TASKS["eccentricity"](np.random.default_rng(3).random((300, 5)))
    clean = pictures.render(tracks)
    for image, answer in zip(images[:10], answers, strict=False):
        fits = -0.5 * np.square(image - clean).sum(axis=(1, 2)) / 0.5**2
        weight = np.exp(fits - fits.max())
        classes = (asked * pictures.CLASSES).astype(int)
        shares = [weight[classes == c].sum() for c in range(pictures.CLASSES)]
        assert answer == np.argmax(shares)
    assert np.mean(answers == truth) > 0.5


def test_digits_are_in_one_part_each():
    data = ImageData("digits", n_train=2000, n_val=2000, n_test=2000)
    parts = [data.sequences(split, 2000) for split in ("train", "val", "test")]
    assert tuple(map(len, parts)) == DIGITS
    rows = np.concatenate([x.digits.reshape(len(x), -1) for x in parts])
    assert len(rows) == 1797
    assert len(np.unique(rows, axis=0)) == 1797


@pytest.mark.parametrize("attention", ["softmax", "lssar", "zeros", "elastic"])
def test_an_encoder_sees_all_patches_and_knows_their_places(attention):
    torch.manual_seed(0)
    model = ImageModel(**SIZES, attention=attention, attention_args=None).eval()
    images = torch.randn(2, 1, 8, 8)
    with torch.no_grad():
        logits = model({"images": images})
        for row, column in ((0, 0), (7, 7)):
            changed = images.clone()
            changed[:, :, row, column] += 3
            assert not torch.allclose(model({"images": changed}), logits, atol=1e-5)
        assert not torch.allclose(model({"images": images.flip(-1)}), logits, atol=1e-5)
    assert logits.shape == (2, 10)


def test_mixed_images_have_the_share_that_is_said():
    torch.manual_seed(0)
    images = torch.arange(4.0)[:, None, None, None].expand(4, 1, 8, 8)
    pasted = 0
    for _ in range(30):
        made, other, share = mixed(images)
        wanted = share * images + (1 - share) * images[other]
        torch.testing.assert_close(made.mean(dim=(1, 2, 3)), wanted.mean(dim=(1, 2, 3)))
        pasted += bool((made == made.round()).all())
    assert 5 < pasted < 30


def test_rates_are_chosen_by_validation_and_small_images_are_not_compared():
    def result(task, lr, val, top1):
        metrics = {"val_accuracy": Metric(val), "top1": Metric(top1), "params": Metric(1.0)}
        case = Case("images", "measurement", "zeros", seed=0, setting={"task": task, "lr": lr})
        return Result(case, metrics=metrics)

    made = [result(task, lr, 90 + lr, 80 - lr) for task in ("digits", "imagenet") for lr in (1, 2)]
    assert {x.case.get("lr") for x in best(made)} == {2}
    assert STUDY.ours(made, "zeros_table_3")["zeros"][0]["top1"] == 78
    assert not STUDY.ours(made[:2], "zeros_table_3")


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (["--tasks", "cats"], "unknown task 'cats'; choose from digits"),
        (
            ["--attention", "gla"],
            "gla cannot be an encoder: gla has no causal; every quad",
        ),
        (["--attention", "streaming"], "streaming looks back through a window"),
        (["--smoothing", "1"], "smoothing must be in [0, 1), got 1"),
    ],
)
def test_bad_settings_are_one_line(refused_run, flags, words):
    assert words in refused_run("images", "--preset", "tiny", *flags)


@pytest.mark.full
def test_a_run_trains_and_answers_without_an_encoder(tmp_path, capsys):
    out = tmp_path / "out"
    more = ["--attention", "softmax,zeros", "--tasks", "mass_ratio", "--executor", "here"]
    main(["run", "images", "--preset", "tiny", "--out", str(out), *more])
    results = finished(out)
    rows = {x.case.variant: x.value("top1") for x in results}
    assert set(rows) == {"softmax", "zeros", CEILING, cells.LINEAR, *cells.PLAIN}
    assert rows[CEILING] > rows["most common class"] + 20
    capsys.readouterr()
    main(["report", str(out), "--full"])
    assert "mass_ratio: softmax" in capsys.readouterr().out
    assert tasks.get("mass_ratio").n_classes == pictures.CLASSES
