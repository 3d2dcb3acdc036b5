"""Images by folder, ``train/CLASS/FILE`` and ``val/CLASS/FILE``, as ImageNet-1k is laid out.

Training images are cropped and flipped at random, the others resized and cropped to the centre.
What else a recipe does to them is the caller's (:mod:`benchmarks.images.augment`).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
from PIL import Image, UnidentifiedImageError

ENDINGS = (".jpeg", ".jpg", ".png", ".bmp", ".webp")
MEAN, DEVIATION = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
"""Mean and standard deviation of ImageNet's channels."""
AREA, SHAPE, ENLARGED = (0.08, 1.0), (3 / 4, 4 / 3), 256 / 224
"""Ranges of a random crop: its share of the image, and the ratio of its sides. Size of the image
over that of its central crop."""
END_OF_JPEG, TAIL = b"\xff\xd9", 1024
Array = npt.NDArray[np.float32]
Change = Callable[[Image.Image], Image.Image]


class Missing(FileNotFoundError):
    """The folder of the images is missing."""


@dataclass(frozen=True)
class ImageFolder:
    """Files of images with their classes.

    Attributes:
        classes: Names of the classes, in alphabetical order.
        files: File and class of each image, by ``train`` and ``val``.
    """

    classes: tuple[str, ...]
    files: dict[str, list[tuple[Path, int]]]


def read(folder: str | Path | None) -> ImageFolder:
    """Return the images of a folder; each is opened once."""
    if folder is None or not Path(folder).is_dir():
        where = "no folder is named" if folder is None else f"no folder {folder}"
        raise Missing(f"imagenet is not here: {where}; name one with train and val by --data")
    files: dict[str, list[tuple[Path, int]]] = {}
    names: dict[str, list[str]] = {}
    for part in ("train", "val"):
        places = [x for x in (Path(folder) / part).glob("*") if x.is_dir()]
        names[part] = sorted(place.name for place in places)
        if not names[part]:
            raise ValueError(f"{folder} has no {part}/CLASS/FILE; lay it out as ImageNet-1k is")
        files[part] = [
            (file, number)
            for number, name in enumerate(names[part])
            for file in sorted((Path(folder) / part / name).iterdir())
        ]
    if other := sorted(set(names["val"]) ^ set(names["train"])):
        raise ValueError(f"{folder}: class {other[0]} is in one of train and val alone")
    for part, found in files.items():
        if empty := sorted(set(range(len(names[part]))) - {number for _, number in found}):
            raise ValueError(f"{folder}/{part}/{names[part][empty[0]]} has no image")
    for file, _ in (each for part in files.values() for each in part):
        if file.suffix.lower() not in ENDINGS:
            raise ValueError(f"{file}: no image; leave {', '.join(ENDINGS)} alone in the folder")
        _check_whole(file)
    return ImageFolder(tuple(names["train"]), files)


def _check_whole(file: Path) -> None:
    """Refuse a file that is no image, or the first part of one; few have to be decoded for it."""
    with _opened(file) as image:
        image.verify()  # of a JPEG the head alone
        decoded = image.format == "JPEG" and not _ends(file)
    if decoded:
        with _opened(file) as image:
            image.load()


def _ends(file: Path) -> bool:
    """Tell whether the end of a JPEG is in its last bytes; a camera may write more behind it."""
    with file.open("rb") as opened:
        opened.seek(max(0, file.stat().st_size - TAIL))
        return END_OF_JPEG in opened.read()


def pixels(
    file: Path, size: int, draw: np.random.Generator | None = None, then: Change = lambda x: x
) -> Array:
    """Return an image as standardised channels [3, size, size].

    Args:
        file: The image.
        size: Pixels of a side.
        draw: Generator of a random crop and flip; None for the centre.
        then: What is done to the cropped image.
    """
    try:
        with _opened(file) as opened:
            image = _in_bytes(opened).convert("RGB")
    except (OSError, SyntaxError) as error:
        raise _broken(file, error) from None
    box, flip = _centre(image, size), False
    if draw is not None:
        box, flip = _crop(image, draw), draw.random() < 0.5
    resized = image.resize((size, size), Image.Resampling.BICUBIC, box=box)
    if flip:
        resized = resized.transpose(Image.Transpose.FLIP_LEFT_RIGHT)
    values = np.asarray(then(resized), np.float32) / 255
    return np.ascontiguousarray(((values - MEAN) / DEVIATION).transpose(2, 0, 1), np.float32)


def _in_bytes(image: Image.Image) -> Image.Image:
    """Return an image of 16 bits a pixel with 8; a conversion would cut what is above 255."""
    if not image.mode.startswith("I"):
        return image
    values = np.asarray(image, np.float32) / 257
    return Image.fromarray(values.round().clip(0, 255).astype(np.uint8))


class _opened:
    """Open an image; a file that is no image is refused in one line, while it is verified too."""

    def __init__(self, file: Path) -> None:
        self.file = file

    def __enter__(self) -> Image.Image:
        try:
            self.image = Image.open(self.file)
        except (UnidentifiedImageError, OSError) as error:
            raise _broken(self.file, error) from None
        return self.image

    def __exit__(self, kind: type | None, error: BaseException | None, trace: object) -> None:
        self.image.close()
        if isinstance(error, OSError | SyntaxError):
            raise _broken(self.file, error) from None


def _broken(file: Path, error: BaseException) -> ValueError:
    reason = " ".join(str(error).split()).replace(repr(str(file)), "it")
    return ValueError(f"{file} is broken ({reason}); replace it, or take it out of the folder")


def _centre(image: Image.Image, size: int) -> tuple[float, float, float, float]:
    """Return the box of the centre, after the shorter side was made a little longer than a crop."""
    side = min(image.size) / ENLARGED
    left, top = ((length - side) / 2 for length in image.size)
    return left, top, left + side, top + side


def _crop(image: Image.Image, draw: np.random.Generator) -> tuple[float, float, float, float]:
    """Return a random box; the whole image where ten draws do not fit."""
    width, height = image.size
    for _ in range(10):
        area = width * height * draw.uniform(*AREA)
        shape = math.exp(draw.uniform(math.log(SHAPE[0]), math.log(SHAPE[1])))
        wide, high = math.sqrt(area * shape), math.sqrt(area / shape)
        if wide <= width and high <= height:
            left, top = draw.uniform(0, width - wide), draw.uniform(0, height - high)
            return left, top, left + wide, top + high
    return 0, 0, width, height
