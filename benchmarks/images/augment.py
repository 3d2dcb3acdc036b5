"""RandAugment and random erasing of training images, with DeiT's settings (Touvron et al. 2021).

RandAugment (Cubuk et al. 2020): two of fifteen operations in a row, each left out half of the
time, with a strength of about nine tenths. Random erasing (Zhong et al. 2020): noise in a box of
every fourth image. Both draw from a generator of NumPy, as crops do.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from PIL import Image, ImageEnhance, ImageOps

from benchmarks.images.folder import Array

OPERATIONS, APPLIED = 2, 0.5
"""Operations on an image, and how often each is."""
STRENGTH, SCATTER, STRONGEST = 9.0, 0.5, 10.0
"""Mean and standard deviation of a strength, and the largest one."""
FILL = (124, 116, 104)
"""Mean colour of ImageNet, for what comes from beyond an image."""
ERASED = 0.25
AREA, LEAST_SHAPE = (0.02, 1 / 3), 0.3
"""Share of the images with a box of noise; range of its share of the image; its flattest shape."""
Operation = Callable[[Image.Image, float], Image.Image]
"""Function of an image and a strength from -1 to 1."""


def _moved(shape: Callable[[Image.Image, float], tuple[float, ...]]) -> Operation:
    """Return an operation that maps places (Pillow's six numbers)."""

    def move(image: Image.Image, strength: float) -> Image.Image:
        return image.transform(
            image.size,
            Image.Transform.AFFINE,
            shape(image, strength),
            resample=Image.Resampling.BICUBIC,
            fillcolor=FILL,
        )

    return move


def _enhanced(kind: Callable[[Image.Image], ImageEnhance._Enhance]) -> Operation:
    return lambda image, strength: kind(image).enhance(max(0.1, 1 + 0.9 * strength))


def _lighter(image: Image.Image, strength: float) -> Image.Image:
    """Add to what is darker than the middle."""
    more = int(110 * abs(strength))
    table = [min(255, x + more) if x < 128 else x for x in range(256)]
    return image.point(table * len(image.getbands()))


RAND_AUGMENT: dict[str, Operation] = {
    "contrast stretched": lambda image, _: ImageOps.autocontrast(image),
    "histogram flattened": lambda image, _: ImageOps.equalize(image),
    "inverted": lambda image, _: ImageOps.invert(image),
    "turned": lambda image, x: image.rotate(30 * x, Image.Resampling.BICUBIC, fillcolor=FILL),
    "fewer bits": lambda image, x: ImageOps.posterize(image, 4 - int(4 * abs(x))),
    "bright inverted": lambda image, x: ImageOps.solarize(image, 256 - int(256 * abs(x))),
    "dark lighter": _lighter,
    "colour": _enhanced(ImageEnhance.Color),
    "contrast": _enhanced(ImageEnhance.Contrast),
    "brightness": _enhanced(ImageEnhance.Brightness),
    "sharpness": _enhanced(ImageEnhance.Sharpness),
    "sheared along": _moved(lambda image, x: (1, 0.3 * x, 0, 0, 1, 0)),
    "sheared across": _moved(lambda image, x: (1, 0, 0, 0.3 * x, 1, 0)),
    "shifted along": _moved(lambda image, x: (1, 0, 0.45 * x * image.width, 0, 1, 0)),
    "shifted across": _moved(lambda image, x: (1, 0, 0, 0, 1, 0.45 * x * image.height)),
}
"""Operations by name; those without a direction take the size of a strength alone."""


def rand_augment(image: Image.Image, draw: np.random.Generator) -> Image.Image:
    """Return an RGB image after some operations."""
    for name in draw.choice(list(RAND_AUGMENT), OPERATIONS):
        if draw.random() < APPLIED:
            strength = float(np.clip(draw.normal(STRENGTH, SCATTER), 0, STRONGEST)) / STRONGEST
            sign = 1 if draw.random() < 0.5 else -1
            image = RAND_AUGMENT[str(name)](image, sign * strength)
    return image


def erased(values: Array, draw: np.random.Generator) -> Array:
    """Return standardised channels [3, S, S], every fourth time with a box of noise N(0, 1)."""
    if draw.random() >= ERASED:
        return values
    channels, height, width = values.shape
    for _ in range(10):
        area = height * width * draw.uniform(*AREA)
        shape = math.exp(draw.uniform(math.log(LEAST_SHAPE), -math.log(LEAST_SHAPE)))
        high, wide = round(math.sqrt(area * shape)), round(math.sqrt(area / shape))
        if 0 < high < height and 0 < wide < width:
            top, left = draw.integers(height - high + 1), draw.integers(width - wide + 1)
            box = (slice(None), slice(top, top + high), slice(left, left + wide))
            values = values.copy()
            values[box] = draw.normal(size=(channels, high, wide))
            return values
    return values
