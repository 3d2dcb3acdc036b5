"""One step as after the most similar pieces of training orbits: memory of orbits, without a law.

:mod:`worldmodel.controls.orbit_table` continues a prompt by one orbit, pasted where it fits the
past best; of a single step that misfit is most of the error. Here each body goes on from its last
place, by the mean displacement of several pieces. Six steps and five pieces missed least of six
pairs that were tried on 40 validation sequences of the flagship's world (4 to 8 steps, 5 or 20).
"""

from __future__ import annotations

import functools

import numpy as np
from scipy.spatial import cKDTree

from orbits.arithmetic import Array
from orbits.protocols import Protocol
from worldmodel.controls.orbit_table import Complex, as_complex, orbit_table

STEPS, NEAREST = 6, 5
"""Past steps that are compared, and pieces of which the mean is taken."""
MOST = 1_200_000
"""Pieces that are kept, of the first orbits."""


class OrbitPieces:
    """Steps of training orbits of one planet and its star, by the places before each.

    Pieces are compared in one pose, so that moved, turned or scaled orbits are the same.

    Args:
        protocol: Protocol of the training world.
        seed: Seed of the data, as training takes it.
        orbits: Places of training sequences, [N, steps, bodies]; else those of the table.

    Raises:
        ValueError: Systems have several planets, or sequences are too short.
    """

    def __init__(self, protocol: Protocol, seed: int, orbits: Complex | None = None) -> None:
        if protocol.n_bodies != 2:
            raise ValueError(f"pieces of orbits need one planet, {protocol.name!r} has several")
        table = orbit_table(protocol, seed).orbits if orbits is None else orbits
        steps = range(STEPS, table.shape[1])
        pieces = _pieces(table[: MOST // len(steps)], steps)
        self._of_body = [_Steps(pieces[:, : 2 * STEPS + body + 1]) for body in range(2)]

    def next_points(self, points: Array) -> Array:
        """Return the expected place at each row given those before, [N, T, 2] in AU.

        The second body is told the first one's new place, as a model is. NaN where fewer steps
        were observed than are compared.
        """
        places = as_complex(points)
        pieces = _pieces(places, range(STEPS, places.shape[1]))
        expected = np.full(points.shape, np.nan)
        for body, steps in enumerate(self._of_body):
            found = steps.after(pieces[:, : 2 * STEPS + body])
            by_row = found.reshape(-1, len(points)).T
            rows = slice(1 + 2 * STEPS + body, 1 + 2 * places.shape[1], 2)
            expected[:, rows] = np.stack([by_row.real, by_row.imag], axis=-1)
        return expected

    def rollout(self, points: Array, n_prompt: int) -> Array:
        """Return prompts and their continuations step by step, [N, T, 2] in AU.

        Args:
            points: Observed places in AU, [N, T, 2].
            n_prompt: Rows of the prompt, an odd number; at least as many steps as are compared.

        Raises:
            ValueError: The prompt has fewer steps.
        """
        first = (n_prompt - 1) // 2
        if first < STEPS:
            raise ValueError(f"a prompt of {first} steps has no piece of {STEPS}")
        places = as_complex(points).copy()
        for step in range(first, places.shape[1]):
            past = places[:, step - STEPS : step].reshape(len(places), -1)
            places[:, step, 0] = self._of_body[0].after(past)
            places[:, step, 1] = self._of_body[1].after(np.hstack([past, places[:, step, :1]]))
        ahead = places[:, first:].reshape(len(places), -1)
        rolled, rows = points.copy(), slice(n_prompt, n_prompt + ahead.shape[1])
        rolled[:, rows] = np.stack([ahead.real, ahead.imag], axis=-1)
        return rolled


class _Steps:
    """Pieces [M, P + 1], the last place of which is a step from the last but two, its body's."""

    def __init__(self, pieces: Complex) -> None:
        keys, unit = _posed(pieces[:, :-1])
        self._keys = cKDTree(keys)
        self._moved = (pieces[:, -1] - pieces[:, -3]) / unit

    def after(self, pasts: Complex) -> Complex:
        """Return the place after each of the pasts [N, P]."""
        keys, unit = _posed(pasts)
        _, alike = self._keys.query(keys, k=range(1, min(NEAREST, len(self._moved)) + 1))
        return pasts[:, -2] + unit * self._moved[alike].mean(axis=1)


@functools.lru_cache(maxsize=1)
def orbit_pieces(protocol: Protocol, seed: int = 0) -> OrbitPieces:
    """Return the pieces of a protocol's training orbits, the same ones when asked again."""
    return OrbitPieces(protocol, seed)


def _pieces(places: Complex, steps: range) -> Complex:
    """Return places of the steps before each of some steps and at it, [N steps, places]."""
    return np.concatenate([places[:, s - STEPS : s + 1].reshape(len(places), -1) for s in steps])


def _posed(pieces: Complex) -> tuple[Array, Complex]:
    """Return pieces [N, P] in one pose, as [N, 2 P], and the unit of each pose.

    Their middle is at 0, their size is 1, and the first body goes along the x axis on the whole.
    """
    centred = pieces - pieces.mean(axis=1, keepdims=True)
    way = pieces[:, 2 * ((pieces.shape[1] - 1) // 2)] - pieces[:, 0]
    unit = np.linalg.norm(centred, axis=1) * np.exp(1j * np.angle(way))
    return (centred / unit[:, None]).view(np.float64), unit
