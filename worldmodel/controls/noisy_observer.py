"""An observer who holds a law, and sees few places through noise: what is his best guess?

A model that learns the mean of the next place, from noisy places through a short window, could do
no better than the posterior mean over the orbits of its world. This is it as far as some thousand
orbits stand for all: where the noise leaves hundreds of them alike (0.1 AU and five rows), and not
where it leaves one or two (0.01 AU), of which he would paste the nearest. Each orbit that this
observer considers obeys the law exactly; the mean over those that he cannot tell apart need not. So
where his continuations leave the law, those of a model that does the same say nothing against its
law.

He knows training orbits, each as if it might be turned by any angle, and the time step. Of the last
rows, as complex numbers q, an orbit's rows x have the likelihood exp(-|q - e^(i t) x|^2 / 2 s^2);
the mean over the turn t has a closed form in Bessel functions (of a von Mises distribution).
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.special import i0e, i1e

from orbits.arithmetic import Array
from orbits.protocols import Protocol

N_SEQUENCES = 4000
CHUNK = 20
"""Prompts that are compared at once."""

Complex = npt.NDArray[np.complexfloating]


class NoisyObserver:
    """Training orbits of a protocol of one planet and its star, and what is believed of the rows.

    Args:
        protocol: Protocol of the training world.
        noise: Standard deviation in AU of the noise that he believes each coordinate to have.
        n_rows: Last rows that he sees, of planet and star in turn.
        seed: Seed of the data, as training takes it.
        n_sequences: Training sequences that he knows.

    Raises:
        ValueError: Systems have several planets, sequences are too short, or there is no noise.
    """

    def __init__(
        self,
        protocol: Protocol,
        noise: float,
        n_rows: int,
        seed: int = 0,
        n_sequences: int = N_SEQUENCES,
    ) -> None:
        if protocol.max_planets != 1 or not 0 < n_rows < protocol.n_points:
            raise ValueError(
                f"an observer of {n_rows} rows needs one planet and more points, protocol "
                f"{protocol.name!r} has {protocol.max_planets} and {protocol.n_points}"
            )
        if not noise > 0:
            raise ValueError(f"noise must be more than 0 AU, got {noise:g}")
        self.noise, self.n_rows = noise, n_rows
        batch = protocol.batch(seed, "train", np.arange(n_sequences), "pretrain")
        self._dt = batch["tokens"][:, 0, 0]
        self._places = _complex(batch["coordinates"])

    def rollout(self, points: Array, n_prompt: int, dt: npt.NDArray[np.integer]) -> Array:
        """Return prompts and their continuations by his own guesses, [N, T, 2] in AU.

        Args:
            points: Places in AU, [N, T, 2].
            n_prompt: Rows of the prompt, with that of the time step.
            dt: The token of the time step of each, [N].

        Raises:
            ValueError: The prompt is shorter than what he sees.
        """
        if n_prompt <= self.n_rows:
            raise ValueError(f"a prompt of {n_prompt - 1} rows is less than {self.n_rows}")
        places = _complex(points)
        for row in range(n_prompt, places.shape[1]):
            past = places[:, row - self.n_rows : row]
            for step in np.unique(dt):
                alike = dt == step
                places[alike, row] = self._guess(past[alike], row % 2, step)
        return np.stack([places.real, places.imag], axis=-1)

    def _guess(self, past: Complex, parity: int, step: int) -> Complex:
        """Return the posterior mean of the next place, [N]; planets have odd rows, stars even."""
        before, after = self._pieces(parity, step)
        size = np.sum(np.abs(before) ** 2, axis=1) / (2 * self.noise**2)
        found = []
        for start in range(0, len(past), CHUNK):
            product = past[start : start + CHUNK] @ before.conj().T
            length = np.abs(product)
            a = length / self.noise**2
            flat = i0e(a)
            logs = np.log(flat) + a - size
            weight = np.exp(logs - logs.max(axis=1, keepdims=True))
            turn = i1e(a) / flat * product / np.maximum(length, np.finfo(float).tiny)
            found.append((weight * turn) @ after / weight.sum(axis=1))
        return np.concatenate(found)

    def _pieces(self, parity: int, step: int) -> tuple[Complex, Complex]:
        """Return rows [M, n_rows] of orbits with a time step, and the row after each, [M]."""
        orbits, n = self._places[self._dt == step], self.n_rows
        ends = [row for row in range(1 + n, orbits.shape[1]) if row % 2 == parity]
        if not len(orbits):
            raise ValueError(f"of the orbits that he knows none has time step {step}; give more")
        before = np.concatenate([orbits[:, end - n : end] for end in ends])
        return before, np.concatenate([orbits[:, end] for end in ends])


def _complex(points: Array) -> npt.NDArray[np.complex128]:
    """Return rows [N, T, 2] as complex places [N, T]."""
    return np.asarray(points[..., 0] + 1j * points[..., 1], np.complex128)
