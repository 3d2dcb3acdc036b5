"""Orbits made on the device that trains on them, so that no loader has to keep up with it.

The generator of ``orbits`` over torch tensors. Its arithmetic is not written again: as
``orbits.kernel`` compiles the shared functions of ``orbits.arithmetic``, this module binds them
to torch's operators. Written out are Philox, for want of unsigned integers, and what is not
element-wise: the samplers and the interleaving.

In float64 the tokens are those of ``Protocol.tokens_batch``, but for coordinates within rounding
of a bin's edge. In float32, for devices that are slow in float64, up to two tokens in ten thousand
are one bin off. Draws and phases are float64 in both.
"""

from __future__ import annotations

from types import FunctionType
from typing import Any

import numpy as np
import torch
from torch import Tensor

from orbits import binaries, inverse_cdf, kepler, systems
from orbits.arithmetic import PER_TURN, TURN, cos_sin
from orbits.inverse_cdf import NORMAL, quantile
from orbits.motion import NEWTON
from orbits.philox import address, uniform
from orbits.protocols import Protocol
from orbits.systems import N_PER_PLANET, N_SHARED, Systems
from orbits.tokens import bin_number

_LOW = 2**32 - 1


def philox(c0: Any, c1: Any, c2: Any, c3: Any, k0: Any, k1: Any) -> tuple[Any, Any, Any, Any]:
    """Return the words of ``orbits.philox.philox``, kept in int64.

    The low 64 bits of a product are right in int64, too. Its high word must be masked, because a
    shift to the right drags the sign along.
    """
    for _ in range(10):
        product0, product1 = c0 * 0xD2511F53, c2 * 0xCD9E8D57
        c0 = ((product1 >> 32) & _LOW) ^ c1 ^ k0
        c1 = product1 & _LOW
        c2 = ((product0 >> 32) & _LOW) ^ c3 ^ k1
        c3 = product0 & _LOW
        k0, k1 = (k0 + 0x9E3779B9) & _LOW, (k1 + 0xBB67AE85) & _LOW
    return c0, c1, c2, c3


_OVER_TENSORS: dict[str, Any] = {
    "np": torch,
    "select": torch.where,
    "bits": lambda x: x.view(torch.int64),
    "from_bits": lambda pattern: pattern.view(torch.float64),
    # The original works on the bits of a float64; Kepler's equation only starts from it.
    "cbrt_estimate": lambda x: x ** (1 / 3),
}


def _over_tensors(function: Any) -> Any:
    """Return a shared function of ``orbits``: the same code, whose names mean torch's operators."""

    def bound(name: str, value: Any) -> Any:
        if name in _OVER_TENSORS:
            return _OVER_TENSORS[name]
        if isinstance(value, FunctionType):
            return _over_tensors(value)
        return int(value) if isinstance(value, np.uint64) else value

    names = function.__globals__
    used = {name: bound(name, names[name]) for name in function.__code__.co_names if name in names}
    return FunctionType(function.__code__, names | used, function.__name__)


_anomaly_cos_sin = _over_tensors(kepler.anomaly_cos_sin)
_bin_number = _over_tensors(bin_number)
_binary = _over_tensors(binaries.binary)
_cos_sin = _over_tensors(cos_sin)
_exoplanet = _over_tensors(systems.exoplanet)
_frequency = _over_tensors(kepler.frequency)
_quantile = _over_tensors(quantile)
_star_mass = _over_tensors(systems.star_mass)
_uniform = _over_tensors(uniform)


