"""The rollout probe: references, conserved quantities, errors, figures."""

import dataclasses

import numpy as np
import pytest
import torch
from PIL import Image

from orbits import laws, protocols, solar_system
from orbits.runs import folder
from tests.worldmodel.probes.evaluation import evaluate, interval
from worldmodel import probes
from worldmodel.data.orbits import OrbitData
from worldmodel.models.orbit import ForceModel, NextTokenModel
from worldmodel.probes.checkpoint import Checkpoint
from worldmodel.probes.motion import references
from worldmodel.probes.motion.figures import CAPTIONS
from worldmodel.probes.motion.held_out import HeldOutSystems, next_points
from worldmodel.probes.settings import Settings

G = 39.4784176044
PROBE = probes.get("rollout")
SETTINGS = Settings(n_sequences=6, seeds=(3,))


def held(name="identifiable", n=8, **changes):
    protocol = dataclasses.replace(protocols.get(name), **changes)
    return HeldOutSystems(protocol, protocol.systems(0, "test", np.arange(n)))


def find(results, name, of, arm=None):
    return next(
        result
        for result in results
        if result.case.variant == name
        and result.case.setting["asked"] == of
        and arm in (None, result.case.arm)
    )


def metric(results, name, of, metric, arm=None):
    return interval(find(results, name, of, arm), metric)


def drawn(results, out):
    return {path.stem: path for x in PROBE.draw(results, out) for path in x.images}


def test_references_are_the_last_points_of_the_same_body():
    asked = held("fixed", n=6, n_points=60)
    body, observed = asked.batch["body"], asked.observed
    found = references.last_points(observed, body, asked.steps)
    assert len(np.unique(body.max(axis=1))) > 2, "systems of several sizes"
    for sequence in range(6):
        for row in range(asked.n_prompt, 61):
            mine = np.flatnonzero(body[sequence] == body[sequence, row])
            seen, since = mine[mine < asked.n_prompt], mine[mine >= asked.n_prompt]
            steps = 1 + since.tolist().index(row)
            assert asked.steps[sequence, row] == steps
            last, before = observed[sequence, seen[-1]], observed[sequence, seen[-2]]
            rest, line = (found[name][sequence, row] for name in found)
            np.testing.assert_array_equal(rest, last)
            np.testing.assert_allclose(line, last + steps * (last - before), rtol=0, atol=1e-12)


def test_conserved_quantities_of_a_circle_are_those_of_its_chords():
    a, m1, m2, dt = 1.3, 0.4, 1.1, 0.02
    rate = np.sqrt(G * (m1 + m2) / a**3)
    angle = rate * dt * np.arange(9)
    circle = a * np.stack([np.cos(angle), np.sin(angle)], axis=-1)[None]
    found = references.conserved("newton", circle, np.array([dt]), np.array([m1]), np.array([m2]))
    speed = a * np.sin(rate * dt) / dt
    np.testing.assert_allclose(found["angular_momentum"], np.full((1, 7), a * speed), rtol=1e-12)
    energy = speed**2 / 2 - G * (m1 + m2) / a
    np.testing.assert_allclose(found["energy"], np.full((1, 7), energy), rtol=1e-12)


@pytest.mark.parametrize("law", sorted(set(laws.names()) - {"inverse_cube"}))  # binds no orbit
def test_a_finely_sampled_true_orbit_conserves_both(law):
    asked = held(law=law, dts=(2e-5,))
    points, body = asked.batch["coordinates"], asked.batch["body"]
    missed = references.deviations(asked.protocol, asked.world, points, body, asked.n_prompt)
    assert set(missed) == {"energy", "angular_momentum"}
    for value in missed.values():
        assert value.shape == (8, 12, 1)
        assert np.isnan(value[:, -1]).all(), "the last step has no velocity"
        assert np.abs(value[:, :-1]).max() < 1e-5


def test_a_planet_twice_as_far_has_four_times_the_angular_momentum():
    asked = held("fixed", n=8, n_points=88, dts=(1e-3, 1e-3))
    points, body = asked.batch["coordinates"].copy(), asked.batch["body"]
    second = body == 2
    points[second] *= 2  # the star rests near the origin, but not in it
    star = points[np.arange(8), (body == 0).argmax(axis=1)]
    points[second] -= np.repeat(star, second.sum(axis=1), axis=0)
    missed = references.deviations(asked.protocol, asked.world, points, body, asked.n_prompt)
    momentum = missed["angular_momentum"]
    for sequence, planets in enumerate(body.max(axis=1)):
        steps = 88 // (planets + 1) - 1 - -(-44 // (planets + 1))
        known = np.isfinite(momentum[sequence])
        assert known[:steps, :planets].all()
        assert known.sum() == steps * planets
        others = [k for k in range(planets) if k != 1]
        np.testing.assert_allclose(momentum[sequence, :steps, others], 0, rtol=0, atol=1e-3)
        if planets > 1:
            np.testing.assert_allclose(momentum[sequence, :steps, 1], 3, rtol=0, atol=1e-2)


