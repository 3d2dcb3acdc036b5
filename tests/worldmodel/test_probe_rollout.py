"""The rollout probe: references, conserved quantities, errors, figures."""

import dataclasses

import lightning
import numpy as np
import pytest
import torch
from PIL import Image

from orbits import laws, protocols, solar_system
from worldmodel import probes, probing
from worldmodel.data import OrbitData
from worldmodel.probes import _motion
from worldmodel.probes._motion_held import Held, next_points
from worldmodel.tasks import ForceTask, NextTokenTask

G = 39.4784176044
PROBE = probes.get("rollout")
SETTINGS = probing.Settings(n_sequences=6, seeds=(3,))


def checkpoint(folder, task_class=NextTokenTask, **options):
    torch.manual_seed(0)
    task = task_class(n_layer=1, n_head=2, head_dim=8, **options)
    trainer = lightning.Trainer(
        accelerator="cpu", logger=False, enable_progress_bar=False, enable_model_summary=False
    )
    trainer.strategy.connect(task)
    path = folder / f"{options.get('protocol', 'identifiable')}.ckpt"
    trainer.save_checkpoint(path, weights_only=True)
    return probing.Subject.load(path)


def held(name="identifiable", n=8, **changes):
    protocol = dataclasses.replace(protocols.get(name), **changes)
    return Held(protocol, protocol.systems(0, "test", np.arange(n)))


def lines_of(subject, out):
    return probing.answer(subject, PROBE, out, SETTINGS)


def metrics(lines, name, asked, arm=None):
    return next(
        line["metrics"]
        for line in lines
        if line["row"]["model"] == name
        and line["setting"]["asked"] == asked
        and arm in (None, line["row"]["arm"])
    )


def test_references_are_the_last_points_of_the_same_body():
    asked = held("fixed", n=6, n_points=60)
    body, observed = asked.batch["body"], asked.observed
    found = _motion.references(observed, body, asked.steps)
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
    found = _motion.conserved("newton", circle, np.array([dt]), np.array([m1]), np.array([m2]))
    speed = a * np.sin(rate * dt) / dt
    np.testing.assert_allclose(found["angular_momentum"], np.full((1, 7), a * speed), rtol=1e-12)
    energy = speed**2 / 2 - G * (m1 + m2) / a
    np.testing.assert_allclose(found["energy"], np.full((1, 7), energy), rtol=1e-12)


@pytest.mark.parametrize("law", sorted(set(laws.names()) - {"inverse_cube"}))  # binds no orbit
def test_a_finely_sampled_true_orbit_conserves_both(law):
    asked = held(law=law, dts=(1e-4,))
    points, body = asked.batch["coordinates"], asked.batch["body"]
    missed = _motion.deviations(asked.protocol, asked.world, points, body, asked.n_prompt)
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
    missed = _motion.deviations(asked.protocol, asked.world, points, body, asked.n_prompt)
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
    task = NextTokenTask(n_layer=1, n_head=2, head_dim=8).eval()
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
def answered(tmp_path_factory):
    out = tmp_path_factory.mktemp("answered")
    return lines_of(checkpoint(out), out / "out"), out / "out"


def test_lines_hold_errors_beside_references_that_are_in_order(answered):
    lines, _ = answered
    asked = held(n=6)
    true, body = asked.batch["coordinates"], asked.batch["body"]
    star = (body == 0) & (np.arange(49) >= 25)
    width = 8 / 512
    bins = (np.floor(true / width) + 0.5) * width
    error = np.linalg.norm(bins - true, axis=-1)[star].mean()
    assert metrics(lines, "true orbit in bins", "next point")["star_error"][0] == pytest.approx(
        error
    )
    rows = np.flatnonzero(star[0])
    copied = np.linalg.norm(bins[:, rows - 2] - true[:, rows], axis=-1).mean()
    found = metrics(lines, "copy last", "next point")["star_error"]
    assert found[0] == pytest.approx(copied)
    assert found[1] < found[0] < found[2]
    rest = np.linalg.norm(bins[:, 24:25] - true[:, rows], axis=-1)
    line = next(
        x for x in lines if x["row"]["model"] == "copy last" and x["setting"]["asked"] == "rollout"
    )
    np.testing.assert_allclose(line["curves"]["star_error"]["mean"], rest.mean(axis=0))
    for quantity in ("planet_error", "star_error"):
        for question in ("next point", "rollout"):
            fit, copy = (
                metrics(lines, name, question)[quantity][0] for name in ("orbit fit", "copy last")
            )
            random = metrics(lines, "softmax", question, "pretrained")[quantity][0]
            assert fit < copy < random
    exact = metrics(lines, "true orbit in bins", "rollout")
    assert exact["energy_error"][0] < 0.3
    assert 0 < exact["angular_momentum_drift"][0] < 0.01
    untrained = metrics(lines, "softmax", "rollout", "untrained")
    assert untrained["angular_momentum_drift"][1] > exact["angular_momentum_drift"][2]
    assert metrics(lines, "softmax", "rollout", "untrained")["energy_error"][0] > 0.5


def test_figures_come_from_lines_and_files_alone(answered):
    lines, out = answered
    paths = PROBE.draw(lines, out)
    assert set(paths) == set(PROBE.captions)
    for name, path in paths.items():
        assert path.stat().st_size < 2e6
        with Image.open(path) as picture:
            assert picture.n_frames == (24 if name == "rollout_animation" else 1)


def test_the_solar_system_is_shown_where_it_fits(tmp_path):
    args = {"n_points": 99, "n_bins": 100}
    lines = lines_of(checkpoint(tmp_path, protocol="fixed", protocol_args=args), tmp_path / "out")
    file = next(x["files"]["orbits"] for x in lines if x["files"])
    kept = np.load(tmp_path / "out" / file)
    truth = solar_system.single_sequence(protocols.get("fixed", args))
    np.testing.assert_array_equal(kept["film_true"], truth["coordinates"][0])
    assert kept["film_is_solar"]
    assert kept["film_rolled"].shape == (100, 2)
    assert not [x for x in lines if x["row"]["arm"] == "ceiling"], "one planet is fitted"
    paths = PROBE.draw(lines, tmp_path / "out")
    with Image.open(paths["rollout_animation"]) as film:
        assert film.n_frames == 11


def test_planets_that_pull_on_each_other_conserve_nothing_of_their_own(tmp_path):
    args = {"n_points": 48, "n_bins": 100}
    lines = lines_of(checkpoint(tmp_path, protocol="nbody", protocol_args=args), tmp_path / "out")
    assert "energy_error" not in metrics(lines, "softmax", "rollout", "pretrained")
    assert metrics(lines, "copy last", "rollout")["planet_error"][0] > 0


def test_what_cannot_be_asked_is_refused_with_the_fix(tmp_path):
    force = checkpoint(tmp_path, ForceTask)
    assert (
        PROBE.refusal(force, SETTINGS) == "a ForceTask predicts no next row; take a NextTokenTask"
    )
    short = checkpoint(tmp_path, protocol="fixed", protocol_args={"n_points": 60})
    assert "n_points=60" in PROBE.refusal(short, SETTINGS)
    assert "88 or more" in PROBE.refusal(short, SETTINGS)
    assert PROBE.refusal(checkpoint(tmp_path), SETTINGS) is None
