"""Pictures of orbits, with a question and the best possible answer.

Bodies are drawn at equal times, so a track is brighter where they are slow. Pixels have normal
noise. What is asked for is the class of a number that the track tells: the eccentricity of a
planet whose star stands at the centre, or the ratio of the masses of two bodies around their
centre of mass. The renderer is known, so the posterior of the class can be computed: its most
likely class is right as often as any reader of the pictures can be.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks.recall.problem import generators
from orbits import kepler
from orbits.arithmetic import TURN

Array = npt.NDArray[np.float64]
SIZE, CLASSES = 24, 6
POINTS = 48
"""Times of one revolution at which a body is drawn."""
WIDTH = 0.06
"""Standard deviation of a body's light; a picture is 2.4 wide."""
NOISE = 2.0
"""Standard deviation of a pixel's noise. A body adds up to 1 each time; the brightest pixels of a
track have some 4, of two bodies 8. With less noise a table of pictures answers nearly as well as
the posterior, which then takes more tracks than there is time for."""


def _eccentricity(u: Array) -> tuple[Array, Array]:
    """Return the places of a planet, [N, T, 2], and its eccentricity over 0.9."""
    position = _relative(0.35 + 0.2 * u[:, 1], 0.9 * u[:, 0], TURN * u[:, 2], TURN * u[:, 3])
    return position, u[:, 0]


def _mass_ratio(u: Array) -> tuple[Array, Array]:
    """Return the places of two bodies, [N, 2 T, 2], and their mass ratio from 0.1 to 1, scaled."""
    ratio = 0.1 + 0.9 * u[:, 0]
    position = _relative(0.6 + 0.2 * u[:, 1], 0.4 * u[:, 4], TURN * u[:, 2], TURN * u[:, 3])
    light = position / (1 + ratio)[:, None, None]
    return np.concatenate([light, light - position], axis=1), u[:, 0]


TASKS: Mapping[str, Callable[[Array], tuple[Array, Array]]] = {
    "eccentricity": _eccentricity,
    "mass_ratio": _mass_ratio,
}
"""Functions of uniform numbers [N, 5]: places, and the answer to the question in [0, 1)."""


def examples(task: str, split: str, seed: int, indices: npt.ArrayLike) -> tuple[Array, Any]:
    """Return pictures [N, S, S] and classes [N]; each is that of its own index."""
    draws = list(generators(f"picture {task}", split, seed, indices))
    tracks, asked = TASKS[task](np.array([draw.random(5) for draw in draws]).reshape(-1, 5))
    noise = np.array([draw.normal(size=(SIZE, SIZE)) for draw in draws])
    return render(tracks) + NOISE * noise.reshape(-1, SIZE, SIZE), (asked * CLASSES).astype(int)


def render(places: Array) -> Array:
    """Return the pictures [N, S, S] of bodies at places [N, K, 2], the sum of their light."""
    pixels = 2.4 * (np.arange(SIZE) + 0.5) / SIZE - 1.2
    light = np.exp(-0.5 * np.square((places[..., None] - pixels) / WIDTH))
    return np.einsum("nkx,nky->nyx", light[:, :, 0], light[:, :, 1], optimize=True)


def best_answers(task: str, pictures: Array, n: int = 30_000, seed: int = 0) -> Any:
    """Return the most likely class of each picture, [N].

    The posterior is the mean over tracks that are drawn as those of the pictures are, weighted by
    the likelihood of the picture; more tracks come nearer to it.
    """
    draw = np.random.default_rng(seed)
    log_likelihood = np.empty((len(pictures), n), np.float32)
    classes = np.empty(n, int)
    flat = pictures.reshape(len(pictures), -1).astype(np.float32)
    for start in range(0, n, 2000):
        part = slice(start, min(start + 2000, n))
        tracks, asked = TASKS[task](draw.random((part.stop - start, 5)))
        clean = render(tracks).reshape(len(tracks), -1).astype(np.float32)
        classes[part] = (asked * CLASSES).astype(int)
        # Less the picture's own square, which all tracks share.
        log_likelihood[:, part] = (flat @ clean.T - 0.5 * np.square(clean).sum(axis=1)) / NOISE**2
    weight = np.exp(log_likelihood - log_likelihood.max(axis=1, keepdims=True))
    return np.stack([weight[:, classes == c].sum(axis=1) for c in range(CLASSES)]).argmax(axis=0)


def _relative(axis: Array, eccentricity: Array, periapsis: Array, phase: Array) -> Array:
    """Return the places of one body relative to the other at equal times, [N, T, 2]."""
    one = np.ones_like(axis)
    times = kepler.period(axis, one)[:, None] * np.arange(POINTS) / POINTS
    return kepler.relative_orbit(axis, eccentricity, periapsis, phase, one, times)[0]
