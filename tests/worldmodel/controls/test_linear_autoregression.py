"""The linear control: it sees the past alone and needs 188 weights."""

import numpy as np
import pytest

from orbits import protocols
from orbits.mixture import Mixture
from worldmodel.controls.linear_autoregression import LinearAutoregression, linear_autoregression
from worldmodel.probes.motion.held_out import HeldOutSystems


@pytest.fixture(scope="module")
def held():
    protocol = protocols.get("identifiable")
    return HeldOutSystems(protocol, protocol.systems(0, "test", np.arange(100)))


def test_it_sees_the_past_alone(held):
    control = linear_autoregression(held.protocol)
    answers = control.next_points(held.observed)
    later = held.observed.copy()
    later[:, 31:] += 5  # a planet's row, the 16th step's
    np.testing.assert_array_equal(control.next_points(later)[:, :32], answers[:, :32])
    assert np.all(np.isnan(answers[:, :25])), "twelve steps must have been seen"
    assert np.all(np.isfinite(answers[:, 25:]))


def test_a_rollout_is_its_next_points_fed_back(held):
    control = linear_autoregression(held.protocol)
    rolled = control.rollout(held.observed, held.n_prompt)
    np.testing.assert_array_equal(rolled[:, : held.n_prompt], held.observed[:, : held.n_prompt])
    np.testing.assert_allclose(
        control.next_points(rolled)[:, held.n_prompt :], rolled[:, held.n_prompt :], atol=1e-12
    )


def test_of_three_bodies_each_is_told_of_those_before_it():
    species = protocols.get("species")
    systems = HeldOutSystems(species, species.systems(0, "test", np.arange(20)))
    control, n_prompt = linear_autoregression(species), systems.n_prompt
    assert [len(weights) for weights in control.weights] == [70, 72, 74]
    answers = control.next_points(systems.observed)
    later = systems.observed.copy()
    later[:, 38:] += 5  # the second planet's row of the step after the prompt
    moved = control.next_points(later)
    np.testing.assert_array_equal(moved[:, 37:39], answers[:, 37:39])
    assert np.all(moved[:, 39] != answers[:, 39]), "the star is told of it"
    rolled = control.rollout(systems.observed, n_prompt)
    np.testing.assert_allclose(
        control.next_points(rolled)[:, n_prompt:], rolled[:, n_prompt:], atol=1e-12
    )


@pytest.mark.parametrize("n_points", [48, 49, 50, 51])
def test_a_rollout_is_of_every_row_after_its_prompt_and_of_no_other(n_points):
    protocol = protocols.get("identifiable", {"n_points": n_points})
    systems = HeldOutSystems(protocol, protocol.systems(0, "test", np.arange(5)))
    control, n_prompt = linear_autoregression(protocol), 1 + n_points // 2
    rolled = control.rollout(systems.observed, n_prompt)
    np.testing.assert_array_equal(rolled[:, :n_prompt], systems.observed[:, :n_prompt])
    assert np.all(rolled[:, n_prompt:] != systems.observed[:, n_prompt:])
    whole = 1 + n_points // 2 * 2  # rows of whole steps, which next_points answers
    told = control.next_points(rolled)[:, n_prompt:whole]
    np.testing.assert_allclose(told, rolled[:, n_prompt:whole], atol=1e-12)


def test_it_has_188_weights_and_knows_more_than_a_straight_line(held):
    control = linear_autoregression(held.protocol)
    assert control.weights[0].size + control.weights[1].size == 188
    error = held.errors(control.next_points(held.observed))
    assert np.nanmean(error["planet"]) < 0.04  # a straight line: 0.10


def test_a_shift_of_the_whole_world_shifts_its_answers(held):
    control = linear_autoregression(held.protocol)
    shift = np.array([0.5, -0.25])
    moved = control.next_points(held.observed + shift)
    answers = control.next_points(held.observed)
    np.testing.assert_allclose(moved[:, 25:], answers[:, 25:] + shift, atol=1e-12)


@pytest.mark.parametrize(
    ("name", "arguments", "message"),
    [("fixed", {}, "needs one planet"), ("identifiable", {"n_points": 32}, "n_points >= 48")],
)
def test_what_it_cannot_answer_is_refused(name, arguments, message):
    with pytest.raises(ValueError, match=message):
        LinearAutoregression(protocols.get(name, arguments), 0)


def test_it_looks_back_as_far_as_it_is_told_in_a_mixture_too(held):
    mixture = Mixture(protocols.get("neutral_step"), (-2.5, -1.5))
    control = LinearAutoregression(mixture, 0, steps=4)
    assert control.weights[0].shape == (2 * (4 * 3 + 2) // 2, 2)
    answers = control.next_points(held.observed)
    assert np.all(np.isnan(answers[:, :9]))
    assert np.all(np.isfinite(answers[:, 9:]))
    rolled = control.rollout(held.observed, 9)
    np.testing.assert_allclose(control.next_points(rolled)[:, 9:], rolled[:, 9:], atol=1e-12)
