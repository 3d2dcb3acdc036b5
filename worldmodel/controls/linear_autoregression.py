"""The linear control of world models: the next point as a linear map of the last dozen.

188 weights by ridge regression in closed form; no mass, no law, no time step. What it can do needs
no knowledge of dynamics beyond a linear filter of places.
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
    """Next points of a planet and its star, fitted to training sequences of a protocol.

    A step's inputs are, with the last points as origin, the 11 points before of both bodies, and
    the last planet - star; the star's also hold the planet's new point, which is observed first.
    Its prediction is the displacement from the body's last point.

    Args:
        protocol: Protocol, or a mixture of worlds; one planet and its star take turns.
        seed: Seed of the data, as training takes it.
        steps: Time steps that it looks back; the numbers above are those of 12.

    Raises:
        ValueError: The protocol's systems have several planets, or its sequences are too short.
    """

    def __init__(self, protocol: Protocol | Mixture, seed: int, steps: int = STEPS) -> None:
        if reason := refusal(protocol, steps):
            raise ValueError(reason)
        self.steps = steps
        data = protocol.batch(seed, "train", np.arange(N_SEQUENCES), "pretrain")
        seen, true = _places(protocol.tokens.decode(data["tokens"][:, 1:])), data["coordinates"]
        planet, star = np.moveaxis(_places(true[:, 1:]), 2, 0)  # each [N, S, 2]
        asked = range(steps, seen.shape[1])
        past = np.concatenate([_features(seen[:, s - steps : s]) for s in asked])
        last = np.concatenate([seen[:, s - 1] for s in asked])
        to_planet, to_star = (np.concatenate([x[:, s] for s in asked]) for x in (planet, star))
        new = np.concatenate([seen[:, s, 0] for s in asked]) - last[:, 0]
        ridge = Ridge(STRENGTH, fit_intercept=False)
        self.planet = ridge.fit(past, to_planet - last[:, 0]).coef_.T
        self.star = ridge.fit(np.hstack([past, new]), to_star - last[:, 1]).coef_.T

    def next_points(self, points: Array) -> Array:
        """Return the expected place at each row given all rows before, [N, T, 2] in AU.

        Args:
            points: Observed places in AU, [N, T, 2]: the time-step row, then planet and star in
                turn. NaN is returned where fewer steps were observed before than it looks back.
        """
        seen, expected = _places(points[:, 1:]), np.full(points.shape, np.nan)
        for s in range(self.steps, seen.shape[1]):
            planet, star = self._step(seen[:, s - self.steps : s], seen[:, s, 0])
            expected[:, 1 + 2 * s], expected[:, 2 + 2 * s] = planet, star
        return expected

    def rollout(self, points: Array, n_prompt: int) -> Array:
        """Return a prompt and its continuation by the control's own predictions, [N, T, 2] in AU.

        Args:
            points: Observed places in AU, [N, T, 2].
            n_prompt: Rows of the prompt; at least as many steps as it looks back.
        """
        rolled = points.copy()
        for row in range(n_prompt, points.shape[1]):  # planets stand in odd rows
            step = (row - 1) // 2
            past = _places(rolled[:, 1 : 1 + 2 * step])[:, -self.steps :]
            planet = None if row % 2 else rolled[:, row - 1]
            rolled[:, row] = self._step(past, planet)[1 - row % 2]
        return rolled

    def _step(self, past: Array, planet: Array | None) -> tuple[Array, Array]:
        """Return both bodies' next points after [N, S, 2, 2]; the star's after the planet's."""
        features, last = _features(past), past[:, -1]
        expected = last[:, 0] + features @ self.planet
        new = (expected if planet is None else planet) - last[:, 0]
        return expected, last[:, 1] + np.hstack([features, new]) @ self.star


@functools.lru_cache(maxsize=4)
def linear_autoregression(protocol: Protocol | Mixture, seed: int = 0) -> LinearAutoregression:
    """Return the control of a protocol, fitted once."""
    return LinearAutoregression(protocol, seed)


def refusal(protocol: Protocol | Mixture, steps: int = STEPS) -> str | None:
    """Return why a protocol's sequences have no such control, or None."""
    if protocol.max_planets != 1:
        return f"a linear autoregression needs one planet, {protocol.name!r} has several"
    if protocol.n_points // 2 < 2 * steps:
        return f"a linear autoregression needs n_points >= {4 * steps}, got {protocol.n_points}"
    return None


def _places(rows: Array) -> Array:
    """Return rows [N, 2 S, 2] that take turns as [N, S, bodies, 2]."""
    steps = rows.shape[1] // 2
    return rows[:, : 2 * steps].reshape(len(rows), steps, 2, 2)


def _features(past: Array) -> Array:
    """Return the inputs of [N, S, bodies, 2], 46 of 12 steps."""
    before = past[:, :-1] - past[:, -1:]
    return np.hstack([before.reshape(len(past), -1), past[:, -1, 0] - past[:, -1, 1]])
