"""The causal probe: interventions, how changes are compared, results, figures."""

import numpy as np
import pytest

from orbits import protocols
from tests.worldmodel.probes.evaluation import evaluate, interval
from worldmodel import probes
from worldmodel.models.orbit import ForceModel, NextTokenModel
from worldmodel.models.state import StateModel
from worldmodel.probes.checkpoint import Checkpoint
from worldmodel.probes.looks import own_setting
from worldmodel.probes.motion import quantities
from worldmodel.probes.motion.held_out import HeldOutSystems
from worldmodel.probes.motion.interventions import interventions, with_mass
from worldmodel.probes.motion.quantities import Force, Motion
from worldmodel.probes.settings import Settings

pytestmark = pytest.mark.full

G = 39.4784176044
PROBE = probes.get("causal")
SETTINGS = Settings(n_sequences=12, seeds=(3,))
SHORT = {"n_points": 24, "n_bins": 256}


@pytest.fixture
def measure(untrained, tmp_path):
    """Return a function that probes a random model and returns its results."""

    def run(kind, protocol_args=SHORT, **options):
        path = untrained(kind, head_std=0.3, protocol_args=protocol_args, **options)
        return evaluate("causal", path, SETTINGS, tmp_path)

    return run


def refusal(path):
    return PROBE.why_not(Checkpoint.load(path), SETTINGS)


def drawn(results, out):
    return [picture.images[0].name for picture in PROBE.draw(results, out)]


def find(results, arm, changed, of, name=None):
    return next(
        result
        for result in results
        if result.case.arm == arm
        and own_setting(result) == {"changed": changed, "of": of}
        and name in (None, result.case.variant)
    )


def metric(results, metric, *wanted):
    return interval(find(results, *wanted), metric)


def test_an_intervention_changes_one_mass_and_nothing_else():
    protocol = protocols.get("identifiable")
    world = protocol.systems(0, "test", np.arange(300))
    found = list(interventions(protocol, world))
    assert [one.changed for one in found] == ["m1"] * 5 + ["m2"] * 5
    assert sum(one.counts.sum() for one in found) > 1000
    for one in found:
        field, low, high = {
            "m1": ("planet_mass", 0.05, 2.0),
            "m2": ("star_mass", 0.1, 4.0),
        }[one.changed]
        assert low <= one.mass <= high
        np.testing.assert_array_equal(getattr(one.world, field), one.mass)
        for name in set(world._fields) - {field}:
            np.testing.assert_array_equal(getattr(one.world, name), getattr(world, name))
        total = one.world.star_mass + one.world.planet_mass[:, 0]
        period = 2 * np.pi * np.sqrt(world.semi_major_axis[:, 0] ** 3 / (G * total))
        points = period / np.asarray(protocol.dts)[world.dt_index]
        assert one.counts[(points > 12.1) & (points < 23.9)].all()
        assert not one.counts[(points < 12) | (points > 24)].any()


def test_only_the_first_planet_of_several_gets_another_mass():
    world = protocols.get("fixed").systems(0, "test", np.arange(5))
    changed = with_mass(world, "m1", 5e-4)
    np.testing.assert_array_equal(changed.planet_mass[:, 0], 5e-4)
    np.testing.assert_array_equal(changed.planet_mass[:, 1:], world.planet_mass[:, 1:])
    assert not np.any(world.planet_mass[:, 0] == 5e-4), "the factual world is untouched"
    with pytest.raises(ValueError, match="unknown mass 'm3'; choose from m1, m2"):
        with_mass(world, "m3", 1.0)


@pytest.fixture(scope="module")
def pair():
    """Return a world and the same with heavier stars, with forces."""
    protocol = protocols.get("identifiable")
    world = protocol.systems(0, "test", np.arange(9), "force")
    return tuple(
        HeldOutSystems(protocol, w, labelled=True) for w in (world, with_mass(world, "m2", 1.5))
    )


def test_true_forces_change_by_newtons_law(pair):
    quantity = Force()
    one, other = (quantity.truth(held) for held in pair)
    changes = quantity.changes(one, other, *pair)
    logs, sizes = [], []
    for held in pair:
        state = held.batch["state"][:, 25::2]
        r, m1, m2 = np.hypot(state[..., 0], state[..., 1]), state[..., 4], state[..., 5]
        logs.append(np.log(G * m1 * m2 / r**2))
        sizes.append(held.batch["force"][:, 25::2])
    for predicted, true in changes.values():
        np.testing.assert_array_equal(predicted, true)
    np.testing.assert_allclose(changes["force"][1], logs[1] - logs[0], rtol=0, atol=1e-9)
    unit = np.exp((logs[0] + logs[1]) / 2)[..., None]
    expected = (sizes[1] - sizes[0]) / unit
    np.testing.assert_allclose(changes["force vector"][1], expected, rtol=1e-9)


def test_places_alone_know_the_distance_but_not_the_new_mass(pair):
    factual, changed = pair
    answer = Force().references(changed, factual)["places alone", "control"]
    state = changed.batch["state"][:, 25::2]
    r = np.hypot(state[..., 0], state[..., 1])
    before = factual.batch["state"][:, 25::2]
    expected = np.log(G * before[..., 4] * before[..., 5] / r**2)
    np.testing.assert_allclose(answer["log_force"], expected, rtol=0, atol=1e-9)
    toward = np.sum(answer["vector"] * state[..., :2], axis=-1) / r
    np.testing.assert_allclose(toward, -np.exp(expected), rtol=1e-9)


