"""Labels of two-body sequences: forces, states, and the masks of labels that training may see."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from orbits import motion
from orbits.arithmetic import Array
from orbits.observation import relative, times
from orbits.philox import address
from orbits.systems import Systems, stream


def force_and_state(
    world: Systems, dts: tuple[float, ...], n_points: int, law: str, as_published: bool
) -> tuple[Array, Array]:
    """Return the labels of systems with one planet; NaN outside the planet's rows.

    Args:
        world: The systems, each with one planet.
        dts: The time steps of the protocol in years.
        n_points: Observed points per sequence.
        law: Name of the force law.
        as_published: Keep two defects of the published states (not of the forces): the velocity
            has the wrong radial sign, and the position is taken from where the star was at the
            start.

    Returns:
        The force on the planet in solar mass AU / year^2, [N, 1 + n_points, 2]; and the state,
        [N, 1 + n_points, 6]: planet - star position (AU) and velocity (AU / year), planet mass,
        star mass (solar masses).
    """
    position, velocity = relative(
        world, 0, world.mean_anomaly[:, 0], times(world, dts, n_points, n_planets=1), law
    )
    m1, m2 = world.planet_mass[:, 0, None], world.star_mass[:, None]
    force = motion.attraction(law, position, m1, m2)
    if as_published:
        square = np.sum(position**2, axis=-1, keepdims=True)
        radial = np.sum(position * velocity, axis=-1, keepdims=True) / square
        velocity = velocity - 2 * radial * position
        star = -(m1 / (m1 + m2))[..., None] * position
        position = position + star - star[:, :1]
    masses = np.broadcast_to(np.stack([m1, m2], axis=-1), (*force.shape[:2], 2))
    state = np.concatenate([position, velocity, masses], axis=-1)
    return _on_planet_rows(force, n_points), _on_planet_rows(state, n_points)


def asked_rows(n_points: int) -> npt.NDArray[np.int64]:
    """Return the rows at which a force is asked: the planet's in the second half of a sequence.

    A model that answers at a row has seen the time step and the points up to this row's, which
    is the planet's place; not the star's of the same time step.
    """
    rows = np.arange(1, 1 + n_points, 2)
    return rows[rows >= first_asked(1 + n_points)]


def first_asked(n_rows: int) -> int:
    """Return the first row of a sequence, its time step included, at which a force is asked."""
    return 1 + n_rows // 2


def unit_force(force: Array, as_published: bool) -> Array:
    """Return force vectors [N, T, 2] scaled into the unit interval, sequence by sequence.

    ``as_published`` divides each component by its own largest absolute value, which turns the
    vectors away from the star; otherwise one scale keeps their direction.
    """
    axes = 1 if as_published else (1, 2)
    return force / np.nanmax(np.abs(force), axis=axes, keepdims=True)


def mask(
    split: str, indices: npt.ArrayLike, n_points: int, label_leak: int
) -> npt.NDArray[np.bool_]:
    """Return the mask of labels that fine-tuning may see, [N, 1 + n_points].

    Every planet row of training sequences, ``label_leak`` rows of test sequences, none of
    validation sequences. The published masks leave the last row out of the choice.
    """
    index = address(0, indices)
    stream("force", split)  # refuses an unknown split
    seen = np.zeros((len(index), 1 + n_points), np.bool_)
    if split == "train":
        seen[:, 1::2] = True
    elif split == "test" and label_leak > 0 and len(index):
        rows = few_rows(np.arange(1, n_points, 2), label_leak, index.max() + 1)[index]
        np.put_along_axis(seen, rows, True, axis=1)
    return seen


def few_rows(
    candidates: npt.NDArray[np.int64], n_open: int, n_sequences: int
) -> npt.NDArray[np.int64]:
    """Return ``n_open`` rows for each sequence, as the published masks choose them.

    RandomState(0) takes them from the candidates without repetition, sequence after sequence: the
    first sequences do not depend on how many there are. Shape [n_sequences, n_open].
    """
    if n_open > len(candidates):
        raise ValueError(f"{n_open} labels asked, {len(candidates)} rows can carry one")
    draws = np.random.RandomState(0)  # the published stream
    return np.stack([draws.choice(candidates, n_open, replace=False) for _ in range(n_sequences)])


def _on_planet_rows(values: Array, n_points: int) -> Array:
    filled = np.full((len(values), 1 + n_points, values.shape[-1]), np.nan)
    filled[:, 1::2] = values
    return filled
