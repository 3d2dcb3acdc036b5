"""The force probes: heads, leaks, vectors on the planets, prediction files."""

import dataclasses
import logging
import warnings

import lightning
import numpy as np
import pytest
import torch

from orbits import artefacts, protocols, solar_system
from symreg import predictions as symreg_predictions
from worldmodel.data import OrbitData
from worldmodel.probes import _force_head, force_magnitude, force_vector, predictions
from worldmodel.probes._force_head import ROWS, Draws, HeldOut, VectorTask, at, finetuned, labelled
from worldmodel.probes._white_noise import WhiteNoiseTask
from worldmodel.probing import Settings, Store, Subject
from worldmodel.quiet import quiet_trainer
from worldmodel.tasks import ForceTask, NextTokenTask

SMALL = {"n_layer": 1, "n_head": 2, "head_dim": 8}
SIZES = {
    "identifiable": {"n_points": 24, "n_bins": 64},
    "fixed": {"n_points": 40, "n_bins": 7000},
    "paper": {"n_points": 64, "n_bins": 2000},
}
SETTINGS = Settings(n_sequences=20, seeds=(0,), steps=4, labels=12)
G = 39.4784176044


@pytest.fixture(autouse=True)
def quiet():
    logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
    warnings.simplefilter("ignore")
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # the models are tiny: more threads only wait for each other
    yield
    torch.set_num_threads(threads)


def trained(
    folder, protocol="identifiable", task=NextTokenTask, steps=2, protocol_args=None, **data
):
    """A checkpoint of a few steps."""
    args = {**SIZES[protocol], **(protocol_args or {})}
    population = "force" if task is ForceTask else "pretrain"
    made = OrbitData(
        protocol=protocol, protocol_args=args, population=population, batch_size=4, **data
    )
    lightning.seed_everything(0, verbose=False)
    run = quiet_trainer(steps)
    run.fit(task(protocol=protocol, protocol_args=args, **SMALL), datamodule=made)
    path = folder / f"{protocol}-{task.__name__}.ckpt"
    run.save_checkpoint(path)
    return Subject.load(path)


@pytest.fixture(scope="module")
def subjects(tmp_path_factory):
    folder, made = tmp_path_factory.mktemp("checkpoints"), {}

    def subject(protocol="identifiable"):
        if protocol not in made:
            made[protocol] = trained(folder, protocol)
        return made[protocol]

    return subject


def a_store(folder, probe="force_magnitude"):
    settings = dataclasses.asdict(SETTINGS)
    return Store(folder, {"probe": probe, "checkpoint": "c", "settings": settings})


@pytest.mark.parametrize("shape", [{"mlp": "swiglu"}, {"mlp": "none"}, {"norm": "rms"}])
def test_heads_take_any_backbone(tmp_path, shape):
    task = NextTokenTask(protocol_args=SIZES["identifiable"], **SMALL, **shape)
    run = quiet_trainer(1)
    run.strategy.connect(task)
    run.save_checkpoint(tmp_path / "one.ckpt")
    subject = Subject.load(tmp_path / "one.ckpt")
    ForceTask(**_force_head.shape(subject.task)).load_backbone(subject.path)
    assert WhiteNoiseTask(subject.task, seed=0).hparams["mlp"] == subject.task.hparams["mlp"]
    assert next(iter(shape.values())) in subject.row["size"]


@pytest.mark.parametrize("leak", [0, 2])
def test_forces_are_asked_in_the_second_half_and_where_labels_leaked(subjects, leak):
    data = labelled(subjects(), SETTINGS, leak, seed=0)
    held_out = HeldOut(data, 15)
    batch = next(iter(held_out.batches()))
    np.testing.assert_array_equal(batch["sequence_id"], [*range(15), *range(20, 35)])
    asked = batch["force"].isfinite().all(dim=-1).numpy()
    second_half = np.zeros(25, bool)
    second_half[13::2] = True
    leaked = protocols.get("identifiable", {**SIZES["identifiable"], "label_leak": leak})
    mask = leaked.label_mask("test", range(20))
    assert mask.sum() == 20 * leak
    np.testing.assert_array_equal(asked[:15], second_half | mask[:15])
    np.testing.assert_array_equal(asked[15:], np.tile(second_half, (15, 1)))
    assert len(data.training_sequences()) == 12 + (20 if leak else 0)