def test_a_bend_is_the_change_of_the_second_difference(pair):
    changes = Motion().changes(*(Motion().truth(held) for held in pair), *pair)
    x, y = (held.batch["coordinates"] for held in pair)
    for of, first in (("planet", 25), ("star", 26)):
        rows = np.arange(first, 49, 2)
        predicted, true = changes[of]
        np.testing.assert_allclose(true[:, rows], (y - x)[:, rows], rtol=0, atol=1e-12)
        assert not true[:, np.setdiff1d(np.arange(49), rows)].any()
        np.testing.assert_array_equal(predicted, true)
        second = [w[:, rows] - 2 * w[:, rows - 2] + w[:, rows - 4] for w in (x, y)]
        bend = changes[f"{of} bend"][1]
        np.testing.assert_allclose(bend[:, rows], second[1] - second[0], rtol=0, atol=1e-12)
        assert not bend[:, np.setdiff1d(np.arange(49), rows)].any()


def test_half_the_log_ratio_is_a_slope_of_a_half(measure, monkeypatch):
    truth = Force().truth

    def half(self, model, held, rows, factual):
        known = {name: value[rows] for name, value in truth(held).items()}
        return {"log_force": 0.5 * known["log_force"] + 7, "vector": 2 * known["vector"]}

    monkeypatch.setattr(quantities.Force, "model", half)
    results = measure(ForceModel)
    for changed in ("m1", "m2"):
        model = ("force head, scratch", changed, "force")
        np.testing.assert_allclose(metric(results, "slope", *model), 0.5, rtol=1e-9)
        np.testing.assert_allclose(metric(results, "agreement", *model), 0.75, rtol=1e-9)
        model = ("force head, scratch", changed, "force vector")
        np.testing.assert_allclose(metric(results, "slope", *model), 2, rtol=1e-9)
        found = metric(results, "agreement", *model)
        np.testing.assert_allclose(found, 0, rtol=0, atol=1e-9)
        found = metric(results, "agreement", "oracle", changed, "force")
        np.testing.assert_array_equal(found, 1)
        still = metric(results, "agreement", "control", changed, "force", "no change")
        np.testing.assert_array_equal(still, 0)
        assert metric(results, "agreement", "control", changed, "force", "places alone")[0] < 0.6
        assert metric(results, "agreement", "ceiling", changed, "force")[0] > 0.98


@pytest.mark.full
def test_going_straight_on_predicts_the_place_and_not_the_bend(measure, monkeypatch, tmp_path):
    def straight(self, model, held, rows, factual):
        exact = held.batch["coordinates"][rows]
        points = exact.copy()
        points[:, 5:] = 2 * exact[:, 3:-2] - exact[:, 1:-4]
        return {"points": points + 0.3}

    monkeypatch.setattr(quantities.Motion, "model", straight)
    results = measure(NextTokenModel)
    for changed in ("m1", "m2"):
        for body in ("planet", "star"):
            assert metric(results, "agreement", "pretrained", changed, body)[0] > 0.8
            found = metric(results, "agreement", "pretrained", changed, f"{body} bend")
            np.testing.assert_allclose(found, 0, rtol=0, atol=1e-9)
            assert 0.9 < metric(results, "agreement", "ceiling", changed, f"{body} bend")[0] < 1
        physics = ("oracle", changed, "planet", "true physics")
        assert metric(results, "tokens_changed", *physics)[0] > 0.9
    assert drawn(results, tmp_path) == ["causal_motion.png"]


def test_random_models_do_not_agree(measure, tmp_path):
    results = measure(ForceModel)
    assert metric(results, "agreement", "force head, scratch", "m1", "force")[0] < 0.3
    ridge = metric(results, "agreement", "untrained + ridge", "m1", "force")
    assert ridge[0] != 0, "a head that answers nothing is beaten by any other"
    assert drawn(results, tmp_path) == ["causal_force.png"]


def test_a_raw_head_may_predict_negative_forces(measure):
    results = measure(ForceModel, {"n_points": 48, "n_bins": 256}, protocol="paper")
    assert all(np.isfinite(result.value("agreement")) for result in results)
    own = [x for x in results if own_setting(x) == {"changed": "m1", "of": "force"}]
    assert "untrained + ridge" in {result.case.arm for result in own}


def test_what_no_bin_shows_is_not_measured(measure, tmp_path):
    results = measure(NextTokenModel, {"n_points": 48, "n_bins": 256}, protocol="fixed")
    bend = {"changed": "m1", "of": "planet bend"}
    light = [result for result in results if own_setting(result) == bend]
    assert {result.case.arm for result in light} == {"oracle"}
    physics = ("oracle", "m1", "planet bend", "true physics")
    assert metric(light, "tokens_changed", *physics)[0] < 0.5
    assert find(results, "pretrained", "m2", "planet").metrics
    bends = [result for result in results if "bend" in result.case.setting["of"]]
    assert {result.case.arm for result in bends} == {"oracle"}, "these bins are coarse"
    assert drawn(results, tmp_path) == []


def test_no_single_orbit_is_the_ceiling_where_a_mass_hardly_shows(measure, tmp_path):
    results = measure(ForceModel, {"n_points": 48}, protocol="fixed")
    assert "ceiling" not in {result.case.arm for result in results}
    assert drawn(results, tmp_path)


def test_what_cannot_be_probed_is_refused_with_the_fix(untrained):
    many = refusal(untrained(protocol="nbody", protocol_args={"n_points": 48}))
    assert "protocol 'nbody' pull on each other" in many
    assert "take fixed or identifiable" in many
    assert "StateModel" in refusal(untrained(StateModel, protocol_args=SHORT))
    assert "n_points=6" in refusal(untrained(protocol_args={"n_points": 6}))
    assert refusal(untrained(ForceModel, protocol_args=SHORT)) is None
