"""The free-fall probe: observers and controls on known worlds, its refusals, a run."""

import math

import numpy as np
import pytest

from orbits import protocols
from orbits.implied.free_fall import Attractions, attractions, followed
from orbits.runs.result import Case, Metric, Result
from worldmodel.probes.base import Pieces
from worldmodel.probes.checkpoint import Checkpoint
from worldmodel.probes.implied import references
from worldmodel.probes.motion.free_fall import (
    IGNORANT,
    INFERS,
    PROBE,
    WORLDS,
    _fits,
    _measured,
    _others,
    _sentence,
)
from worldmodel.probes.motion.held_out import HeldOutSystems
from worldmodel.probes.settings import Settings


def test_the_triples_are_asked():
    assert WORLDS == ("triples", "species")


@pytest.mark.full
def test_kinds_are_inferred_from_the_prompt_and_one_of_newton_has_none():
    protocol = protocols.get("species")
    test = HeldOutSystems(protocol, protocol.systems(0, "test", np.arange(60)))
    others = _others(test, protocol, _fits(protocol, 0, 60))
    found = {who: _measured(test, points) for who, _, points in others}
    fall = {who: each["fall_followed"].value for who, each in found.items()}
    for who in (references.TRUE, references.FIT, INFERS):
        assert fall[who] == pytest.approx(1, abs=0.03)
    assert abs(fall[IGNORANT]) < 0.1
    assert fall[references.IN_BINS] == pytest.approx(1, abs=0.3)
    off = {who: each["last_error"].value for who, each in found.items()}
    assert off[INFERS] == pytest.approx(off[references.FIT], rel=0.2)
    assert off[IGNORANT] > 5 * off[INFERS]
    assert {references.FILTER, references.TABLE} < set(found)
    # The pair's exponent is blind to it: none of these is told by it.
    assert abs(found[IGNORANT]["exponent_within"].value + 2) < 0.2


@pytest.mark.full
def test_a_model_is_prompted_with_both_worlds(untrained, tmp_path):
    checkpoint = Checkpoint.load(untrained(protocol="triples", protocol_args={"n_bins": 64}))
    assert PROBE.refusal(checkpoint, Settings()) is None
    settings = Settings(n_sequences=4, seeds=(0,))
    outcomes = PROBE.measure(checkpoint, settings, Pieces(tmp_path, tmp_path))
    assert {x.setting["prompt"] for x in outcomes} == {*WORLDS}
    own = {x.setting["prompt"]: x for x in outcomes if x.variant is None and x.arm is None}
    assert set(own) == {*WORLDS}
    assert {"unlike_fall", "exponent_within", "last_error"} < set(own["triples"].metrics)
    assert set(own["species"].metrics) - set(own["triples"].metrics) == {
        "fall_followed",
        "pull_followed",
    }


def test_paths_that_tell_nothing_are_said_so():
    def result(value, who="a", arm="pretrained"):
        details = {"checkpoint": {"protocol": "species", "label": "a"}}
        case = Case("probe", "free_fall", who, arm, 0, setting={"prompt": "species"})
        return Result(case, "ok", metrics={"fall_followed": Metric(value)}, details=details)

    newton = result(0.0, IGNORANT, "control")
    said = _sentence("a", [result(math.nan)], [newton])
    assert "tell nothing of their fall (orbit fit by Newton's law 0.00)" in said
    assert "unlike by 0.25 of" in _sentence("a", [result(0.25)], [newton])


def test_a_slope_is_of_the_precise_and_not_of_the_wild():
    """Systems weigh as their paths are exact, and a few that say anything do not decide."""
    rng = np.random.default_rng(0)
    kinds = rng.choice([-1.5, -0.5, 0.5, 1.5], 400)
    coupling = np.ones((400, 3, 3))
    coupling[:, 0, 2], coupling[:, 1, 2] = 2 + kinds / 2, 2 - kinds / 2
    spread = np.where(np.arange(400) < 200, 0.1, 10.0)
    shown = 0.4 * kinds + spread * rng.standard_normal(400)
    shown[::20] += 50
    found = followed(Attractions(shown, spread, np.ones(400)), coupling)["fall_followed"]
    assert found.low < 0.4 < found.high
    assert found.high - found.low < 0.1


def test_bodies_in_one_place_have_an_answer():
    found = attractions(np.zeros((2, 12, 3, 2)), np.ones(2), np.ones((2, 3)))
    assert np.isfinite(found.unlike).all()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"protocol": "identifiable"}, "take a model of triples or species"),
        ({"protocol": "species", "protocol_args": {"n_points": 69}}, "n_points=69 is not"),
        ({"protocol": "species", "protocol_args": {"n_points": 36}}, "n_points=36 is not"),
    ],
)
def test_other_models_are_refused(arguments, message, untrained):
    checkpoint = Checkpoint.load(untrained(**arguments))
    assert message in PROBE.refusal(checkpoint, Settings())