def test_a_head_is_trained_once_and_answers_are_told_apart(tmp_path, subjects, monkeypatch):
    store = a_store(tmp_path)
    columns = finetuned(subjects(), SETTINGS, store, leak=2, seed=0)
    mask = protocols.get("identifiable", {**SIZES["identifiable"], "label_leak": 2}).label_mask(
        "test", range(20)
    )
    count = {rows: len(at(columns, rows)["rows"]) for rows in ROWS}
    assert count["leaked labels"] == 40
    assert count["unlabelled"] == 20 * 6 - mask[:, 13:].sum()
    assert count["fresh sequences"] == 20 * 6
    for rows, ids in (("unlabelled", range(20)), ("fresh sequences", range(20, 40))):
        assert set(at(columns, rows)["sequence_id"]) == set(ids)
    force = G * columns["m1"] * columns["m2"] / columns["r"] ** 2
    np.testing.assert_allclose(columns["force"], force, rtol=1e-4)

    def refuse(*_, **__):
        raise AssertionError("trained again")

    monkeypatch.setattr(lightning.Trainer, "fit", refuse)
    again = finetuned(subjects(), SETTINGS, a_store(tmp_path, "predictions"), leak=2, seed=0)
    np.testing.assert_array_equal(again["force_predicted"], columns["force_predicted"])
    with pytest.raises(AssertionError, match="trained again"):
        finetuned(subjects(), SETTINGS, store, leak=2, seed=1)


def test_scratch_takes_the_steps_of_both_trainings_and_random_weights(
    tmp_path, subjects, monkeypatch
):
    subject = dataclasses.replace(subjects(), steps=7, batch_size=128)
    total, loaded = [], []
    real = _force_head.quiet_trainer
    monkeypatch.setattr(_force_head, "quiet_trainer", lambda n=1: total.append(n) or real(n))
    monkeypatch.setattr(ForceTask, "load_backbone", lambda self, path: loaded.append(path))
    finetuned(subject, SETTINGS, a_store(tmp_path), 0, 0)
    assert (max(total), loaded) == (4, [subject.path])
    finetuned(subject, SETTINGS, a_store(tmp_path), 0, 0, scratch=True)
    assert (max(total), loaded) == (4 + 14, [subject.path]), "as many sequences, in batches of 64"


def by_name(lines):
    return {
        (line["arm"], line["setting"].get("leak"), line["setting"]["rows"]): line for line in lines
    }


def test_magnitudes_of_an_identifiable_world(tmp_path, subjects):
    lines = force_magnitude.PROBE.measure(subjects(), SETTINGS, a_store(tmp_path))
    found = by_name(lines)
    assert set(found) == {
        *(("pretrained", 0, rows) for rows in ROWS[::2]),
        *(("pretrained", 2, rows) for rows in ROWS),
        *(("scratch", 0, rows) for rows in ROWS[::2]),
        *(("untrained + ridge", 0, rows) for rows in ROWS[::2]),
        *(("oracle", 0, rows) for rows in ROWS[::2]),
        *(("oracle", 2, rows) for rows in ROWS),
        *(("ceiling", None, rows) for rows in ROWS[::2]),
    }
    assert subjects().batch_size * subjects().steps < 64, "which one further step sees"
    assert found["scratch", 0, "unlabelled"]["setting"]["steps"] == 4 + 1
    ceilings = {
        line["setting"]["answer"]: line["metrics"]
        for line in lines
        if line["arm"] == "ceiling" and line["setting"]["rows"] == "unlabelled"
    }
    assert set(ceilings) == {"geometric mean", "mean"}
    for ceiling in ceilings.values():
        assert ceiling["r2_log"][0] > 0.9
        assert ceiling["cosine"][0] == pytest.approx(1, abs=1e-4)
    assert min(ceilings["geometric mean"][f"r2_log_{name}"][0] for name in ("m1", "m2")) > 0.8
    errors = [found["oracle", 2, rows]["metrics"]["relative_error"][0] for rows in ROWS]
    assert errors[1] < 0.8 * min(errors[0], errors[2])  # one of two neighbours is the point itself
    rows = [
        {
            **line,
            "row": {**subjects().row, "model": line["name"], "arm": line["arm"]},
            "subject": subjects().row,
        }
        for line in lines
    ]
    drawn = force_magnitude.PROBE.draw(rows, tmp_path)
    assert set(drawn) == set(force_magnitude.PROBE.captions)
    assert all(path.is_file() for path in drawn.values())


def test_scratch_can_be_left_out(tmp_path, subjects):
    settings, store = dataclasses.replace(SETTINGS, scratch=False), a_store(tmp_path)
    lines = force_magnitude.PROBE.measure(subjects(), settings, store)
    assert "scratch" not in {line["arm"] for line in lines}


