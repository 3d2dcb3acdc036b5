"""The free-fall probe: observers and controls on known worlds, its refusals, a run."""

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
    WITH_ERRORS,
    WORLDS,
    _fits,
    _measured,
    _others,
    _sentence,
    _with_errors,
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
    fall = {who: each["fall_met"].value for who, each in found.items()}
    # Of 150 true systems 0.81: where a pair is torn or nearly touches, steps are too coarse.
    for who in (references.TRUE, references.FIT, INFERS):
        assert fall[who] > 0.7
    assert fall[IGNORANT] < 0.1
    assert fall[references.FILTER] < 0.2
    assert fall[references.IN_BINS] > 0.4
    blurred = [_measured(test, _with_errors(test, x))["fall_met"].value for x in (1e-4, 0.04)]
    assert blurred[1] < 0.4 < blurred[0]
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
    assert set(own["species"].metrics) - set(own["triples"].metrics) == {"fall_met", "pull_met"}
    assert {x.variant for x in outcomes} > {WITH_ERRORS, INFERS, IGNORANT}


def test_the_sentence_names_what_passes_without_a_law():
    def result(value, who="a", arm="pretrained"):
        details = {"checkpoint": {"protocol": "species", "label": "a"}}
        case = Case("probe", "free_fall", who, arm, 0, setting={"prompt": "species"})
        return Result(case, "ok", metrics={"fall_met": Metric(value)}, details=details)

    others = [result(0.01, IGNORANT, "control"), result(0.05, references.FILTER, "control")]
    said = _sentence("a", [result(0.25)], others)
    assert "goes on as they do in 0.25 of the systems (" in said
    assert "orbit fit by Newton's law 0.01; linear autoregression 0.05)" in said


def test_the_count_is_of_systems_and_no_mode_or_wild_one_decides():
    """The attack: of a mixture of two observers a robust slope shows what most systems do."""
    coupling = np.ones((1000, 3, 3))
    unlike = np.tile([-1.5, -0.5, 0.5, 1.5], 250)
    coupling[:, 0, 2], coupling[:, 1, 2] = 2 + unlike / 2, 2 - unlike / 2
    knows = np.arange(1000) < 450

    def met(shown, mutual=1.0):
        found = followed(Attractions(shown, np.full(1000, mutual)), coupling)
        return found["fall_met"].value, found["pull_met"].value

    assert met(np.where(knows, unlike, 0.0)) == (0.45, 1)
    assert met(7 * unlike) == (0, 1), "more than the world's is not it"
    assert met(np.where(knows, unlike, np.nan), np.nan) == (0.45, 0)
    assert met(np.zeros(1000), 1.5) == (0, 0)


def test_bodies_in_one_place_have_an_answer():
    places = np.zeros((2, 12, 3, 2))
    places[1, 5] = np.nan  # a path that leaves the numbers has no answer, and is no crash
    found = attractions(places, np.ones(2), np.ones((2, 3)))
    assert np.isfinite(found.unlike).tolist() == [True, False]


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
