"""Protocols: what is sampled, what a model observes, what is labelled.

Every protocol has two populations. ``pretrain`` is what a world model learns to predict;
``force`` are two-body systems whose planet rows carry forces and states. A batch is a pure
function of (protocol, population, split, seed, indices).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from orbits import kepler
from orbits.laws.newton import GRAVITATIONAL_CONSTANT
from orbits.systems import Systems, exoplanets, identifiable
from orbits.tokens import TokenLayout, interleave

SPLITS = ("train", "val", "test")
POPULATIONS = ("pretrain", "force")
TARGETS = ("log", "raw")
DT_ROW, STAR = -1, 0
"""Body numbers of the time-step row and of the star; planet k has number k = 1, 2, ..."""


@dataclass(frozen=True)
class Protocol:
    """One way to sample and observe the world.

    Attributes:
        name: The name used in configs and result rows.
        n_points: Observed points per sequence, after the time-step row.
        low: Left edge of the box in AU.
        high: Right edge of the box in AU.
        n_bins: Position bins per coordinate.
        dts: Possible time steps in years.
        sample: Maps (population, seed, stream, indices, dts) to Systems.
        target: What force heads regress: ``log`` of the magnitude, or ``raw``.
        law: The force law of this world.
    """

    name: str
    n_points: int
    low: float
    high: float
    n_bins: int
    dts: tuple[float, ...]
    sample: Callable[[str, int, int, npt.ArrayLike, tuple[float, ...]], Systems]
    target: str = "log"
    law: str = "newton"

    def __post_init__(self) -> None:
        if self.n_points < 2:
            raise ValueError(f"n_points must be at least 2, got {self.n_points}")
        if self.target not in TARGETS:
            raise ValueError(f"unknown target {self.target!r}; choose from {', '.join(TARGETS)}")
        _ = self.tokens  # refuses an impossible vocabulary

    @property
    def tokens(self) -> TokenLayout:
        """The vocabulary and the bins of this protocol."""
        return TokenLayout(self.low, self.high, self.n_bins, self.dts)

    def config(self) -> dict[str, Any]:
        """Return what determines the data, as plain JSON values."""
        fields = {f.name: getattr(self, f.name) for f in dataclasses.fields(self)}
        del fields["sample"]
        return {**fields, "dts": list(self.dts)}

    def systems(
        self, seed: int, split: str, indices: npt.ArrayLike, population: str = "pretrain"
    ) -> Systems:
        """Return the systems behind some trajectory indices.

        Raises:
            ValueError: The split or the population is unknown.
        """
        for value, choices, what in (
            (split, SPLITS, "split"),
            (population, POPULATIONS, "population"),
        ):
            if value not in choices:
                raise ValueError(f"unknown {what} {value!r}; choose from {', '.join(choices)}")
        stream = SPLITS.index(split) + len(SPLITS) * POPULATIONS.index(population)
        return self.sample(population, seed, stream, indices, self.dts)

    def batch(
        self, seed: int, split: str, indices: npt.ArrayLike, population: str = "pretrain"
    ) -> dict[str, npt.NDArray]:
        """Return observations, and labels for the ``force`` population.

        Returns:
            Arrays of N sequences with T = 1 + n_points rows:

            * ``sequence_id`` int64 [N], the trajectory index;
            * ``tokens`` uint16 [N, T, 2];
            * ``coordinates`` float64 [N, T, 2] in AU, zero in row 0;
            * ``body`` int8 [N, T]: -1 time-step row, 0 star, k planet k;
            * ``dt`` float64 [N] in years;

            and for ``force``, NaN outside the planet's rows:

            * ``force`` float64 [N, T, 2], on the planet, solar mass AU / year^2;
            * ``state`` float64 [N, T, 6]: planet - star position (AU) and velocity (AU / year),
              planet mass, star mass (solar masses).
        """
        world = self.systems(seed, split, indices, population)
        coordinates = np.zeros((len(world.star_mass), 1 + self.n_points, 2))
        body = np.full(coordinates.shape[:2], DT_ROW, np.int8)
        for n in np.unique(world.n_planets):
            rows = np.flatnonzero(world.n_planets == n)
            coordinates[rows, 1:], body[rows, 1:] = self._observe(world[rows], int(n))
        tokens = np.empty(coordinates.shape, np.uint16)
        tokens[:, 0] = self.tokens.dt_token(world.dt_index)[:, None]
        tokens[:, 1:] = self.tokens.encode(coordinates[:, 1:])
        batch: dict[str, npt.NDArray] = {
            "sequence_id": np.asarray(indices, np.int64).reshape(-1),
            "tokens": tokens,
            "coordinates": coordinates,
            "body": body,
            "dt": np.asarray(self.dts)[world.dt_index],
        }
        if population == "force":
            batch["force"], batch["state"] = self._labels(world)
        return batch

    def _times(self, world: Systems, n_planets: int) -> npt.NDArray[np.float64]:
        n_steps = -(-self.n_points // (n_planets + 1))
        return np.asarray(self.dts)[world.dt_index][:, None] * np.arange(n_steps)

    def _observe(self, world: Systems, n: int) -> tuple[npt.NDArray, npt.NDArray]:
        """Return the interleaved coordinates and body numbers of systems with ``n`` planets."""
        times = self._times(world, n)
        star_share = np.empty((len(times), n))
        points = np.empty((*times.shape, n + 1, 2))
        for k in range(n):
            total = world.star_mass + world.planet_mass[:, k]
            star_share[:, k] = world.star_mass / total
            relative, _ = _relative(world, k, world.mean_anomaly[:, k], times)
            points[:, :, k] = star_share[:, k, None, None] * relative
            if n == 1:
                points[:, :, 1] = points[:, :, 0] - relative
        if n > 1:
            points[:, :, n] = _pinned_star(world)[:, None]
        points += world.centre_of_mass[:, None, None]
        bodies = np.tile(np.r_[1 : n + 1, STAR].astype(np.int8), times.shape[1])
        return interleave(points, self.n_points), bodies[: self.n_points]

    def _labels(self, world: Systems) -> tuple[npt.NDArray, npt.NDArray]:
        relative, velocity = _relative(
            world, 0, world.mean_anomaly[:, 0], self._times(world, n_planets=1)
        )
        m1, m2 = world.planet_mass[:, 0, None], world.star_mass[:, None]
        distance = np.sqrt(np.sum(relative**2, axis=-1))
        pull = -GRAVITATIONAL_CONSTANT * (m1 * m2)[..., None] * relative / distance[..., None] ** 3
        n, t = distance.shape
        masses = np.broadcast_to(np.stack([m1, m2], axis=-1), (n, t, 2))
        state = np.concatenate([relative, velocity, masses], axis=-1)
        return self._on_planet_rows(pull), self._on_planet_rows(state)

    def _on_planet_rows(self, values: npt.NDArray) -> npt.NDArray:
        filled = np.full((len(values), 1 + self.n_points, values.shape[-1]), np.nan)
        filled[:, 1::2] = values
        return filled


def _relative(
    world: Systems, k: int, phase: npt.NDArray, times: npt.NDArray
) -> tuple[npt.NDArray, npt.NDArray]:
    """Return position and velocity of planet ``k`` relative to the star."""
    return kepler.relative_orbit(
        world.semi_major_axis[:, k],
        world.eccentricity[:, k],
        world.periapsis[:, k],
        phase,
        world.star_mass + world.planet_mass[:, k],
        times,
    )


def _pinned_star(world: Systems) -> npt.NDArray:
    """Return where the star rests, [N, 2]: one sample of one planet's reflex motion."""
    place = np.zeros((len(world.star_mass), 2))
    for k in np.unique(world.pinned_planet):
        rows = np.flatnonzero(world.pinned_planet == k)
        chosen = world[rows]
        relative, _ = _relative(chosen, k, chosen.pinned_anomaly, np.zeros((len(rows), 1)))
        share = chosen.planet_mass[:, k] / (chosen.star_mass + chosen.planet_mass[:, k])
        place[rows] = -share[:, None] * relative[:, 0]
    return place


