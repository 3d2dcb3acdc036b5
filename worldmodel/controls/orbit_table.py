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
"""Past time steps of both bodies that are compared."""
N_SEQUENCES = 20_000
CHUNK = 200
"""Prompts that are looked up at once."""

Complex = npt.NDArray[np.complex128]


class OrbitTable:
    """Training orbits of a protocol of one planet and its star.

    Places are complex numbers, x + iy, so that z q + b is a turn, a scaling and a shift of q.

    Args:
        protocol: Protocol of the training world, or a mixture of worlds.
        seed: Seed of the data, as training takes it.
        n_sequences: Training sequences that are kept.
        steps: Time steps of the past that are compared, of both bodies.
        nearest: Orbits of which the mean is taken, the most similar ones.

    Raises:
        ValueError: Systems have several planets, or sequences are too short.
    """

    def __init__(
        self,
        protocol: Protocol | Mixture,
        seed: int,
        n_sequences: int = N_SEQUENCES,
        steps: int = STEPS,
        nearest: int = 1,
    ) -> None:
        if protocol.max_planets != 1 or protocol.n_points < 4 * steps:
            raise ValueError(
                f"a table of orbits needs one planet and n_points >= {4 * steps}, protocol "
                f"{protocol.name!r} has {protocol.max_planets} and {protocol.n_points}"
            )
        self.steps, self.nearest = steps, min(nearest, n_sequences)
        batch = protocol.batch(seed, "train", np.arange(n_sequences), "pretrain")
        self.orbits = as_complex(batch["coordinates"])

    def rollout(self, points: Array, n_prompt: int) -> Array:
        """Return prompts and their continuations, [N, T, 2] in AU.

        Args:
            points: Observed places in AU, [N, T, 2].
            n_prompt: Rows of the prompt, an odd number; at least as many steps as are compared.
        """
        rolled, first = points.copy(), (n_prompt - 1) // 2
        rows = slice(1 + 2 * first, 1 + 2 * (points.shape[1] // 2))
        past, table = as_complex(points)[:, first - self.steps : first], self.orbits
        ahead = points.shape[1] // 2 - first
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
        places = as_complex(points)
        for s in range(steps, places.shape[1]):
            past = places[:, s - steps : s]
            found = _continued(past, pieces[:, :steps], pieces[:, steps:], self.nearest)[:, 0]
            expected[:, 1 + 2 * s : 3 + 2 * s] = np.stack([found.real, found.imag], axis=-1)
        return expected


@functools.lru_cache(maxsize=2)
def orbit_table(protocol: Protocol | Mixture, seed: int = 0) -> OrbitTable:
    """Return the table of a protocol, made once."""
    return OrbitTable(protocol, seed)


def as_complex(rows: Array) -> Complex:
    """Return rows [N, 1 + 2 S, 2] that take turns as complex places [N, S, bodies]."""
    steps = (rows.shape[1] - 1) // 2
    both = rows[:, 1 : 1 + 2 * steps].reshape(len(rows), steps, 2, 2)
    return both[..., 0] + 1j * both[..., 1]


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
