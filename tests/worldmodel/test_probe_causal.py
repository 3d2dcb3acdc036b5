"""The causal probe: interventions, how changes are compared, lines, figures."""

import lightning
import numpy as np
import pytest
import torch

from orbits import protocols
from worldmodel import probes, probing
from worldmodel.probes import _motion_questions
from worldmodel.probes._motion_held import Held
from worldmodel.probes._motion_interventions import interventions, with_mass
from worldmodel.probes._motion_questions import Force, Motion
from worldmodel.state_task import StateTask
from worldmodel.tasks import ForceTask, NextTokenTask

G = 39.4784176044
PROBE = probes.get("causal")
SETTINGS = probing.Settings(n_sequences=12, seeds=(3,))
SHORT = {"n_points": 24, "n_bins": 256}


def checkpoint(folder, task_class, protocol_args=SHORT, **options):
    torch.manual_seed(0)
    task = task_class(n_layer=1, n_head=2, head_dim=8, protocol_args=protocol_args, **options)
    for parameter in task.head.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    trainer = lightning.Trainer(
        accelerator="cpu", logger=False, enable_progress_bar=False, enable_model_summary=False
    )
    trainer.strategy.connect(task)
    trainer.save_checkpoint(folder / "model.ckpt", weights_only=True)
    return probing.Subject.load(folder / "model.ckpt")


def metrics(lines, arm, changed, of, name=None):
    return next(
        line["metrics"]
        for line in lines
        if line["row"]["arm"] == arm
        and line["setting"] == {"changed": changed, "of": of}
        and name in (None, line["row"]["model"])
    )


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
    return tuple(Held(protocol, w, labelled=True) for w in (world, with_mass(world, "m2", 1.5)))


def test_true_forces_change_by_newtons_law(pair):
    question = Force()
    one, other = (question.truth(held) for held in pair)
    changes = question.changes(one, other, *pair)
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


def test_half_the_log_ratio_is_a_slope_of_a_half(tmp_path, monkeypatch):
    truth = Force().truth

    def half(self, task, held, rows, factual):
        known = {name: value[rows] for name, value in truth(held).items()}
        return {"log_force": 0.5 * known["log_force"] + 7, "vector": 2 * known["vector"]}

    monkeypatch.setattr(_motion_questions.Force, "model", half)
    lines = probing.answer(checkpoint(tmp_path, ForceTask), PROBE, tmp_path / "out", SETTINGS)
    for changed in ("m1", "m2"):
        found = metrics(lines, "force head, scratch", changed, "force")
        np.testing.assert_allclose(found["slope"], 0.5, rtol=1e-9)
        np.testing.assert_allclose(found["agreement"], 0.75, rtol=1e-9)
        found = metrics(lines, "force head, scratch", changed, "force vector")
        np.testing.assert_allclose(found["slope"], 2, rtol=1e-9)
        np.testing.assert_allclose(found["agreement"], 0, rtol=0, atol=1e-9)
        np.testing.assert_array_equal(metrics(lines, "oracle", changed, "force")["agreement"], 1)
        still = metrics(lines, "control", changed, "force", "no change")
        np.testing.assert_array_equal(still["agreement"], 0)
        assert metrics(lines, "control", changed, "force", "places alone")["agreement"][0] < 0.6
        assert metrics(lines, "ceiling", changed, "force")["agreement"][0] > 0.98


