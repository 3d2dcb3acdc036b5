"""The linear probe: targets against orbital elements, layers, planted features, controls."""

import dataclasses

import numpy as np
import pytest
import torch

from orbits import laws, protocols
from orbits.laws.newton import GRAVITATIONAL_CONSTANT
from tests.worldmodel.probes.evaluation import evaluate, interval
from worldmodel import probes
from worldmodel.probes import linear
from worldmodel.probes.checkpoint import Checkpoint
from worldmodel.probes.settings import Settings

ARGS = {"n_points": 16, "n_bins": 64}
PROBE = probes.get("linear")


@pytest.fixture
def path(untrained):
    """Return a random model of two blocks."""
    return untrained(protocol_args=ARGS, n_layer=2)


def states_and_world(law):
    protocol = protocols.get("identifiable", {**ARGS, "law": law})
    world = protocol.systems(0, "test", range(20), "force")
    return protocol.batch(0, "test", range(20), "force")["state"][:, 1::2], world


def test_targets_are_those_of_the_orbital_elements():
    state, world = states_and_world("newton")
    found = linear.targets("newton", state)
    assert set(found) == set(linear.READ_OUTS)
    mu = GRAVITATIONAL_CONSTANT * (world.star_mass + world.planet_mass[:, 0])[:, None]
    a, e = world.semi_major_axis, world.eccentricity
    np.testing.assert_allclose(found["eccentricity"][..., 0], e + 0 * state[..., 0], atol=1e-10)
    np.testing.assert_allclose(found["energy"][..., 0], -mu / (2 * a) + 0 * state[..., 0])
    momentum = np.sqrt(mu * a * (1 - e**2))
    np.testing.assert_allclose(found["angular_momentum"][..., 0], momentum + 0 * state[..., 0])
    np.testing.assert_allclose(found["log_m2"][:, 3, 0], np.log(world.star_mass))
    r = np.hypot(*np.moveaxis(state[..., :2], -1, 0))
    force = mu * state[..., 4] * state[..., 5] / (state[..., 4] + state[..., 5]) / r**2
    np.testing.assert_allclose(found["log_force"][..., 0], np.log(force))


def test_energy_under_another_law_is_that_of_the_turning_points():
    state, world = states_and_world("power_1_5")
    found = linear.targets("power_1_5", state)
    assert "eccentricity" not in found
    assert "Newton" in linear.left_out("power_1_5")["eccentricity"]
    a, e = world.semi_major_axis[:, 0], world.eccentricity[:, 0]
    near, far = a * (1 - e), a * (1 + e)
    # Per reduced mass, V = -2 k (m1 + m2) / sqrt(r); the radial velocity vanishes at both ends.
    k = GRAVITATIONAL_CONSTANT * (world.star_mass + world.planet_mass[:, 0])
    square = 2 * (-2 * k / far**0.5 + 2 * k / near**0.5) / (1 / near**2 - 1 / far**2)
    energy = -2 * k / near**0.5 + square / (2 * near**2)
    expected = np.broadcast_to(energy[:, None], state.shape[:2])
    np.testing.assert_allclose(found["energy"][..., 0], expected, rtol=1e-8)


def test_a_law_without_a_potential_has_no_energy(monkeypatch):
    plain = dataclasses.replace(laws.get("newton"), potential=None)
    monkeypatch.setattr(linear.laws, "get", lambda name: plain)
    assert "no closed-form potential" in linear.left_out("newton")["energy"]
    assert "energy" not in linear.targets("newton", states_and_world("newton")[0])


def test_layers_are_the_embedding_the_blocks_and_the_norm(path):
    model = Checkpoint.load(path).model
    made = protocols.get("identifiable", ARGS).batch(0, "test", range(3))
    batch = {
        "tokens": torch.from_numpy(made["tokens"].astype(np.int64)),
        "coordinates": torch.from_numpy(made["coordinates"]).float(),
    }
    found = linear.layers(model, batch)
    assert linear.layer_names(model) == ["embedding", "block 1", "block 2", "final norm"]
    with torch.no_grad():
        embedded = model.embedding(batch["tokens"], batch["coordinates"])
        first = model.gpt.blocks[0](embedded)
        expected = [embedded, first, model.gpt.blocks[1](first), model.hidden(batch)]
    for layer, value in zip(found, expected, strict=True):
        torch.testing.assert_close(layer, value, rtol=0, atol=0)
    assert not any(module._forward_hooks for module in model.modules())


@pytest.mark.full
def test_a_planted_state_is_read_and_noise_and_shuffled_labels_are_not(path, monkeypatch):
    generator = torch.Generator().manual_seed(0)

    def planted(model, batch):
        state = batch["state"]
        known = torch.cat([state[..., :4] @ mixing, state[..., 4:].log()], dim=-1)
        return [known, torch.randn(*state.shape[:2], 6, generator=generator)]

    mixing = torch.randn(4, 4, generator=generator)
    monkeypatch.setattr(linear, "layers", planted)
    monkeypatch.setattr(linear, "layer_names", lambda model: ["state", "noise"])
    one = Checkpoint.load(path)
    settings = Settings(n_sequences=60, labels=200)

    def r2(shuffled, layer, target):
        residual, total = linear.read(one.model, one.protocol, settings, shuffled)[
            f"{layer}/{target}"
        ].sum(axis=0)
        return 1 - residual / total

    for target in ("position", "velocity", "log_m1", "log_m2"):
        assert r2(False, "state", target) > 0.999
        assert abs(r2(False, "noise", target)) < 0.1
        assert r2(True, "state", target) < 0.1
    assert 0.1 < r2(False, "state", "log_force") < 0.999  # not linear in the state


@pytest.mark.full
def test_results_controls_and_figure(path, tmp_path):
    settings = Settings(n_sequences=30, labels=60, law="power_1_5")
    results = evaluate("linear", path, settings, tmp_path)
    assert [(x.case.variant, x.case.arm) for x in results[::4]] == [
        ("softmax", "pretrained"),
        ("softmax", "untrained"),
        ("shuffled labels, softmax", "control"),
        ("best observer", "ceiling"),
    ]
    assert set(results[-1].metrics) == {"r2_log_m1", "r2_log_m2", "r2_log_force"}
    assert all(metric.value > 0.95 for metric in results[-1].metrics.values())
    for result in results[:-1]:
        value, low, high = interval(result, "r2_position")
        assert low <= value <= high <= 1
        assert "r2_eccentricity" not in result.metrics
        assert "eccentricity: Newton's law" in result.case.setting["left_out"]
        if result.case.arm == "control":
            assert value < 0.1
    embedding = results[0].value("r2_position")
    assert embedding > 0.5  # the planet's own place is most of its place relative to the star
    (picture,) = PROBE.draw(results, tmp_path)
    assert picture.images[0].stat().st_size > 10_000


def test_a_world_without_states_is_refused(path, untrained):
    many = untrained(protocol="nbody", protocol_args=ARGS)
    assert "no two-body states" in PROBE.refusal(Checkpoint.load(many), Settings())
    assert PROBE.refusal(Checkpoint.load(path), Settings()) is None
