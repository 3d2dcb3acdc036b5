"""References of the question: the truth, an orbit fit, and continuations without any law."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from orbits.arithmetic import Array
from orbits.ceiling import fit
from orbits.mixture import Mixture
from orbits.protocols import Protocol
from worldmodel.controls.linear_autoregression import linear_autoregression, refusal
from worldmodel.controls.names import (
    BELIEVER,
    CUBIC,
    FILTER,
    FIT,
    IN_BINS,
    PIECES,
    QUADRATIC,
    STRAIGHT,
    TABLE,
    TRUE,
)
from worldmodel.controls.orbit_pieces import orbit_pieces
from worldmodel.controls.orbit_table import orbit_table
from worldmodel.probes.motion.held_out import HeldOutSystems, fitted_next

Named = tuple[str, str, Array]
"""Variant, arm and rows [N, T, 2] in AU."""
_CUBIC, _QUADRATIC, _STRAIGHT = (-1, 4, -6, 4), (1, -3, 3), (-1, 2)
"""Weights of a body's last places, oldest first: the curve through them."""


def truths(test: HeldOutSystems) -> Iterator[Named]:
    """Yield the truth and the truth to within a bin."""
    yield TRUE, "oracle", test.batch["coordinates"]
    yield IN_BINS, "oracle", test.observed


def continuations(test: HeldOutSystems, trained_on: Protocol) -> Iterator[Named]:
    """Yield continuations of prompts.

    Args:
        test: The prompts; the orbit fit knows their law.
        trained_on: The world of the linear filter and of the table of orbits.
    """
    yield FIT, "ceiling", orbit_fit(test)
    yield CUBIC, "control", cubic(test)
    yield from of_world(test, trained_on)


def of_world(test: HeldOutSystems, trained_on: Protocol | Mixture) -> Iterator[Named]:
    """Yield continuations by what learnt from sequences of a world without a law."""
    if refusal(trained_on) is None:
        rows = test.n_prompt
        rolled = linear_autoregression(trained_on).rollout(test.observed, rows)
        yield FILTER, "control", rolled
        yield TABLE, "control", orbit_table(trained_on).rollout(test.observed, rows)


def orbit_fit(test: HeldOutSystems, believed: str | None = None) -> Array:
    """Return prompts and the orbits that fit them best, by their own law or a believed one."""
    points, rows = test.observed.copy(), test.n_prompt
    found = fit(test.protocol, test.world, rows - 1, believed=believed)
    points[:, rows:] = found.points[:, rows - 1 :]
    return points


def cubic(test: HeldOutSystems) -> Array:
    """Return prompts of two bodies, and their continuations by each one's last four places."""
    assert test.protocol.n_bodies == 2, "of other worlds implied_law is refused"
    return _extrapolated(test.observed, test.n_prompt, _CUBIC)


def next_points(
    test: HeldOutSystems, fitted: HeldOutSystems, trained_on: Protocol | None = None
) -> Iterator[Named]:
    """Yield next places after what was observed before.

    Args:
        test: The systems.
        fitted: The first of them, whose orbits are fitted and whose pieces are looked up.
        trained_on: The world of the training, if they are of another one: its law is what one who
            fits orbits believes.
    """
    own = trained_on or test.protocol
    yield FIT, "ceiling", fitted_next(fitted)
    if own.law != test.protocol.law:
        yield BELIEVER, "control", fitted_next(fitted, believed=own.law)
    yield CUBIC, "control", _extrapolated(test.observed, None, _CUBIC)
    if refusal(own) is None:
        yield FILTER, "control", linear_autoregression(own).next_points(test.observed)
        yield TABLE, "control", orbit_table(own).next_points(test.observed)
        yield PIECES, "control", orbit_pieces(own).next_points(fitted.observed)


def shorter_extrapolations(test: HeldOutSystems) -> Iterator[Named]:
    """Yield next places by curves through fewer of a body's last places than the cubic."""
    yield QUADRATIC, "control", _extrapolated(test.observed, None, _QUADRATIC)
    yield STRAIGHT, "control", _extrapolated(test.observed, None, _STRAIGHT)


def _extrapolated(points: Array, n_prompt: int | None, weights: tuple[int, ...]) -> Array:
    """Return rows by the curve through a body's last places: observed, or its own from a row.

    Places far outside the box are cut: a curve that runs away has shown what it does.
    """
    expected = points.copy()
    source = points if n_prompt is None else expected
    for row in range(9 if n_prompt is None else n_prompt, points.shape[1]):
        last = source[:, row - 2 * len(weights) : row : 2]
        expected[:, row] = np.clip(np.einsum("nkc,k->nc", last, weights), -1e3, 1e3)
    return expected