def test_going_straight_on_answers_the_place_and_not_the_bend(tmp_path, monkeypatch):
    def straight(self, task, held, rows, factual):
        exact = held.batch["coordinates"][rows]
        points = exact.copy()
        points[:, 5:] = 2 * exact[:, 3:-2] - exact[:, 1:-4]
        return {"points": points + 0.3}

    monkeypatch.setattr(_motion_questions.Motion, "model", straight)
    lines = probing.answer(checkpoint(tmp_path, NextTokenTask), PROBE, tmp_path / "out", SETTINGS)
    for changed in ("m1", "m2"):
        for body in ("planet", "star"):
            assert metrics(lines, "pretrained", changed, body)["agreement"][0] > 0.8
            found = metrics(lines, "pretrained", changed, f"{body} bend")
            np.testing.assert_allclose(found["agreement"], 0, rtol=0, atol=1e-9)
            fit = metrics(lines, "ceiling", changed, f"{body} bend")["agreement"][0]
            assert 0.9 < fit < 1
        told = metrics(lines, "oracle", changed, "planet", "true physics")["tokens_changed"]
        assert told[0] > 0.9
    figures = PROBE.draw(lines, tmp_path / "out")
    assert {name: path.suffix for name, path in figures.items()} == {"causal_motion": ".png"}


def test_random_models_do_not_agree(tmp_path):
    lines = probing.answer(checkpoint(tmp_path, ForceTask), PROBE, tmp_path / "out", SETTINGS)
    assert metrics(lines, "force head, scratch", "m1", "force")["agreement"][0] < 0.3
    np.testing.assert_allclose(metrics(lines, "untrained", "m1", "force")["slope"], 0, atol=1e-12)
    assert set(PROBE.draw(lines, tmp_path / "out")) == {"causal_force"}


def test_a_raw_head_may_answer_with_negative_forces(tmp_path):
    args = {"n_points": 48, "n_bins": 256}
    subject = checkpoint(tmp_path, ForceTask, args, protocol="paper")
    lines = probing.answer(subject, PROBE, tmp_path / "out", SETTINGS)
    for line in lines:
        assert np.isfinite(line["metrics"]["agreement"][0])
    # An untrained head answers zero whatever it sees: the floor must not give the truth away.
    np.testing.assert_allclose(
        metrics(lines, "untrained", "m1", "force")["agreement"], 0, rtol=0, atol=1e-12
    )


def test_what_no_bin_shows_is_not_asked(tmp_path):
    args = {"n_points": 48, "n_bins": 256}
    subject = checkpoint(tmp_path, NextTokenTask, args, protocol="fixed")
    lines = probing.answer(subject, PROBE, tmp_path / "out", SETTINGS)
    light = [x for x in lines if x["setting"] == {"changed": "m1", "of": "planet bend"}]
    assert {line["row"]["arm"] for line in light} == {"oracle"}
    assert metrics(light, "oracle", "m1", "planet bend", "true physics")["tokens_changed"][0] < 0.5
    assert metrics(lines, "pretrained", "m2", "planet")
    bends = [line for line in lines if "bend" in line["setting"]["of"]]
    assert {line["row"]["arm"] for line in bends} == {"oracle"}, "these bins are coarse"
    assert PROBE.draw(lines, tmp_path / "out") == {}


def test_no_single_orbit_is_the_ceiling_where_a_mass_hardly_shows(tmp_path):
    subject = checkpoint(tmp_path, ForceTask, {"n_points": 48}, protocol="fixed")
    lines = probing.answer(subject, PROBE, tmp_path / "out", SETTINGS)
    assert "ceiling" not in {line["row"]["arm"] for line in lines}
    assert PROBE.draw(lines, tmp_path / "out")


def test_what_cannot_be_asked_is_refused_with_the_fix(tmp_path):
    args = {"n_points": 48}
    refused = PROBE.refusal(checkpoint(tmp_path, NextTokenTask, args, protocol="nbody"), SETTINGS)
    assert "protocol 'nbody' pull on each other" in refused
    assert "take fixed or identifiable" in refused
    assert "StateTask" in PROBE.refusal(checkpoint(tmp_path, StateTask), SETTINGS)
    short = checkpoint(tmp_path, NextTokenTask, {"n_points": 6})
    assert "n_points=6" in PROBE.refusal(short, SETTINGS)
    assert PROBE.refusal(checkpoint(tmp_path, ForceTask), SETTINGS) is None
