"""The probe of disturbed worlds: its controls on known worlds, its refusals, a run."""

import math

import numpy as np
import pytest

from orbits import protocols
from orbits.runs.result import Case, Metric, Result
from worldmodel.probes.base import Pieces
from worldmodel.probes.checkpoint import Checkpoint
from worldmodel.probes.implied import references
from worldmodel.probes.motion.disturbed import (
    ASKED,
    IGNORANT,
    PLAIN,
    PROBE,
    WORLDS,
    _measured,
    _others,
    _sentence,
)
from worldmodel.probes.motion.held_out import HeldOutSystems
from worldmodel.probes.settings import Settings


def test_every_disturbed_world_has_a_measure_and_a_prompt():
    assert set(ASKED) == {*WORLDS} - {PLAIN}
    assert len(ASKED) == 4


@pytest.mark.full
@pytest.mark.parametrize("name", ASKED)
def test_an_observer_who_knows_has_the_disturbance_and_one_of_newton_has_not(name):
    protocol = protocols.get(name)
    test = HeldOutSystems(protocol, protocol.systems(0, "test", np.arange(80)))
    found = {who: _measured(test, points) for who, _, points in _others(test, protocol)}
    metric, _ = ASKED[name]
    true, knows, ignores, table = (
        found[who][metric].value
        for who in (references.TRUE, references.FIT, IGNORANT, references.TABLE)
    )
    assert knows == pytest.approx(true, rel=0.15)
    # Orbits of the world, pasted, have what the world has: no model is told from a table here.
    assert table == pytest.approx(true, rel=0.5)
    if name != "kinds":  # the factor is taken for mass there: places cannot tell them apart
        assert abs(ignores) < 0.1 * abs(true)
        errors = [found[who]["last_error"].value for who in (references.FIT, IGNORANT)]
        assert errors[0] < errors[1] / 2


@pytest.mark.full
def test_a_model_is_prompted_with_every_world(untrained, tmp_path):
    sizes = {"n_points": 24, "n_bins": 64}
    checkpoint = Checkpoint.load(untrained(protocol="drag", protocol_args=sizes))
    outcomes = PROBE.measure(
        checkpoint, Settings(n_sequences=4, seeds=(0,)), Pieces(tmp_path, tmp_path)
    )
    prompts = {x.setting["prompt"] for x in outcomes}
    assert prompts == {*WORLDS}
    own = [x for x in outcomes if x.variant is None and x.arm is None]
    assert len(own) == len(WORLDS)
    assert {metric for metric, _ in ASKED.values()} < set(own[0].metrics)


def test_paths_that_tell_nothing_are_said_so():
    def result(prompt, value):
        found = {metric: Metric(value) for metric, _ in ASKED.values()}
        details = {"checkpoint": {"protocol": "identifiable", "label": "a"}}
        case = Case("probe", "disturbed", "a", "pretrained", 0, setting={"prompt": prompt})
        return Result(case, "ok", metrics=found, details=details)

    mine = [result(world, math.nan) for world in WORLDS]
    said = _sentence("a", "drag", mine, mine)
    assert "prompted with orbits of drag, goes on by paths that tell nothing of it (" in said
    mine = [result(world, 0.25) for world in WORLDS]
    assert "loses 0.250" in _sentence("a", "drag", mine, mine)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"protocol": "nbody", "protocol_args": {"n_points": 48}}, "take a model of identifiable"),
        ({"protocol": "species"}, "'species' has three bodies; take the probe free_fall"),
        ({"protocol_args": {"law": "yukawa"}}, "under law 'yukawa'"),
        ({"protocol_args": {"n_points": 22}}, "n_points=22 is not a multiple of 4"),
    ],
)
def test_other_models_are_refused(arguments, message, untrained):
    checkpoint = Checkpoint.load(untrained(**arguments))
    assert message in PROBE.refusal(checkpoint, Settings())
