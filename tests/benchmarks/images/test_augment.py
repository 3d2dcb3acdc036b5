"""RandAugment, random erasing, stochastic depth and repeated augmentation."""

import numpy as np
import pytest
import torch
from PIL import Image

from benchmarks.images import augment, folder
from benchmarks.images.images import STUDY
from benchmarks.images.learner import ImageData, ImageModel
from worldmodel.data.sequences import StepSampler


@pytest.fixture
def image():
    ramp = np.linspace(0, 255, 32).astype(np.uint8)
    edges = np.where(np.indices((32, 32)).sum(axis=0) // 4 % 2, 60, 120).astype(np.uint8)
    return Image.fromarray(np.stack(np.broadcast_arrays(ramp, ramp[:, None], edges), axis=-1))


@pytest.mark.parametrize("name", augment.RAND_AUGMENT)
def test_each_operation_keeps_the_size_and_grows_with_its_strength(name, image):
    def moved(strength):
        changed = augment.RAND_AUGMENT[name](image, strength)
        assert (changed.size, changed.mode) == (image.size, image.mode)
        return np.abs(np.asarray(changed, float) - np.asarray(image, float)).mean()

    always = ("contrast stretched", "histogram flattened", "inverted")
    if name in always:
        assert moved(0.1) == moved(0.9)
        return
    assert moved(0.9) > moved(0.05 if name != "fewer bits" else 0.3)
    assert moved(0.9) > 1


def test_what_has_a_direction_goes_both_ways(image):
    values = np.asarray(image, float)
    along = augment.RAND_AUGMENT["shifted along"]
    shifted = [np.asarray(along(image, x), float) for x in (0.5, -0.5)]
    step = round(0.45 * 0.5 * image.width)
    left, right = (each[..., :2] for each in shifted)  # the third channel has edges
    np.testing.assert_allclose(left[:, : -step - 2], values[:, step:-2, :2], atol=5)
    np.testing.assert_allclose(right[:, step + 2 :], values[:, 2:-step, :2], atol=5)
    assert tuple(shifted[0][0, -1].astype(int)) == augment.FILL


def test_about_half_of_the_operations_are_applied(image):
    draw = np.random.default_rng(0)
    same = [
        np.array_equal(np.asarray(augment.rand_augment(image, draw)), np.asarray(image))
        for _ in range(200)
    ]
    assert 0.15 < np.mean(same) < 0.4, "both of two left out: a quarter"


def test_a_quarter_of_images_has_a_box_of_noise():
    draw, values = np.random.default_rng(0), np.full((3, 40, 40), 9, np.float32)
    shares = []
    for _ in range(400):
        changed = augment.erased(values, draw) != 9
        assert (changed.any(axis=0) == changed.all(axis=0)).all(), "in all channels"
        rows, columns = (changed[0].any(axis=axis).sum() for axis in (1, 0))
        assert changed[0].sum() == rows * columns, "a box"
        shares.append(changed[0].mean())
    found = np.array(shares)
    assert 0.18 < (found > 0).mean() < 0.32
    assert 0.015 < found[found > 0].min() < found.max() < 0.36
    assert (values == 9).all(), "the image itself is left"


def test_parts_are_left_out_of_training_alone_and_keep_the_mean():
    sizes = {"size": 8, "patch": 4, "channels": 1, "n_classes": 2, "n_layer": 2}
    torch.manual_seed(0)
    model = ImageModel(**sizes, drop_path=0.5)
    images = torch.randn(1, 1, 8, 8).expand(2000, -1, -1, -1)
    added = []
    model.gpt.blocks[1].mlp.register_forward_hook(lambda part, given, out: added.append(out[:, 0]))
    first = []
    model.gpt.blocks[0].mlp.register_forward_hook(lambda part, given, out: first.append(out[:, 0]))
    model.train()({"images": images})
    left_out = (added[0] == 0).all(dim=1).float().mean()
    assert 0.45 < left_out < 0.55
    assert not (first[0] == 0).all(dim=1).any(), "the first block has all"
    added.clear()
    model.eval()({"images": images[:4]})
    assert not (added[0] == 0).all(dim=1).any()
    torch.manual_seed(0)
    single = ImageModel(**{**sizes, "n_layer": 1}, drop_path=0.5).train()
    several = single({"images": images})
    assert 2 < len(several.round(decimals=4).unique(dim=0)) < 5, "the only block is the last one"
    with pytest.raises(ValueError, match=r"drop_path must be in \[0, 1\), got 1"):
        STUDY.settings("small", drop_path=1)


def test_an_image_is_in_its_batch_several_times():
    plain, repeated = StepSampler(6, 12, 0), StepSampler(6, 12, 0, repeats=3)
    epoch = [repeated.indices(step) for step in range(2)]
    order = plain.indices(0) + plain.indices(1)
    assert epoch == [np.repeat(order[:2], 3).tolist(), np.repeat(order[2:4], 3).tolist()]
    assert repeated.indices(2) != epoch[0], "another order in the next epoch"
    assert StepSampler(4, None, 0, repeats=2).indices(1) == [2, 2, 3, 3]


def test_training_images_of_a_folder_are_changed_each_time_and_others_not(tmp_path, image):
    for part in ("train", "val"):
        (tmp_path / part / "one").mkdir(parents=True)
        for number in range(2):
            image.save(tmp_path / part / "one" / f"{number}.png")
    data = ImageData("imagenet", folder_of=str(tmp_path), n_train=2, augmented=True, repeats=3)
    assert data.repeats == 3
    torch.manual_seed(0)
    twice = data.sequences("train", 2).__getitems__([0, 0, 0, 0])["images"]
    assert not torch.equal(twice[0], twice[1])
    tested = data.sequences("test", 2)
    (shown,) = tested.__getitems__([0])["images"].numpy()
    np.testing.assert_array_equal(shown, folder.pixels(tested.images[0][0], 224))


def test_the_published_recipe_has_them_and_small_images_refuse_them():
    paper = STUDY.settings("paper", data="images")
    assert (paper.drop_path, paper.augmented, paper.repeats) == (0.1, True, 3)
    with pytest.raises(ValueError, match="augmented is for images of a folder: take --tasks"):
        STUDY.settings("small", augmented=True)
