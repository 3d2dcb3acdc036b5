"""A table of training orbits: each prompt is continued as the most similar orbit in it.

What it can do needs no law, only memory: each answer is a piece of a true orbit of its training
world, moved, turned and scaled as a whole so that its past fits the prompt best. A piece of an
orbit obeys its world's law wherever it is pasted, so this control says how much of what a world
model does could be memory of orbits.
"""

from __future__ import annotations

import functools

import numpy as np
import numpy.typing as npt

from orbits.arithmetic import Array
from orbits.mixture import Mixture
from orbits.protocols import Protocol

STEPS = 12
"""Past time steps of all bodies that are compared."""
N_SEQUENCES = 20_000
CHUNK = 200
"""Prompts that are looked up at once."""

Complex = npt.NDArray[np.complex128]


class OrbitTable:
    """Training orbits of a protocol, of as many bodies each.

    Places are complex numbers, x + iy, so that z q + b is a turn, a scaling and a shift of q.

    Args:
        protocol: Protocol of the training world, or a mixture of worlds.
        seed: Seed of the data, as training takes it.
        n_sequences: Training sequences that are kept.
        steps: Time steps of the past that are compared, of all bodies.
        nearest: Orbits of which the mean is taken, the most similar ones.

    Raises:
        ValueError: Systems have unlike numbers of planets, or sequences are too short.
    """

    def __init__(
        self,
        protocol: Protocol | Mixture,
        seed: int,
        n_sequences: int = N_SEQUENCES,
        steps: int = STEPS,
        nearest: int = 1,
    ) -> None:
        bodies = protocol.n_bodies
        if bodies is None or protocol.n_points < 2 * bodies * steps:
            raise ValueError(
                f"a table of orbits needs as many bodies in all systems and {2 * steps} points of "
                f"each, protocol {protocol.name!r} has 1 to {protocol.max_planets} planets and "
                f"n_points={protocol.n_points}"
            )
        self.steps, self.nearest, self.bodies = steps, min(nearest, n_sequences), bodies
        batch = protocol.batch(seed, "train", np.arange(n_sequences), "pretrain")
        self.orbits = as_complex(batch["coordinates"], bodies)

    def rollout(self, points: Array, n_prompt: int) -> Array:
        """Return prompts and their continuations, [N, T, 2] in AU.

        Args:
            points: Observed places in AU, [N, T, 2].
            n_prompt: Rows of the prompt, of whole steps; at least as many as are compared.
        """
        rolled, first = points.copy(), (n_prompt - 1) // self.bodies
        places, table = as_complex(points, self.bodies), self.orbits
        rows = slice(1 + self.bodies * first, 1 + self.bodies * places.shape[1])
        past, ahead = places[:, first - self.steps : first], places.shape[1] - first
        before, after = table[:, : self.steps], table[:, self.steps : self.steps + ahead]
        found = _continued(past, before, after, self.nearest)
        rolled[:, rows] = np.stack([found.real, found.imag], axis=-1).reshape(len(points), -1, 2)
        return rolled

    def next_points(self, points: Array) -> Array:
        """Return the expected place at each row given the steps before, [N, T, 2] in AU.

        NaN where fewer steps were observed before than are compared. A quarter of the table is
        looked up here, from every step on.
        """
        table = self.orbits[: max(len(self.orbits) // 4, 1)]
        steps = self.steps
        starts = range(table.shape[1] - steps)
        pieces = np.concatenate([table[:, s : s + steps + 1] for s in starts])
        expected = np.full(points.shape, np.nan)
        places = as_complex(points, self.bodies)
        for s in range(steps, places.shape[1]):
            past = places[:, s - steps : s]
            found = _continued(past, pieces[:, :steps], pieces[:, steps:], self.nearest)[:, 0]
            expected[:, 1 + self.bodies * s : 1 + self.bodies * (s + 1)] = np.stack(
                [found.real, found.imag], axis=-1
            )
        return expected


@functools.lru_cache(maxsize=2)
def orbit_table(protocol: Protocol | Mixture, seed: int = 0) -> OrbitTable:
    """Return the table of a protocol, made once."""
    return OrbitTable(protocol, seed)


def as_complex(rows: Array, bodies: int = 2) -> Complex:
    """Return rows [N, 1 + bodies S, 2] that take turns as complex places [N, S, bodies]."""
    steps = (rows.shape[1] - 1) // bodies
    places = rows[:, 1 : 1 + bodies * steps].reshape(len(rows), steps, bodies, 2)
    return places[..., 0] + 1j * places[..., 1]


def _continued(past: Complex, before: Complex, after: Complex, nearest: int) -> Complex:
    """Return [N, A, bodies] for pasts [N, P, bodies] by a table's [M, P and A, bodies]."""
    own, own_middle = _centred(past)
    keys, middle = _centred(before)
    length = np.linalg.norm(keys, axis=1)
    # Of the best similarity, the squared misfit is |p|^2 - |<q, p>|^2 / |q|^2.
    lookup = (keys / length[:, None]).conj().T.astype(np.complex64)
    found = []
    for start in range(0, len(own), CHUNK):
        some = own[start : start + CHUNK]
        alike = np.abs(some.astype(np.complex64) @ lookup)
        best = np.argpartition(alike, -nearest, axis=1)[:, -nearest:]  # [N, nearest]
        turn = np.sum(keys[best].conj() * some[:, None], axis=2) / length[best] ** 2
        piece = after[best] - middle[best][..., None, None]
        mean = np.mean(turn[..., None, None] * piece, axis=1)
        found.append(mean + own_middle[start : start + CHUNK, None, None])
    return np.concatenate(found)


def _centred(pieces: Complex) -> tuple[Complex, Complex]:
    """Return pieces as rows about their middles, and these middles."""
    flat = pieces.reshape(len(pieces), -1)
    middle = flat.mean(axis=1)
    return flat - middle[:, None], middle