def test_where_masses_are_invisible_the_ceiling_is_an_expectation(tmp_path):
    subject = trained(tmp_path, "fixed", ForceTask, n_train=12)
    lines = force_magnitude.PROBE.measure(subject, SETTINGS, a_store(tmp_path))
    ceiling = by_name(lines)["ceiling", None, "unlabelled"]["metrics"]
    (told,) = (x for x in lines if x["setting"] == {"answer": "geometric mean", "rows": ROWS[0]})
    assert told["metrics"]["r2_log_m1"][0] < 0.8
    assert "r2_log_m2" not in told["metrics"], "this observer is told the star's mass"
    assert ceiling["exponent_m1"][0] < 0.8
    assert ceiling["exponent_m1"][2] < 1
    assert ceiling["exponent_r"][0] == pytest.approx(-2, abs=0.5)


def test_a_force_model_answers_itself_and_its_fresh_sequences_never_leaked(tmp_path):
    subject = trained(
        tmp_path, task=ForceTask, protocol_args={"label_leak": 2}, n_train=12, n_test=30
    )
    lines = by_name(force_magnitude.PROBE.measure(subject, SETTINGS, a_store(tmp_path)))
    scratch = "force head, scratch"
    assert {arm for arm, *_ in lines} == {scratch, "untrained + ridge", "oracle", "ceiling"}
    assert lines[scratch, 2, "leaked labels"]["setting"] == {
        "leak": 2, "labels": 12, "rows": "leaked labels"
    }  # fmt: skip
    columns = _force_head.own_answers(subject, SETTINGS, a_store(tmp_path))
    assert set(at(columns, "fresh sequences")["sequence_id"]) == set(range(30, 50))
    (line,) = predictions.PROBE.measure(subject, SETTINGS, a_store(tmp_path, "predictions"))
    written = artefacts.load_arrays(tmp_path / line["files"]["predictions"])[0]
    assert set(written["sequence_id"]) == set(range(30, 50)), "nobody's labels leaked there"
    data = OrbitData(
        protocol_args={**SIZES["identifiable"]}, population="force", n_test=20, eval_batch_size=20
    )
    run = quiet_trainer()
    (expected,) = run.predict(subject.task, dataloaders=data.test_dataloader())
    ours = columns["force_predicted"][columns["sequence_id"] < 20]
    known = set(expected["force_predicted"].tolist())
    assert known <= set(ours.tolist())


def test_worlds_without_labelled_forces_are_refused(tmp_path):
    lightning.seed_everything(0, verbose=False)
    task = NextTokenTask(protocol="nbody", protocol_args={"n_points": 24, "n_bins": 64}, **SMALL)
    subject = Subject(tmp_path, "", task, 0, 0, "newton")
    for probe in (force_magnitude.PROBE, predictions.PROBE):
        assert "no labelled forces" in probe.refusal(subject, SETTINGS)


@pytest.mark.parametrize("name", ["fixed", "paper"])
def test_vectors_are_compared_with_the_sun(name):
    solar = force_vector.SolarForces(protocols.get(name, {"n_points": 64}))
    assert np.all(solar.labelled.sum(axis=1) == 10)
    assert not np.any(solar.labelled & solar.asked)
    assert np.all((solar.labelled | solar.asked)[:, 1::2])
    perfect, opposite = solar.measured(solar.scaled), solar.measured(-solar.scaled)
    for metric, value, negative in (("cosine", 1, -1), ("r2", 1, -3), ("angle_deg", 0, 180)):
        np.testing.assert_allclose(perfect[metric], value, rtol=0, atol=1e-5)
        np.testing.assert_allclose(opposite[metric], negative, rtol=0, atol=1e-5)
    turn = np.radians(30)
    turned = solar.force @ np.array([[np.cos(turn), np.sin(turn)], [-np.sin(turn), np.cos(turn)]])
    found = solar.measured(turned / solar.scale[:, None])
    np.testing.assert_allclose(found["angle_deg"], 30, atol=1e-6)


def test_the_force_is_towards_where_the_sun_is_seen():
    solar = force_vector.SolarForces(protocols.get("paper", {"n_points": 64}))
    places = solar.observed["coordinates"]
    towards = places[:, 2::2] - places[:, 1::2]
    force = solar.force[:, 1::2]
    lengths = np.linalg.norm(force, axis=-1) * np.linalg.norm(towards, axis=-1)
    np.testing.assert_allclose(np.sum(force * towards, axis=-1) / lengths, 1, rtol=1e-9)