class DeviceOrbits:
    """The unlabelled sequences of a protocol, made on a device.

    Args:
        protocol: One of the samplers written here, unshifted, that obeys Newton's law.
        population: The population of the sequences.
        split: Split of the sequences.
        seed: Seed of the data.
        device: Device that makes the batches.
        dtype: Precision of the orbits, float64 or float32.

    Raises:
        ValueError: The protocol cannot be made here, or a name or the seed is impossible.
    """

    def __init__(
        self,
        protocol: Protocol,
        population: str,
        split: str,
        seed: int,
        device: torch.device | str,
        dtype: torch.dtype = torch.float64,
    ) -> None:
        if not is_made_on_device(protocol):
            raise ValueError(
                f"protocol {protocol.name!r} under law {protocol.law!r} is made by the loader "
                "alone; leave device_batches out"
            )
        address(seed, [])  # refuses an impossible seed
        self.protocol, self.seed, self.dtype = protocol, seed, dtype
        self.stream = systems.stream(population, split)
        self.max_planets = protocol.max_planets if population == "pretrain" else 1
        self.table = torch.tensor(inverse_cdf.load(), device=device)
        self.dts = torch.tensor(protocol.dts, dtype=torch.float64, device=device)
        self.row = torch.arange(protocol.n_points, device=device)

    def batch(self, indices: Tensor) -> dict[str, Tensor]:
        """Return the sequences of trajectory indices, int64 [N] on the device.

        Returns:
            ``tokens`` int64 and ``coordinates`` float32 in AU, each [N, 1 + n_points, 2], as of
            :meth:`orbits.protocols.Protocol.observe`.
        """
        world = _SAMPLERS[self.protocol.sampler](self, indices)
        observed = self._observe(world)
        layout = self.protocol.tokens
        bins = _bin_number(observed, layout.low, layout.bins_per_au, layout.n_bins - 1.0).long()
        step = (layout.n_bins + world.dt_index)[:, None, None].expand(-1, 1, 2)
        return {
            "tokens": torch.cat([step, bins], dim=1),
            "coordinates": torch.nn.functional.pad(observed.float(), (0, 0, 1, 0)),
        }

    def uniforms(self, indices: Tensor, n: int) -> Tensor:
        """Return uniform numbers as ``orbits.philox.uniforms`` does, float64 [N, n]."""
        index = indices[:, None]
        blocks = torch.arange((n + 1) // 2, device=index.device)
        words = philox(
            blocks, self.stream, index & _LOW, index >> 32, self.seed & _LOW, self.seed >> 32
        )
        pairs = torch.stack([_uniform(*words[:2]), _uniform(*words[2:])], dim=-1)
        return pairs.flatten(1)[:, :n]

    def _identifiable(self, indices: Tensor) -> Any:
        """Return the ``Systems`` of ``orbits.binaries.Binaries()``, with tensors."""
        u = self.uniforms(indices, 8).T
        planet, star, axis, eccentricity = _binary(u[0], u[1], u[2], u[3])
        period = 1.0 / _frequency(axis, planet + star)
        fine_enough = binaries.is_well_sampled(self.dts, period[:, None])
        fields: dict[str, Any] = {
            "star_mass": star,
            "planet_mass": planet[:, None],
            "semi_major_axis": axis[:, None],
            "eccentricity": eccentricity[:, None],
            "periapsis": TURN * u[4, :, None],
            "mean_anomaly": TURN * u[5, :, None],
            "n_planets": torch.ones_like(indices),
            "centre_of_mass": 0.1 * _quantile(self.table, NORMAL, u[6:8].T),
            "dt_index": (fine_enough.sum(dim=1) - 1).clamp(min=0),
            "pinned_planet": torch.zeros_like(indices),
            "pinned_anomaly": torch.zeros_like(star),
            "coupling": torch.ones_like(star),
        }
        return Systems(**fields)

    def _exoplanets(self, indices: Tensor) -> Any:
        """Return the ``Systems`` of ``orbits.systems.exoplanets``, with tensors."""
        draws = self.uniforms(indices, N_SHARED + N_PER_PLANET * self.max_planets)
        u = draws[:, :N_SHARED].T
        v = draws[:, N_SHARED:].unflatten(1, (self.max_planets, N_PER_PLANET)).permute(2, 0, 1)
        star = _star_mass(self.table, u[0])
        planet, axis, eccentricity = _exoplanet(self.table, v[0], v[1], v[2])
        n_planets = 1 + (u[1] * self.max_planets).floor().long()
        there = torch.arange(self.max_planets, device=u.device) < n_planets[:, None]
        dt_index = (u[4] * len(self.dts)).floor().long()
        period = 1.0 / _frequency(axis, star[:, None] + planet)
        aliased = systems.is_aliased(self.dts[dt_index][:, None], period) & there
        fields: dict[str, Any] = {
            "star_mass": star,
            "planet_mass": planet,
            "semi_major_axis": axis,
            "eccentricity": eccentricity,
            "periapsis": TURN * v[3],
            "mean_anomaly": TURN * v[4],
            "n_planets": n_planets,
            "centre_of_mass": _quantile(self.table, NORMAL, u[2:4].T),
            "dt_index": torch.where(aliased.any(dim=1), 0, dt_index),
            "pinned_planet": (u[5] * n_planets).floor().long(),
            "pinned_anomaly": TURN * u[6],
            "coupling": torch.ones_like(star),
        }
        return Systems(**fields)

    def _observe(self, world: Any) -> Tensor:
        """Return the places of the bodies in turn, [N, n_points, 2] in AU.

        Every point is solved by itself, whatever the number of planets, so that all shapes are
        known beforehand. A single planet and its star share their distance by their masses; of
        several planets each takes all of its own, and the star rests.
        """
        star, n = world.star_mass[:, None], world.n_planets[:, None]
        total = star + world.planet_mass
        alone = n == 1
        elements = torch.stack(
            [
                world.mean_anomaly * PER_TURN,
                _frequency(world.semi_major_axis, total),
                world.semi_major_axis,
                world.eccentricity,
                *_cos_sin(world.periapsis),
                torch.where(alone, star / total, 1.0),
            ]
        )
        pinned = world.pinned_planet[:, None]
        reflex = world.planet_mass / total
        _, _, *shape, _ = elements.gather(2, pinned.expand(len(elements), -1, -1))
        x, y = _relative(world.pinned_anomaly[:, None] * PER_TURN, *shape)
        offset = torch.cat([x, y], dim=1) * torch.where(alone, 0.0, reflex.gather(1, pinned))
        place = (world.centre_of_mass - offset).to(self.dtype)

        step = torch.div(self.row, n + 1, rounding_mode="floor")
        body = self.row - step * (n + 1)
        is_star = body == n
        planet = torch.where(is_star, 0, body)
        phase, per_year, *shape, share = elements.gather(2, planet.expand(len(elements), -1, -1))
        turns = phase + self.dts[world.dt_index][:, None] * step * per_year
        turns = turns - torch.floor(turns + 0.5)  # before precision is given up
        *shape, share = (x.to(self.dtype) for x in (*shape, share))
        x, y = _relative(turns.to(self.dtype), *shape)
        return torch.stack(
            [
                torch.where(is_star, share * axis - axis, share * axis) + place[:, i : i + 1]
                for i, axis in enumerate((x, y))
            ],
            dim=-1,
        )


def _relative(turns: Tensor, a: Tensor, e: Tensor, *towards: Tensor) -> tuple[Tensor, Tensor]:
    """Return the planet's place relative to the star, as in ``kepler.relative_orbit``."""
    cosine, sine = _anomaly_cos_sin(turns, e)
    minor = a * torch.sqrt((1.0 - e) * (1.0 + e))
    return kepler.rotated(a * (cosine - e), minor * sine, *towards)


_SAMPLERS = {"identifiable": DeviceOrbits._identifiable, "exoplanets": DeviceOrbits._exoplanets}


def is_made_on_device(protocol: Protocol) -> bool:
    """Return whether :class:`DeviceOrbits` makes a protocol's sequences."""
    return protocol.sampler in _SAMPLERS and protocol.law == NEWTON and protocol.shift is None