def test_next_points_are_moments_of_the_predicted_distribution():
    torch.manual_seed(0)
    task = NextTokenModel(n_layer=1, n_head=2, head_dim=8).eval()
    torch.nn.init.normal_(task.head.logits.weight, std=0.3)
    asked = held(n=5)
    found = next_points(task, asked.batch)
    batch = next(iter(OrbitData(n_test=5).test_dataloader()))
    with torch.no_grad():
        loss = float(task._loss(batch))
        share = task(batch).double().softmax(dim=-1).numpy()
    assert found["nll"][:, 1:].mean() == pytest.approx(loss, rel=1e-5)
    centres = np.linspace(-4, 4, 513)[:-1] + 4 / 512
    np.testing.assert_allclose(found["expected"][:, 1:], share @ centres, rtol=0, atol=1e-5)
    np.testing.assert_array_equal(found["mode"][:, 1:], share.argmax(axis=-1))


@pytest.fixture(scope="module")
def measured(untrained, tmp_path_factory):
    """Return the results of a random model of the default sizes, and their folder."""
    out = tmp_path_factory.mktemp("measured")
    return evaluate("rollout", untrained(), SETTINGS, out), out


@pytest.mark.full
def test_errors_stand_beside_references_that_are_in_order(measured):
    results, _ = measured
    world = held(n=6)
    true, body = world.batch["coordinates"], world.batch["body"]
    star = (body == 0) & (np.arange(49) >= 25)
    width = 8 / 512
    bins = (np.floor(true / width) + 0.5) * width
    error = np.linalg.norm(bins - true, axis=-1)[star].mean()
    found = metric(results, "true orbit in bins", "next point", "star_error")
    assert found[0] == pytest.approx(error)
    rows = np.flatnonzero(star[0])
    copied = np.linalg.norm(bins[:, rows - 2] - true[:, rows], axis=-1).mean()
    found = metric(results, "copy last", "next point", "star_error")
    assert found[0] == pytest.approx(copied)
    assert found[1] < found[0] < found[2]
    rest = np.linalg.norm(bins[:, 24:25] - true[:, rows], axis=-1)
    curves = find(results, "copy last", "rollout").details["curves"]
    np.testing.assert_allclose(curves["star_error"]["mean"], rest.mean(axis=0))
    for quantity in ("planet_error", "star_error"):
        for of in ("next point", "rollout"):
            fit, copy = (
                metric(results, name, of, quantity)[0] for name in ("orbit fit", "copy last")
            )
            random = metric(results, "softmax", of, quantity, "pretrained")[0]
            assert fit < copy < random
    exact = ("true orbit in bins", "rollout")
    assert metric(results, *exact, "energy_error")[0] < 0.3
    drift = metric(results, *exact, "angular_momentum_drift")
    assert 0 < drift[0] < 0.01
    twin = ("softmax", "rollout")
    assert metric(results, *twin, "angular_momentum_drift", "untrained")[1] > drift[2]
    assert metric(results, *twin, "energy_error", "untrained")[0] > 0.5


@pytest.mark.full
def test_figures_come_from_results_and_files_alone(measured):
    results, out = measured
    paths = drawn(results, out)
    assert set(paths) == set(CAPTIONS)
    for name, path in paths.items():
        assert path.stat().st_size < 2e6
        with Image.open(path) as picture:
            assert getattr(picture, "n_frames", 1) == (24 if name == "rollout_animation" else 1)


@pytest.mark.full
def test_the_solar_system_is_shown_where_it_fits(untrained, tmp_path):
    args = {"n_points": 99, "n_bins": 100}
    path = untrained(protocol="fixed", protocol_args=args)
    results = evaluate("rollout", path, SETTINGS, tmp_path)
    file = next(folder.file(tmp_path, x, "orbits") for x in results if x.files)
    kept = np.load(file)
    truth = solar_system.single_sequence(protocols.get("fixed", args))
    np.testing.assert_array_equal(kept["film_true"], truth["coordinates"][0])
    assert kept["film_is_solar"]
    assert kept["film_rolled"].shape == (100, 2)
    assert not [x for x in results if x.case.arm == "ceiling"], "one planet is fitted"
    with Image.open(drawn(results, tmp_path)["rollout_animation"]) as film:
        assert film.n_frames == 11


@pytest.mark.full
def test_planets_that_pull_on_each_other_conserve_nothing_of_their_own(untrained, tmp_path):
    path = untrained(protocol="nbody", protocol_args={"n_points": 48, "n_bins": 100})
    results = evaluate("rollout", path, SETTINGS, tmp_path)
    assert "energy_error" not in find(results, "softmax", "rollout", "pretrained").metrics
    assert metric(results, "copy last", "rollout", "planet_error")[0] > 0


def test_what_cannot_be_probed_is_refused_with_the_fix(untrained):
    def refusal(*options, **changes):
        return PROBE.why_not(Checkpoint.load(untrained(*options, **changes)), SETTINGS)

    assert refusal(ForceModel) == "a ForceModel predicts no next row; take a NextTokenModel"
    short = refusal(protocol="fixed", protocol_args={"n_points": 60})
    assert "n_points=60" in short
    assert "88 or more" in short
    assert refusal() is None
