"""The linear control of world models: the next point as a linear map of the last dozen.

Of two bodies 188 weights by ridge regression in closed form; no mass, no law, no time step. What it
can do needs no knowledge of dynamics beyond a linear filter of places.
"""

from __future__ import annotations

import functools

import numpy as np
from sklearn.linear_model import Ridge

from orbits.arithmetic import Array
from orbits.mixture import Mixture
from orbits.protocols import Protocol

STEPS = 12
"""Past time steps in the regression."""
N_SEQUENCES = 1000
STRENGTH = 0.1
"""Penalty of the ridge regression, in AU^2."""


class LinearAutoregression:
    """Next points of planets and their star, fitted to training sequences of a protocol.

    A step's inputs are, with the last points as origin, the 11 points before of all bodies, and
    the last planets - star; a body's also hold the new points of those that are observed before
    it. Its prediction is the displacement from the body's last point.

    Args:
        protocol: Protocol, or a mixture of worlds; as many bodies take turns in all sequences.
        seed: Seed of the data, as training takes it.
        steps: Time steps that it looks back; the numbers above are those of 12.

    Raises:
        ValueError: The protocol's systems have unlike numbers of planets, or its sequences are too
            short.
    """

    def __init__(self, protocol: Protocol | Mixture, seed: int, steps: int = STEPS) -> None:
        if reason := refusal(protocol, steps):
            raise ValueError(reason)
        assert protocol.n_bodies is not None  # else it was refused
        self.steps, self.bodies = steps, protocol.n_bodies
        data = protocol.batch(seed, "train", np.arange(N_SEQUENCES), "pretrain")
        seen = self._places(protocol.tokens.decode(data["tokens"][:, 1:]))
        true = self._places(data["coordinates"][:, 1:])
        asked = range(steps, seen.shape[1])
        inputs = np.concatenate([_features(seen[:, s - steps : s]) for s in asked])
        last = np.concatenate([seen[:, s - 1] for s in asked])
        moved, new = (np.concatenate([x[:, s] for s in asked]) - last for x in (true, seen))
        self.weights = []
        for body in range(self.bodies):
            fitted = Ridge(STRENGTH, fit_intercept=False).fit(inputs, moved[:, body])
            self.weights.append(fitted.coef_.T)
            inputs = np.hstack([inputs, new[:, body]])

    def next_points(self, points: Array) -> Array:
        """Return the expected place at each row given all rows before, [N, T, 2] in AU.

        Args:
            points: Observed places in AU, [N, T, 2]: the time-step row, then planets and star in
                turn. NaN is returned where fewer steps were observed before than it looks back.
        """
        seen, expected = self._places(points[:, 1:]), np.full(points.shape, np.nan)
        for s in range(self.steps, seen.shape[1]):
            rows = slice(1 + self.bodies * s, 1 + self.bodies * (s + 1))
            expected[:, rows] = self._step(seen[:, s - self.steps : s], seen[:, s])
        return expected

    def rollout(self, points: Array, n_prompt: int) -> Array:
        """Return a prompt and its continuation by the control's own predictions, [N, T, 2] in AU.

        Args:
            points: Observed places in AU, [N, T, 2].
            n_prompt: Rows of the prompt; at least as many steps as it looks back.
        """
        rolled = points.copy()
        for row in range(n_prompt, points.shape[1]):
            step, body = divmod(row - 1, self.bodies)
            begun = 1 + self.bodies * step
            past = self._places(rolled[:, 1:begun])[:, -self.steps :]
            rolled[:, row] = self._step(past, rolled[:, begun:row])[:, body]
        return rolled

    def _step(self, past: Array, new: Array) -> Array:
        """Return the next points of all bodies [N, B, 2] after [N, S, B, 2].

        Args:
            past: The steps before.
            new: Points of the first bodies that are observed by now, [N, any, 2]; of others what
                is expected takes their place.
        """
        inputs, last = _features(past), past[:, -1]
        expected = np.empty_like(last)
        for body, weights in enumerate(self.weights):
            expected[:, body] = last[:, body] + inputs @ weights
            seen = new[:, body] if body < new.shape[1] else expected[:, body]
            inputs = np.hstack([inputs, seen - last[:, body]])
        return expected

    def _places(self, rows: Array) -> Array:
        """Return rows [N, bodies S, 2] that take turns as [N, S, bodies, 2]."""
        steps = rows.shape[1] // self.bodies
        return rows[:, : self.bodies * steps].reshape(len(rows), steps, self.bodies, 2)


@functools.lru_cache(maxsize=4)
def linear_autoregression(protocol: Protocol | Mixture, seed: int = 0) -> LinearAutoregression:
    """Return the control of a protocol, fitted once."""
    return LinearAutoregression(protocol, seed)


def refusal(protocol: Protocol | Mixture, steps: int = STEPS) -> str | None:
    """Return why a protocol's sequences have no such control, or None."""
    if (bodies := protocol.n_bodies) is None:
        return (
            f"a linear autoregression needs one planet, or as many in all systems; "
            f"{protocol.name!r} has 1 to {protocol.max_planets}"
        )
    if protocol.n_points // bodies < 2 * steps:
        least = 2 * bodies * steps
        return f"a linear autoregression needs n_points >= {least}, got {protocol.n_points}"
    return None


def _features(past: Array) -> Array:
    """Return the inputs of [N, S, bodies, 2]; of two bodies 46 of 12 steps."""
    before, last = past[:, :-1] - past[:, -1:], past[:, -1]
    apart = last[:, :-1] - last[:, -1:]
    return np.hstack([before.reshape(len(past), -1), apart.reshape(len(past), -1)])
