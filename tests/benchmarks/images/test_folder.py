"""Images by folder: crops, and a broken file that is named in one line."""

import numpy as np
import pytest
from PIL import Image

from benchmarks.__main__ import main
from benchmarks.images import folder
from benchmarks.images.learner import ImageData
from orbits.runs import folder as runs


@pytest.fixture
def images(tmp_path):
    """A folder of two classes, dark and light, with three images each in both parts."""
    place = tmp_path / "images"
    for part in ("train", "val"):
        for name, level in (("dark", 40), ("light", 200)):
            (place / part / name).mkdir(parents=True)
            for number in range(3):
                values = np.full((40, 50, 3), level + number, np.uint8)
                Image.fromarray(values).save(place / part / name / f"{number}.png")
    return place


def run(place, out):
    tiny = ["run", "images", "--preset", "tiny", "--tasks", "imagenet", "--attention", "softmax"]
    return [*tiny, "--data", str(place), "--out", str(out)]


def test_a_folder_has_its_classes_and_files(images):
    found = folder.read(images)
    assert found.classes == ("dark", "light")
    assert [number for _, number in found.files["train"]] == [0, 0, 0, 1, 1, 1]
    data = ImageData("imagenet", folder_of=str(images), n_train=100)
    assert data.n_train == 6
    there = data.sequences("test", 100)
    batch = there.__getitems__(sorted(range(6), key=lambda k: there.images[k])[::5])
    assert batch["images"].shape == (2, 3, 224, 224)
    assert batch["labels"].tolist() == [0, 1]
    wanted = (np.array([40, 202]) / 255 - folder.MEAN[1]) / folder.DEVIATION[1]
    np.testing.assert_allclose(batch["images"][:, 1].mean(dim=(1, 2)), wanted, rtol=1e-4)


def test_a_part_of_a_folder_has_all_classes(images):
    # Files are listed class by class; the first half of them is of one class.
    for split in ("train", "val"):
        few = ImageData("imagenet", folder_of=str(images), n_train=4).sequences(split, 4)
        assert {number for _, number in few.images} == {0, 1}


def test_a_class_without_images_is_named(images):
    for file in (images / "val" / "light").iterdir():
        file.unlink()
    with pytest.raises(ValueError, match="val/light has no image"):
        folder.read(images)


def test_sixteen_bits_of_grey_are_not_cut_to_white(tmp_path):
    ramp = np.linspace(0, 65535, 64, dtype=np.uint16)
    Image.fromarray(np.tile(ramp, (64, 1))).save(tmp_path / "deep.png")
    Image.fromarray(np.tile((ramp / 257).round().astype(np.uint8), (64, 1))).save(
        tmp_path / "8.png"
    )
    deep, shallow = (folder.pixels(tmp_path / name, 32) for name in ("deep.png", "8.png"))
    np.testing.assert_array_equal(deep, shallow)


def test_a_random_crop_lies_in_the_image_and_turns_half_of_the_time(tmp_path):
    ramp = np.tile(np.arange(0, 250, 5, dtype=np.uint8)[None, :, None], (40, 1, 3))
    Image.fromarray(ramp).save(tmp_path / "ramp.png")
    draw = np.random.default_rng(0)
    rising, ranges = [], []
    for _ in range(40):
        row = folder.pixels(tmp_path / "ramp.png", 8, draw)[0, 4] * folder.DEVIATION[0]
        row = (row + folder.MEAN[0]) * 255
        rising.append(row[-1] > row[0])
        ranges.append(np.ptp(row))
        assert row.min() > -10
        assert row.max() < 256
    assert 10 < sum(rising) < 30
    assert min(ranges) < 100 < max(ranges)
    centre = folder.pixels(tmp_path / "ramp.png", 8)
    np.testing.assert_array_equal(centre, folder.pixels(tmp_path / "ramp.png", 8))


def test_a_broken_file_is_named_before_anything_is_trained(images, tmp_path, refusal):
    broken = images / "train" / "light" / "1.png"
    broken.write_bytes(b"no image at all")
    line = refusal(main, run(images, tmp_path / "out"))
    assert line.startswith(f"error: {broken} is broken (cannot identify image file it)")
    assert line.endswith("replace it, or take it out of the folder")
    assert not (tmp_path / "out").exists()
    good = (images / "train" / "light" / "0.png").read_bytes()
    broken.write_bytes(good[: len(good) // 2])
    assert f"{broken} is broken" in refusal(main, run(images, tmp_path / "out"))


def test_a_truncated_jpeg_is_named_before_anything_is_trained(images, tmp_path, refusal):
    path = images / "train" / "light" / "a.jpg"
    noise = np.random.default_rng(0).integers(0, 255, (200, 200, 3), np.uint8)
    Image.fromarray(noise).save(path)
    path.write_bytes(path.read_bytes() + b"a camera's own notes" * 100)
    folder.read(images)
    path.write_bytes(path.read_bytes()[:9000])
    with pytest.raises(ValueError, match=r"a\.jpg is broken \(.*truncated"):
        folder.pixels(path, 32)
    assert f"{path} is broken (image file is truncated" in refusal(
        main, run(images, tmp_path / "o")
    )
    assert not (tmp_path / "o").exists()


def test_a_folder_of_another_shape_is_refused(images, tmp_path, refusal):
    (images / "val" / "light").rename(images / "val" / "lighter")
    line = refusal(main, run(images, tmp_path / "out"))
    assert "class light is in one of train and val alone" in line
    (images / "val" / "lighter").rename(images / "val" / "light")
    (images / "val" / "light" / "notes.txt").write_text("x")
    assert "notes.txt: no image; leave .jpeg" in refusal(main, run(images, tmp_path / "out"))
    line = refusal(main, run(tmp_path / "images" / "train", tmp_path / "out"))
    assert "has no train/CLASS/FILE" in line


def test_missing_images_are_a_skipped_row(tmp_path):
    out = tmp_path / "out"
    with pytest.raises(folder.Missing, match="no folder is named"):
        folder.read(None)
    main([*run(tmp_path / "nowhere", out), "--executor", "here"])
    (result,), _ = runs.load(out)
    assert result.status == "skipped"
    assert "imagenet is not here: no folder" in result.error
    assert "name one with train and val by --data" in result.error
