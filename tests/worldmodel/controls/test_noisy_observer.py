"""The observer of orbits through noise: its closed form, its limits, its refusals."""

import dataclasses

import numpy as np
import pytest

from orbits import protocols
from worldmodel.controls.noisy_observer import NoisyObserver

PROTOCOL = protocols.get("identifiable", {"n_points": 24})


def prompts(n=6, start=0):
    batch = PROTOCOL.batch(0, "train", np.arange(start, start + n), "pretrain")
    return batch["coordinates"].astype(float), batch["tokens"][:, 0, 0]


def test_the_mean_over_turns_is_that_of_an_integral():
    """By hand: every piece of every orbit, turned by each of many angles, by its likelihood."""
    noise, n = 0.3, 4
    points, dt = prompts()
    observer = NoisyObserver(PROTOCOL, noise, n, n_sequences=6)
    found = observer.rollout(points, 13, dt)
    known = points[..., 0] + 1j * points[..., 1]
    past = known[0, 13 - n : 13]
    turns = np.exp(2j * np.pi * np.arange(720) / 720)
    total = weights = 0
    for orbit in known[dt == dt[0]]:
        for end in range(1 + n, 25):
            if end % 2 == 1:  # a planet, as row 13
                turned = turns[:, None] * orbit[end - n : end]
                likely = np.exp(-np.sum(np.abs(past - turned) ** 2, axis=1) / (2 * noise**2))
                total += np.sum(likely * turns * orbit[end])
                weights += likely.sum()
    expected = total / weights
    assert found[0, 13] == pytest.approx([expected.real, expected.imag], abs=1e-9)


def test_without_much_noise_he_finds_the_orbit_that_he_knows():
    points, dt = prompts()
    found = NoisyObserver(PROTOCOL, 0.001, 6, n_sequences=6).rollout(points, 13, dt)
    assert np.allclose(found, points, atol=1e-6)
    assert np.array_equal(found[:, :13], points[:, :13])


def test_a_turned_prompt_has_the_turned_answer():
    points, dt = prompts(start=100)
    turn = np.array([[0.6, -0.8], [0.8, 0.6]])
    observer = NoisyObserver(PROTOCOL, 0.1, 5, n_sequences=200)
    once, again = (observer.rollout(x, 13, dt) for x in (points, points @ turn.T))
    assert np.allclose(once @ turn.T, again, atol=1e-9)


def test_what_he_cannot_see_is_refused():
    several = dataclasses.replace(protocols.get("fixed"), n_points=24)
    for protocol, noise, rows, message in (
        (several, 0.1, 5, "needs one planet"),
        (PROTOCOL, 0.1, 24, "an observer of 24 rows needs"),
        (PROTOCOL, 0.0, 5, "noise must be more than 0 AU, got 0"),
    ):
        with pytest.raises(ValueError, match=message):
            NoisyObserver(protocol, noise, rows, n_sequences=2)
    points, dt = prompts()
    with pytest.raises(ValueError, match="none has time step 9; give more"):
        NoisyObserver(PROTOCOL, 0.1, 6, n_sequences=2).rollout(points, 13, 0 * dt + 9)
    with pytest.raises(ValueError, match="a prompt of 4 rows is less than 6"):
        NoisyObserver(PROTOCOL, 0.1, 6, n_sequences=2).rollout(points, 5, dt)
