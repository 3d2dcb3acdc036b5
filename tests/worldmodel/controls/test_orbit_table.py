"""The table of training orbits: exact on its own entries, and what it shows of a measure."""

import dataclasses

import numpy as np
import pytest

from orbits import protocols
from orbits.implied.pulls import of_path
from orbits.implied.within import within
from orbits.mixture import Mixture
from worldmodel.controls.orbit_table import OrbitTable

PROTOCOL = protocols.get("identifiable")


@pytest.fixture(scope="module")
def table():
    return OrbitTable(PROTOCOL, seed=0, n_sequences=2000)


def test_an_entry_goes_on_as_it_did_wherever_it_lies(table):
    own = PROTOCOL.batch(0, "train", [7, 1200], "pretrain")["coordinates"]
    turn = np.array([[0.6, -0.8], [0.8, 0.6]])
    moved = np.concatenate([own[:, :1], 0.7 * own[:, 1:] @ turn.T + [0.3, -0.2]], axis=1)
    prompt = moved.copy()
    prompt[:, 25:] = 9.0
    np.testing.assert_allclose(table.rollout(prompt, 25), moved, rtol=0, atol=1e-6)
    found = table.next_points(moved[:1])
    assert np.isnan(found[:, :25]).all()
    np.testing.assert_allclose(found[:, 25:], moved[:1, 25:], rtol=0, atol=1e-6)


def test_what_it_pastes_obeys_its_own_law_whatever_the_prompt(table):
    """The attack: the exponent of continuations does not tell a law from a table of orbits."""
    world = dataclasses.replace(PROTOCOL, law="power_1_5")
    batch = world.batch(0, "test", np.arange(60), "pretrain")
    rolled = table.rollout(batch["coordinates"], 25)
    pulls = of_path(rolled[:, 1::2] - rolled[:, 2::2], batch["dt"], 12)
    assert within(pulls).value == pytest.approx(-2, abs=0.02)
    error = np.linalg.norm(rolled - batch["coordinates"], axis=-1)
    assert error[:, 25:27].mean() > 0.03, "but it does not go on from where the prompt ends"


def test_the_mean_of_several_is_of_the_most_similar():
    prompt = PROTOCOL.batch(0, "test", np.arange(5), "pretrain")["coordinates"]
    one, three, everyone = (
        OrbitTable(PROTOCOL, seed=0, n_sequences=n, nearest=k)
        for n, k in ((40, 1), (40, 3), (3, 9))
    )
    misfit = [
        np.linalg.norm(each.rollout(prompt, 25) - prompt, axis=-1)[:, 25:] for each in (one, three)
    ]
    assert misfit[1].mean() < misfit[0].mean(), "errors of several orbits cancel in part"
    each = []
    for keep in range(3):
        single = OrbitTable(PROTOCOL, seed=0, n_sequences=3)
        single.orbits = single.orbits[keep : keep + 1]
        each.append(single.rollout(prompt, 25))
    np.testing.assert_allclose(everyone.rollout(prompt, 25), np.mean(each, axis=0), atol=1e-9)


def test_three_bodies_go_on_as_an_entry_did():
    species = protocols.get("species")
    table = OrbitTable(species, seed=0, n_sequences=30)
    own = species.batch(0, "train", [3, 17], "pretrain")["coordinates"]
    prompt = own.copy()
    prompt[:, 37:] = 9.0
    np.testing.assert_allclose(table.rollout(prompt, 37), own, rtol=0, atol=1e-6)
    np.testing.assert_allclose(table.next_points(own)[0, 37:61], own[0, 37:61], rtol=0, atol=0.2)


def test_protocols_without_such_a_table_are_refused():
    for protocol in (protocols.get("fixed"), dataclasses.replace(PROTOCOL, n_points=40)):
        with pytest.raises(ValueError, match="as many bodies in all systems and 24 points"):
            OrbitTable(protocol, seed=0)


def test_a_table_of_several_worlds_goes_on_by_the_law_of_each_prompt():
    """The attack: continuations follow the prompt's law, and nothing was inferred."""
    neutral = protocols.get("neutral_step")
    table = OrbitTable(Mixture(neutral, (-2.5, -0.5)), seed=0, n_sequences=2000, steps=4)
    for law, exponent in (("power_2_5", -2.5), ("power_a1_n0.5", -0.5)):
        world = dataclasses.replace(neutral, law=law)
        batch = world.batch(0, "test", np.arange(60), "pretrain")
        rolled = table.rollout(batch["coordinates"], 9)
        pulls = of_path(rolled[:, 1:33:2] - rolled[:, 2:33:2], batch["dt"], 4)
        assert within(pulls).value == pytest.approx(exponent, abs=0.1)