def test_the_vector_loss_is_the_mean_square_over_drawn_sequences(subjects):
    solar = force_vector.SolarForces(subjects("fixed").protocol)
    batch = solar.batch(solar.scaled, solar.labelled)
    drawn = next(iter(Draws(batch, seed=3)))
    assert drawn["draws"].sum() == 64
    again = next(iter(Draws(batch, seed=3)))
    torch.testing.assert_close(drawn["draws"], again["draws"])
    lightning.seed_everything(0, verbose=False)
    task = VectorTask(protocol="fixed", protocol_args=SIZES["fixed"], **SMALL)
    repeated = drawn["draws"].long()
    with torch.no_grad():
        whole = {n: v.repeat_interleave(repeated, dim=0) for n, v in batch.items()}
        rows = whole["force"].isfinite().all(dim=-1)
        error = task.head(task.hidden(whole))[rows] - whole["force"][rows]
        torch.testing.assert_close(task._loss(drawn), (error**2).mean())


def test_fine_tuning_learns_the_labelled_vectors(subjects):
    subject = subjects("paper")
    solar = force_vector.SolarForces(subject.protocol)
    answer = force_vector.tuned_vectors(subject, 120, 0, "pretrained")["vector"]
    wrong = np.mean((answer - solar.scaled)[solar.labelled] ** 2)
    assert wrong < 0.5 * np.mean(solar.scaled[solar.labelled] ** 2)


def test_the_untrained_twins_of_two_checkpoints_differ(subjects):
    one = subjects("paper")
    other = dataclasses.replace(one, seed=one.seed + 1)
    twins = [force_vector.tuned_vectors(x, 1, 0, "untrained")["vector"] for x in (one, other)]
    assert not np.allclose(*twins)


def test_lines_of_the_vector_probe(tmp_path, subjects):
    subject, store = subjects("paper"), a_store(tmp_path, "force_vector")
    settings = dataclasses.replace(SETTINGS, seeds=(0, 1, 2))
    assert force_vector.PROBE.refusal(subject, settings) is None
    lines = force_vector.PROBE.measure(subject, settings, store)
    assert len(lines) == 5 * 9
    metrics = {(x["name"], x["arm"], x["setting"]["planet"]): x["metrics"] for x in lines}
    for planet in (*solar_system.PLANETS, "all"):
        sun = metrics["towards the Sun", "oracle", planet]
        assert sun["cosine"] == pytest.approx(1)
        assert sun["angle_deg"] == pytest.approx(0, abs=1e-4)
        assert "r2" not in sun
        middle, low, high = metrics["softmax", "pretrained", planet]["angle_deg"]
        assert low < middle < high
    each = [metrics["softmax", "untrained", p]["cosine"][0] for p in solar_system.PLANETS]
    assert metrics["softmax", "untrained", "all"]["cosine"][0] == pytest.approx(np.mean(each))
    nearest = metrics["k-NN oracle", "oracle", "all"]["cosine"]
    assert nearest > 0.8 > metrics["mean of the labels", "control", "all"]["cosine"]
    rows = [
        {
            "files": {},
            **line,
            "row": {**subject.row, "model": line["name"], "arm": line["arm"]},
            "subject": subject.row,
        }
        for line in lines
    ]
    drawn = force_vector.PROBE.draw(rows, tmp_path)
    assert set(drawn) == set(force_vector.PROBE.captions)
    assert all(path.is_file() for path in drawn.values())


def test_worlds_that_do_not_hold_the_solar_system_are_refused(subjects, tmp_path):
    reason = force_vector.PROBE.refusal(subjects(), SETTINGS)
    assert "Jupiter leaves the box" in reason
    assert "paper or fixed" in reason
    task = NextTokenTask(protocol="fixed", protocol_args={"n_points": 16}, **SMALL)
    short = Subject(tmp_path, "", task, 0, 0, "newton")
    assert "10 labels asked" in force_vector.PROBE.refusal(short, SETTINGS)


def test_symreg_reads_the_prediction_file(tmp_path, subjects):
    (line,) = predictions.PROBE.measure(subjects(), SETTINGS, a_store(tmp_path, "predictions"))
    table = symreg_predictions.read(tmp_path / line["files"]["predictions"])
    assert len(table) == line["metrics"]["points"] == 20 * 6
    assert dict(table.row) == {
        "model": "softmax", "protocol": "identifiable", "arm": "pretrained", "labels": "12",
        "seed": subjects().seed,
    }  # fmt: skip
    assert table.manifest["inputs"]["checkpoint"] == subjects().sha256
    assert table.cosine() == pytest.approx(line["metrics"]["cosine"][0], abs=1e-5)
    row = {**subjects().row, "model": line["name"], "arm": line["arm"]}
    drawn = predictions.PROBE.draw([{**line, "row": row, "subject": subjects().row}], tmp_path)
    (path,) = drawn.values()
    assert path.is_file()
