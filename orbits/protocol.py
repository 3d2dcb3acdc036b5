"""Protocol: one way to sample, observe and label orbits."""

from __future__ import annotations

import dataclasses
import functools
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np
import numpy.typing as npt

from orbits import (
    binaries,
    disturbed,
    labels,
    laws,
    motion,
    observation,
    paper,
    shifted,
    shifts,
    systems,
)
from orbits.disturbed import Disturbance
from orbits.runs.choices import check_choice
from orbits.systems import POPULATIONS, Systems
from orbits.tokens import TokenLayout

EXOPLANETS = ("exoplanets", "published")
"""Samplers whose planets have the masses of the exoplanet catalogue."""
TARGETS = ("log", "raw")
LABEL_LEAKS = (0, 2)


def _hill_stable(seed, stream, indices, dts, max_planets, law) -> Systems:
    from orbits import nbody  # imports numba

    return nbody.hill_stable(seed, stream, indices, dts, max_planets)


SAMPLERS: dict[str, Callable[..., Systems]] = {
    **binaries.SAMPLERS,
    "exoplanets": systems.exoplanets,
    "published": paper.published,
    "hill_stable": _hill_stable,
    "disturbed": binaries.SAMPLERS["identifiable"],
}


@dataclass(frozen=True)
class Protocol:
    """One way to sample and observe the world.

    Attributes:
        name: The name used in configs and result rows.
        sampler: What draws its systems, a key of ``SAMPLERS``.
        max_planets: Most planets of a system in the population ``pretrain``.
        n_points: Observed points per sequence, after the time-step row.
        low: Left edge of the box in AU.
        high: Right edge of the box in AU.
        n_bins: Position bins per coordinate.
        dts: Possible time steps in years, ascending.
        target: Target of force heads: ``log`` of the magnitude, or ``raw``.
        law: The force law of this world.
        label_leak: Number of labels of every test sequence that fine-tuning may see: 0, or 2 as
            published.
        as_published: Keep the defects of the published labels.
        interacting: Whether planets pull on each other and on the star. Such a world obeys
            Newton's law, and has the population ``pretrain`` alone.
        shift: Shift of the systems from those of training, or None. A shifted
            protocol is for testing alone: population ``force``, split ``test``.
        disturbance: Disturbance of binaries beside their attraction, or None. Such a world obeys
            Newton's law between any two bodies, and has the population ``pretrain`` alone.
    """

    name: str
    sampler: str
    max_planets: int
    n_points: int
    low: float
    high: float
    n_bins: int
    dts: tuple[float, ...]
    target: str = "log"
    law: str = motion.NEWTON
    label_leak: int = 0
    as_published: bool = False
    interacting: bool = False
    shift: shifts.Shift | None = None
    disturbance: Disturbance | None = None

    def __post_init__(self) -> None:
        for name in ("n_points", "label_leak"):
            if not isinstance(value := getattr(self, name), Integral):
                raise ValueError(f"{name} must be a whole number, got {value!r}")
        if self.n_points < 2:
            raise ValueError(f"n_points must be at least 2, got {self.n_points}")
        check_choice("target", self.target, TARGETS)
        if self.label_leak not in LABEL_LEAKS:
            raise ValueError(f"label_leak must be 0 or 2, got {self.label_leak}")
        law = laws.get(self.law)  # refuses an unknown law
        if self.sampler in EXOPLANETS and not law.light_planets_move_alike:
            raise ValueError(
                f"protocol {self.name!r} has planets of 1e-9 to 1e-3 solar masses, whose periods "
                f"under law {self.law!r} differ by powers of ten; take identifiable or free_step"
            )
        if not self.is_two_body and self.law != motion.NEWTON:
            raise ValueError(f"protocol {self.name!r} knows Newton's law only, got {self.law!r}")
        if (self.disturbance is not None) != (self.sampler == "disturbed"):
            raise ValueError(
                f"protocol {self.name!r} has sampler {self.sampler!r}; a disturbance belongs to "
                "sampler 'disturbed', which needs one: take drag, changing_g, hidden_body, kinds, "
                "triples or species"
            )
        _ = self.tokens  # refuses an impossible vocabulary
        if self.shift is not None:
            shifted.check(self.name, self.sampler, self.dts, self.shift)
        if self.disturbance is not None and (self.interacting or self.shift is not None):
            raise ValueError(
                f"protocol {self.name!r}: a disturbed world has no shift and is not interacting"
            )
        if self.disturbance is not None and self.max_planets != 1 + self.disturbance.triple:
            raise ValueError(
                f"protocol {self.name!r} of disturbed bodies has "
                f"max_planets={1 + self.disturbance.triple}, got {self.max_planets}"
            )

    @property
    def tokens(self) -> TokenLayout:
        """Vocabulary and bins of this protocol."""
        return TokenLayout(self.low, self.high, self.n_bins, self.dts)

    @property
    def populations(self) -> tuple[str, ...]:
        """Names of the populations: only two-body motion has ``force``, shifted no other."""
        if self.shift is not None:
            return POPULATIONS[1:]
        return POPULATIONS if self.is_two_body else POPULATIONS[:1]

    @property
    def is_two_body(self) -> bool:
        """Whether nothing moves a planet but the attraction between it and its star."""
        return not self.interacting and self.disturbance is None

    @property
    def n_bodies(self) -> int | None:
        """Observed bodies of each of its systems; None where systems have unlike numbers."""
        if self.disturbance is not None or self.max_planets == 1:
            return 1 + self.max_planets
        return None

    @property
    def is_compiled(self) -> bool:
        """Whether ``orbits.kernel`` serves this world: Newton's law, planet by planet, no shift."""
        return self.law == motion.NEWTON and self.is_two_body and self.shift is None

    @property
    def unshifted(self) -> Protocol:
        """The protocol without its shift: the world in which its models are trained."""
        return dataclasses.replace(self, shift=None)

    def config(self) -> dict[str, Any]:
        """Return all settings that determine the data, as plain JSON values.

        Without a shift there is no key ``shift``, without a disturbance none of that name. A law
        from outside adds its formula, ``law_definition``.
        """
        config = dataclasses.asdict(self.unshifted) | {"dts": list(self.dts)}
        del config["shift"], config["disturbance"]
        if self.shift is not None:
            config["shift"] = self.shift.as_plain()
        if self.disturbance is not None:
            config["disturbance"] = self.disturbance.as_plain()
        if (definition := laws.definition(self.law)) is not None:
            config["law_definition"] = definition
        return config

    def unchanged(self, config: Mapping[str, Any]) -> Protocol:
        """Return the protocol; ValueError: its configuration is not that of a cell's address."""
        mine, noted = (json.loads(json.dumps(each)) for each in (self.config(), config))
        if mine != noted:
            raise ValueError(f"protocol {self.name!r} is not that of the cell's address")
        return self

    def check_seeds(self, seeds: Iterable[int]) -> None:
        """Refuse seeds whose data are not independent of each other.

        Raises:
            ValueError: One is too large, or two share trajectories; only those of ``paper`` can.
        """
        if self.sampler == "published":
            paper.check_seeds(seeds)

    def systems(
        self, seed: int, split: str, indices: npt.ArrayLike, population: str = "pretrain"
    ) -> Systems:
        """Return the systems behind some trajectory indices.

        Raises:
            ValueError: The split, the population, the seed or an index is impossible.
        """
        return self._sample(SAMPLERS[self.sampler], seed, split, indices, population)

    def tokens_batch(
        self, seed: int, split: str, indices: npt.ArrayLike, population: str = "pretrain"
    ) -> npt.NDArray[np.uint16]:
        """Return the tokens alone, uint16 [N, 1 + n_points, 2]: the compiled path.

        Equal to those of :meth:`batch` bit for bit. Under another law than Newton's, and between
        bodies that all pull on each other, :meth:`batch` makes them.

        Raises:
            ValueError: The split, the population, the seed or an index is impossible.
        """
        if not self.is_compiled:
            return self.batch(seed, split, indices, population)["tokens"]
        from orbits import kernel

        sampler = kernel.SAMPLERS.get(self.sampler, SAMPLERS[self.sampler])
        world = self._sample(sampler, seed, split, indices, population)
        return kernel.tokens(world, self.tokens, self.n_points)

    def batch(
        self, seed: int, split: str, indices: npt.ArrayLike, population: str = "pretrain"
    ) -> dict[str, npt.NDArray]:
        """Return observations, and labels for the ``force`` population.

        Returns:
            ``sequence_id`` int64 [N], the trajectory index, and the arrays of :meth:`observe`.

        Raises:
            ValueError: The split, the population, the seed or an index is impossible.
        """
        world = self.systems(seed, split, indices, population)
        return {
            "sequence_id": np.asarray(indices, np.int64).reshape(-1),
            **self.observe(world, labelled=population == "force"),
        }

    def observe(self, world: Systems, labelled: bool = False) -> dict[str, npt.NDArray]:
        """Return the observation of some systems.

        Returns:
            Arrays of N sequences with T = 1 + n_points rows:

            * ``tokens`` uint16 [N, T, 2];
            * ``coordinates`` float64 [N, T, 2] in AU, zero in row 0;
            * ``body`` int8 [N, T]: -1 time-step row, 0 star, k planet k;
            * ``dt`` float64 [N] in years;

            and if ``labelled`` (systems with one planet), NaN outside the planet's rows:

            * ``force`` float64 [N, T, 2], on the planet, solar mass AU / year^2;
            * ``state`` float64 [N, T, 6]: planet - star position (AU) and velocity (AU / year),
              planet mass, star mass (solar masses). In ``paper``, with the published defects of
              :func:`orbits.labels.force_and_state`.
        """
        coordinates, body = observation.observe(
            world, self.dts, self.n_points, self.law, self.interacting, self.disturbance
        )
        tokens = np.empty(coordinates.shape, np.uint16)
        tokens[:, 0] = self.tokens.dt_token(world.dt_index)[:, None]
        tokens[:, 1:] = self.tokens.encode(coordinates[:, 1:])
        observed: dict[str, npt.NDArray] = {
            "tokens": tokens,
            "coordinates": coordinates,
            "body": body,
            "dt": np.asarray(self.dts)[world.dt_index],
        }
        if labelled:
            observed["force"], observed["state"] = labels.force_and_state(
                world, self.dts, self.n_points, self.law, self.as_published
            )
        return observed

    def unit_force(self, force: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """Return force vectors [N, T, 2] scaled into the unit interval, sequence by sequence."""
        return labels.unit_force(force, self.as_published)

    def label_mask(self, split: str, indices: npt.ArrayLike) -> npt.NDArray[np.bool_]:
        """Tell which labels of the ``force`` population fine-tuning may see, [N, T].

        These are every planet row of training sequences, ``label_leak`` rows of test sequences (in
        ``paper`` the published ones), and none of validation sequences.

        Raises:
            ValueError: The split or an index is impossible.
        """
        return labels.mask(split, indices, self.n_points, self.label_leak)

    def _sample(
        self,
        sampler: Callable[..., Systems],
        seed: int,
        split: str,
        indices: npt.ArrayLike,
        population: str,
    ) -> Systems:
        stream = systems.stream(population, split)
        if self.shift is not None:
            if (population, split) != ("force", "test"):
                raise ValueError(
                    f"protocol {self.name!r} under shift {self.shift.name!r} has test "
                    f"sequences alone: take population force, split test, not {population}, {split}"
                )
            sampler = functools.partial(shifted.sample, self.shift, self.sampler)
        if self.disturbance is not None:
            sampler = functools.partial(disturbed.sample, self.disturbance)
        if population not in self.populations:
            raise ValueError(
                f"protocol {self.name!r} has no labelled population; take fixed or identifiable"
            )
        max_planets = self.max_planets if population == "pretrain" else 1
        return sampler(seed, stream, indices, self.dts, max_planets, self.law)
