"""The linear probe: targets against orbital elements, layers, planted features, controls."""

import dataclasses

import numpy as np
import pytest
import torch

from orbits import laws, protocols
from orbits.laws.newton import GRAVITATIONAL_CONSTANT
from tests.worldmodel.probes.evaluation import evaluate, interval
from worldmodel import probes
from worldmodel.probes import orbit_targets, read_out
from worldmodel.probes.checkpoint import Checkpoint
from worldmodel.probes.quantities import READ_OUTS
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
    found = orbit_targets.targets("newton", state)
    assert set(found) == set(READ_OUTS)
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
    inward = -state[..., :2] / r[..., None]
    np.testing.assert_allclose(found["force_vector"], force[..., None] * inward)
    np.testing.assert_allclose(found["semi_major"][..., 0], a + 0 * state[..., 0])
    np.testing.assert_allclose(found["semi_minor"][..., 0], a * np.sqrt(1 - e**2) + 0 * r)
    periapsis = np.stack([np.cos(world.periapsis), np.sin(world.periapsis)], axis=-1)
    vector = np.broadcast_to(e[..., None] * periapsis, state[..., :2].shape)
    np.testing.assert_allclose(found["eccentricity_vector"], vector, atol=1e-10)


def test_energy_under_another_law_is_that_of_the_turning_points():
    state, world = states_and_world("power_1_5")
    found = orbit_targets.targets("power_1_5", state)
    assert not {"eccentricity", "semi_major", "semi_minor", "eccentricity_vector"} & set(found)
    assert "Newton" in orbit_targets.left_out("power_1_5")["eccentricity"]
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
    monkeypatch.setattr(orbit_targets.laws, "get", lambda name: plain)
    assert "no closed-form potential" in orbit_targets.left_out("newton")["energy"]
    assert "energy" not in orbit_targets.targets("newton", states_and_world("newton")[0])


def test_layers_are_the_embedding_the_blocks_and_the_norm(path):
    model = Checkpoint.load(path).model
    made = protocols.get("identifiable", ARGS).batch(0, "test", range(3))
    batch = {
        "tokens": torch.from_numpy(made["tokens"].astype(np.int64)),
        "coordinates": torch.from_numpy(made["coordinates"]).float(),
    }
    found = read_out.layers(model, batch)
    assert read_out.layer_names(model) == ["embedding", "block 1", "block 2", "final norm"]
    with torch.no_grad():
        embedded = model.embedding(batch["tokens"], batch["coordinates"])
        first = model.gpt.blocks[0](embedded)
        expected = [embedded, first, model.gpt.blocks[1](first), model.hidden(batch)]
    for layer, value in zip(found, expected, strict=True):
        torch.testing.assert_close(layer, value, rtol=0, atol=0)
    assert not any(module._forward_hooks for module in model.modules())


@pytest.mark.full
def test_a_planted_state_is_read_and_noise_and_shuffled_labels_are_not(path):
    generator = torch.Generator().manual_seed(0)

    def planted(batch):
        state = batch["state"]
        known = torch.cat([state[..., :4] @ mixing, state[..., 4:].log()], dim=-1)
        return {"state": known, "noise": torch.randn(*state.shape[:2], 6, generator=generator)}

    mixing = torch.randn(4, 4, generator=generator)
    one = Checkpoint.load(path)
    settings = Settings(n_sequences=60, labels=200)

    def r2(shuffled, layer, target):
        sums = read_out.read(planted, one.protocol, settings, shuffled)
        residual, total = sums[f"{layer}/{target}"].sum(axis=0)
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
    assert [(x.case.variant, x.case.arm) for x in [*results[:12:4], *results[12:]]] == [
        ("softmax", "pretrained"),
        ("softmax", "untrained"),
        ("shuffled labels, softmax", "control"),
        ("last 24 places", "control"),
        ("best observer", "ceiling"),
    ]
    assert set(results[-1].metrics) == {"r2_log_m1", "r2_log_m2", "r2_log_force"}
    assert all(metric.value > 0.95 for metric in results[-1].metrics.values())
    for result in results[:-1]:
        value, low, high = interval(result, "r2_position")
        assert low <= value <= high <= 1
        assert "r2_eccentricity" not in result.metrics
        assert "eccentricity: Newton's law" in result.case.setting["left_out"]
        if result.case.variant.startswith("shuffled"):
            assert value < 0.1
    embedding = results[0].value("r2_position")
    assert embedding > 0.5  # the planet's own place is most of its place relative to the star
    (picture,) = PROBE.draw(results, tmp_path)
    assert picture.images[0].stat().st_size > 10_000


def test_a_world_without_states_is_refused(path, untrained):
    many = untrained(protocol="nbody", protocol_args=ARGS)
    assert "no two-body states" in PROBE.refusal(Checkpoint.load(many), Settings())
    assert PROBE.refusal(Checkpoint.load(path), Settings()) is None


def test_recent_places_are_those_up_to_the_row_with_the_time_step():
    protocol = protocols.get("identifiable", ARGS)
    made = protocol.batch(0, "test", range(3))
    batch = {
        "tokens": torch.from_numpy(made["tokens"].astype(np.int64)),
        "coordinates": torch.from_numpy(made["coordinates"]).float(),
    }
    found = read_out.recent_places(protocol.tokens, 3)(batch)["last 3 places"]
    assert found.shape == (3, 17, 6 + len(protocol.dts))
    torch.testing.assert_close(found[:, 9, :6], batch["coordinates"][:, 7:10].flatten(1))
    assert not found[:, 1, :4].any(), "before the first row nothing is seen"
    assert (found[:, :, 6:].sum(-1) == 1).all()


def test_the_stars_rows_are_read_with_the_planets_targets(path):
    protocol = protocols.get("identifiable", ARGS)
    settings = Settings(n_sequences=5, labels=20)
    seen = []

    def features(batch):
        seen.append(batch["body"])
        row = torch.arange(batch["tokens"].shape[1]).float()
        return {"row": row[:, None].expand(*batch["tokens"].shape[:2], 1)}

    planet, star = (
        read_out._examples(features, protocol, 0, "test", settings.n_sequences, after)
        for after in read_out.BODIES.values()
    )
    n = star[0]["row"].shape[1]
    np.testing.assert_array_equal(star[0]["row"], planet[0]["row"][:, :n] + 1)
    assert (seen[0][:, star[0]["row"][0, :, 0].astype(int)] == 0).all()
    for name, values in star[1].items():
        np.testing.assert_array_equal(values, planet[1][name][:, :n])