def _sample_identifiable(population, seed, stream, indices, dts):
    return identifiable(seed, stream, indices, dts)


def _sample_paper(population, seed, stream, indices, dts):
    max_planets = 10 if population == "pretrain" else 1
    return exoplanets(seed, stream, indices, dts, max_planets)


_CATALOGUE = {
    protocol.name: protocol
    for protocol in (
        Protocol(
            name="identifiable",
            n_points=48,
            low=-4.0,
            high=4.0,
            n_bins=512,
            dts=tuple(2.0**k for k in range(-7, 0)),
            sample=_sample_identifiable,
        ),
        Protocol(
            name="paper",
            n_points=999,
            low=-50.0,
            high=50.0,
            n_bins=7000,
            dts=(7 * 0.0027, 180 * 0.0027),
            sample=_sample_paper,
            target="raw",
        ),
    )
}


def names() -> tuple[str, ...]:
    """Return the names of all protocols."""
    return tuple(_CATALOGUE)


def get(name: str, overrides: Mapping[str, Any] | None = None) -> Protocol:
    """Return a protocol, with some of ``n_points``, ``n_bins``, ``target`` changed.

    Raises:
        ValueError: The name or an override is unknown; the message lists the choices.
    """
    if name not in _CATALOGUE:
        raise ValueError(f"unknown protocol {name!r}; choose from {', '.join(names())}")
    allowed = ("n_points", "n_bins", "target")
    for field in overrides or {}:
        if field not in allowed:
            raise ValueError(f"unknown protocol key {field!r}; choose from {', '.join(allowed)}")
    return dataclasses.replace(_CATALOGUE[name], **(overrides or {}))
