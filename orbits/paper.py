"""Published sampler of Vafa et al. (2025), draw for draw: keyonvafa/inductive-bias-probes.

Numpy's legacy generators are seeded anew for every quantity, with trajectory number t of the run
using seeds from s = seed + 20 t on. As a planet takes four seeds, planets 5 to 9 of a system have
axis, eccentricity and mass of planets 0 to 4 of the next one; that belongs to the protocol.

The published run numbers its trajectories through all of its files, in the order pre-training
train, val, test, plots, and two-body train, val, test. Two-body train holds 10,000 sequences: the
first 9,000 are trained on, and the published evaluation is on the last 1,000. Here these are the
splits train and test of the population ``force``. A split goes on beyond its published length
with numbers the published run did not use.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from orbits import motion
from orbits.arithmetic import TURN, clipped, exp
from orbits.inverse_cdf import ECCENTRICITY_BETA, PLANET_MASS_GAMMA
from orbits.philox import address
from orbits.systems import STAR_MASS_LOGNORMAL, Systems, stream

PUBLISHED = {
    stream("pretrain", "train"): (0, 10_000_000),
    stream("pretrain", "val"): (10_000_000, 300),
    stream("pretrain", "test"): (10_000_300, 300),
    stream("force", "train"): (10_001_600, 9_000),
    stream("force", "val"): (10_011_600, 300),
    stream("force", "test"): (10_010_600, 1_000),
}
"""First trajectory number and length of each population and split in the published run."""

_FIRST_UNUSED, _ROOM = 10_012_200, 30_000_000
_SEED_STEP = 20
LARGEST_SEED = 2**32 - 1 - _SEED_STEP * (_FIRST_UNUSED + len(PUBLISHED) * _ROOM + 2)
_STEPS = 500  # among them the resting star's place is drawn, however many steps are observed


def trajectory_seeds(seed: int, stream: int, indices: npt.ArrayLike) -> npt.NDArray[np.int64]:
    """Return the seed s of each trajectory, [N].

    Raises:
        ValueError: There is no such seed or trajectory.
    """
    index = address(seed, indices)
    check_seeds([seed])
    first, length = PUBLISHED[stream]
    if index.size and index.max() >= length + _ROOM:
        raise ValueError(
            f"trajectory index must be below {length + _ROOM} in the paper's protocol, "
            f"got {index.max()}"
        )
    beyond = _FIRST_UNUSED + stream * _ROOM - length
    return seed + _SEED_STEP * (index + np.where(index < length, first, beyond))


def check_seeds(seeds: Iterable[int]) -> None:
    """Refuse a seed that is too large, and seeds of which two share trajectories.

    Trajectory t of a seed is made of the number seed + 20 t, so seeds that differ by a multiple of
    20 have the same trajectories, one's training set those of the other's test set among them.

    Raises:
        ValueError: The message names the seeds.
    """
    first: dict[int, int] = {}
    for seed in seeds:
        if seed > LARGEST_SEED:
            raise ValueError(
                f"seed must be at most {LARGEST_SEED} in the paper's protocol, got {seed}"
            )
        other = first.setdefault(seed % _SEED_STEP, seed)
        if other != seed:
            raise ValueError(
                f"seeds {other} and {seed} share trajectories in the paper's protocol (they differ "
                f"by a multiple of {_SEED_STEP}); take seeds from 0 to {_SEED_STEP - 1}"
            )


def published(
    seed: int,
    stream: int,
    indices: npt.ArrayLike,
    dts: tuple[float, ...],
    max_planets: int = 10,
    law: str = motion.NEWTON,
) -> Systems:
    """Sample as published; the distributions are those of :func:`orbits.systems.exoplanets`.

    ``max_planets`` 1 is the two-body population, which draws no number of planets.

    Raises:
        ValueError: There is no such seed or trajectory, or the law does not bind an orbit.
    """
    return from_seeds(trajectory_seeds(seed, stream, indices), dts, max_planets, law)


def from_seeds(
    seeds: npt.ArrayLike, dts: tuple[float, ...], max_planets: int, law: str = motion.NEWTON
) -> Systems:
    """Return the systems of trajectory seeds s, [N]."""
    seeds = np.asarray(seeds, np.int64).reshape(-1)
    world = Systems.zeros(len(seeds), max_planets)
    pinned_step = np.zeros(len(seeds))
    legacy = np.random.RandomState()  # the published stream
    for i, s in enumerate(seeds.tolist()):
        n, first = 1, s
        if max_planets > 1:
            legacy.seed(s)
            n, first = legacy.randint(1, max_planets + 1), s + 1
        world.n_planets[i] = n
        legacy.seed(first)
        world.star_mass[i] = legacy.standard_normal()
        for k in range(n):
            own = first + 1 + 4 * k
            legacy.seed(own)
            world.semi_major_axis[i, k] = legacy.uniform()
            legacy.seed(own + 1)
            world.eccentricity[i, k] = legacy.beta(*ECCENTRICITY_BETA)
            legacy.seed(own + 2)
            world.planet_mass[i, k] = legacy.standard_gamma(PLANET_MASS_GAMMA[0])
        frame = np.random.default_rng(s)
        world.centre_of_mass[i] = frame.standard_normal(2)
        # The published angle is that of the periapsis as the star goes round the planet.
        world.periapsis[i, :n] = TURN * (frame.random(n) + 0.5)
        legacy.seed(s + 10)
        world.dt_index[i] = legacy.randint(0, len(dts))
        start = np.random.default_rng(s + 10)
        world.mean_anomaly[i, :n] = TURN * start.random(n)
        if n > 1:
            world.pinned_planet[i], pinned_step[i] = start.integers(n), start.integers(_STEPS)

    sigma, loc, scale = STAR_MASS_LOGNORMAL
    world.star_mass[:] = clipped(exp(sigma * world.star_mass) * scale + loc, 0.1, 5.0)
    _, loc, scale = PLANET_MASS_GAMMA
    world.planet_mass[:] = clipped(world.planet_mass * scale + loc, 1e-9, 1e-3)
    world.semi_major_axis[:] = world.semi_major_axis * 31.7 + 0.3
    pinned = np.arange(len(seeds)), world.pinned_planet
    period = motion.period(
        law,
        world.semi_major_axis[pinned],
        world.eccentricity[pinned],
        world.planet_mass[pinned],
        world.star_mass,
    )
    elapsed = np.asarray(dts)[world.dt_index] * pinned_step / period
    world.pinned_anomaly[:] = world.mean_anomaly[pinned] + TURN * elapsed
    return world
