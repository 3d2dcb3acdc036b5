"""The force probes: heads, leaks, vectors on the planets, prediction files."""

import dataclasses

import lightning
import numpy as np
import pytest
import torch

from orbits import protocols, solar_system
from orbits.runs import artefact, folder
from symreg import predictions as symreg_predictions
from tests.worldmodel.probes.conftest import SIZES, SMALL
from tests.worldmodel.probes.evaluation import evaluate, find, interval
from tests.worldmodel.trainings import save
from worldmodel import probes
from worldmodel.controls.true_state_knn import NAME as KNN
from worldmodel.data.orbits import OrbitData
from worldmodel.models.orbit import ForceModel, NextTokenModel
from worldmodel.probes.bias.white_noise import WhiteNoiseModel
from worldmodel.probes.checkpoint import Checkpoint
from worldmodel.probes.force import force_vector, head, stopping
from worldmodel.probes.force.head import (
    ROWS,
    Draws,
    HeldOut,
    VectorModel,
    at,
    labelled,
    trained_head,
)
from worldmodel.probes.settings import Settings
from worldmodel.training.trainer import quiet_trainer

pytestmark = pytest.mark.full

SETTINGS = Settings(n_sequences=20, seeds=(0,), steps=4, labels=12)
G = 39.4784176044
MAGNITUDE, VECTOR, PREDICTIONS = map(probes.get, ("force_magnitude", "force_vector", "predictions"))


@pytest.fixture
def load(trained):
    """Return a function that loads a checkpoint of a few steps."""
    return lambda *args, **options: Checkpoint.load(trained(*args, **options))


def in_memory(model):
    """Return a checkpoint that has no file."""
    return Checkpoint("none.ckpt", model, seed=0, steps=0, law="newton")


@pytest.mark.parametrize("shape", [{"mlp": "swiglu"}, {"mlp": "none"}, {"norm": "rms"}])
def test_heads_take_any_backbone(tmp_path, shape):
    model = NextTokenModel(protocol_args=SIZES["identifiable"], **SMALL, **shape)
    checkpoint = Checkpoint.load(save(model, tmp_path / "one.ckpt"))
    ForceModel(**head.shape(checkpoint.model)).load_backbone(checkpoint.path)
    made = WhiteNoiseModel(checkpoint.model, seed=0)
    assert made.hparams["mlp"] == checkpoint.model.hparams["mlp"]
    assert next(iter(shape.values())) in checkpoint.row["size"]


@pytest.mark.parametrize("leak", [0, 2])
def test_forces_are_predicted_in_the_second_half_and_where_labels_leaked(load, leak):
    data = labelled(load(), SETTINGS, leak, seed=0)
    held_out = HeldOut(data, 15)
    batch = next(iter(held_out.batches()))
    np.testing.assert_array_equal(batch["sequence_id"], [*range(15), *range(20, 35)])
    there = batch["force"].isfinite().all(dim=-1).numpy()
    second_half = np.zeros(25, bool)
    second_half[13::2] = True
    leaked = protocols.get("identifiable", {**SIZES["identifiable"], "label_leak": leak})
    mask = leaked.label_mask("test", range(20))
    assert mask.sum() == 20 * leak
    np.testing.assert_array_equal(there[:15], second_half | mask[:15])
    np.testing.assert_array_equal(there[15:], np.tile(second_half, (15, 1)))
    assert len(data.training_sequences()) == 12 + (20 if leak else 0)


def test_points_of_a_head_are_told_apart(load):
    columns = trained_head(load(), SETTINGS, leak=2, seed=0, from_scratch=False)
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


def test_probes_share_the_training_of_a_head(load):
    of_magnitude = MAGNITUDE.needs(load(), SETTINGS)
    assert set(of_magnitude) == {"head_0_0", "head_2_0", "scratch_0"}
    assert len({cell.key for cell in of_magnitude.values()}) == 3
    (of_predictions,) = PREDICTIONS.needs(load(), SETTINGS).values()
    assert of_predictions.key == of_magnitude["head_0_0"].key
    more = dataclasses.replace(SETTINGS, seeds=(0, 1, 2), scratch=False)
    assert MAGNITUDE.needs(load(), more)["head_0_0"].key == of_predictions.key
    assert set(MAGNITUDE.needs(load(), more)) == {f"head_{x}_{y}" for x in (0, 2) for y in range(3)}


def test_scratch_takes_the_steps_of_both_trainings_and_random_weights(load, monkeypatch):
    checkpoint = dataclasses.replace(load(), steps=7, batch_size=128)
    total, loaded = [], []
    real = head.quiet_trainer
    monkeypatch.setattr(head, "quiet_trainer", lambda n=1: total.append(n) or real(n))
    monkeypatch.setattr(ForceModel, "load_backbone", lambda self, path: loaded.append(path))
    trained_head(checkpoint, SETTINGS, 0, 0, from_scratch=False)
    assert (max(total), loaded) == (4, [checkpoint.path])
    trained_head(checkpoint, SETTINGS, 0, 0, from_scratch=True)
    assert (max(total), loaded) == (4 + 14, [checkpoint.path]), "as many, in batches of 64"


def test_a_stopped_head_ends_with_the_weights_that_predict_held_out_labels_best(load):
    checkpoint = load()
    data = labelled(checkpoint, SETTINGS, 0, 0)
    batch = stopping.held_out(data, 12)
    assert batch["sequence_id"].tolist() == [10, 11]
    assert len(data.training_sequences()) == 10
    steps = 60
    model = ForceModel(lr=0.02, warmup_steps=1, **head.shape(checkpoint.model))
    stop = stopping.BestOnHeldOut(batch, steps)
    quiet_trainer(steps, callbacks=[stop]).fit(model, datamodule=data)
    assert len(stop.losses) == 20
    with torch.no_grad():
        left = float(model.eval()._loss(batch))
    assert left == pytest.approx(min(stop.losses), rel=1e-5)
    assert min(stop.losses) < stop.losses[-1], "a rate at which it overfits"


def test_only_stopped_heads_have_an_address_of_their_own(load):
    plain, stopped = (
        MAGNITUDE.needs(load(), dataclasses.replace(SETTINGS, stop_heads=x)) for x in (False, True)
    )
    assert "stop_heads" not in plain["head_0_0"].arguments["settings"]
    assert stopped["head_0_0"].arguments["settings"]["stop_heads"] is True
    assert not {x.key for x in plain.values()} & {x.key for x in stopped.values()}


@pytest.mark.full
def test_a_prediction_file_of_a_stopped_head_says_so(tmp_path, trained):
    rows = []
    for stops in (False, True):
        few = dataclasses.replace(SETTINGS, stop_heads=stops)
        (result,) = evaluate("predictions", trained(), few, tmp_path / str(stops))
        file = tmp_path / str(stops) / result.files["predictions"]
        rows.append(
            (result.case.setting.get("heads"), artefact.load_arrays(file)[1]["config"]["row"])
        )
    (plain, row), (stopped, other) = rows
    assert (plain, stopped) == (None, "stopped on held-out labels")
    assert other == {**row, "arm": f"{row['arm']}, stopped"}


@pytest.mark.full
def test_the_leak_is_probed_at_many_bins_and_points_with_stopped_heads(tmp_path, trained):
    path = trained("paper", protocol_args={"n_points": 128, "n_bins": 7000, "target": "log"})
    few = dataclasses.replace(SETTINGS, scratch=False, stop_heads=True, n_sequences=12)
    results = evaluate("force_magnitude", path, few, tmp_path)
    heads = [x for x in results if x.case.arm == "pretrained"]
    assert {x.case.setting["heads"] for x in heads} == {"stopped on held-out labels"}
    assert {x.case.arm for x in results} >= {"pretrained", "ridge", "untrained + ridge"}
    for result in results:
        if result.case.arm in ("pretrained", "ridge"):
            assert {"exponent_m1", "exponent_m2", "exponent_r", "r2_log"} <= set(result.metrics)


def by_case(results):
    return {(x.case.arm, x.case.setting.get("leak"), x.case.setting["rows"]): x for x in results}


@pytest.mark.full
def test_magnitudes_of_an_identifiable_world(tmp_path, trained):
    results = evaluate("force_magnitude", trained(), SETTINGS, tmp_path)
    found = by_case(results)
    assert set(found) == {
        *(("pretrained", 0, rows) for rows in ROWS[::2]),
        *(("pretrained", 2, rows) for rows in ROWS),
        *(("scratch", 0, rows) for rows in ROWS[::2]),
        *((arm, 0, rows) for arm in ("ridge", "untrained + ridge") for rows in ROWS[::2]),
        *((arm, 2, rows) for arm in ("ridge", "untrained + ridge") for rows in ROWS),
        *(("oracle", 0, rows) for rows in ROWS[::2]),
        *(("oracle", 2, rows) for rows in ROWS),
        *(("ceiling", None, rows) for rows in ROWS[::2]),
    }
    checkpoint = Checkpoint.load(trained())
    assert checkpoint.batch_size * checkpoint.steps < 64, "which one further step sees"
    assert found["scratch", 0, "unlabelled"].case.setting["steps"] == 4 + 1
    ceilings = {
        x.case.setting["answer"]: x
        for x in results
        if x.case.arm == "ceiling" and x.case.setting["rows"] == "unlabelled"
    }
    assert set(ceilings) == {"geometric mean", "mean"}
    for ceiling in ceilings.values():
        assert ceiling.value("r2_log") > 0.9
        assert ceiling.value("cosine") == pytest.approx(1, abs=1e-4)
    masses = [ceilings["geometric mean"].value(f"r2_log_{name}") for name in ("m1", "m2")]
    assert min(masses) > 0.8
    errors = [found["oracle", 2, rows].value("relative_error") for rows in ROWS]
    assert errors[1] < 0.8 * min(errors[0], errors[2])  # one of two neighbours is the point itself
    (picture,) = MAGNITUDE.draw(results, tmp_path)
    assert picture.images[0].is_file()


@pytest.mark.full
def test_where_masses_are_invisible_the_ceiling_is_an_expectation(tmp_path, trained):
    path = trained("fixed", ForceModel, n_train=12)
    results = evaluate("force_magnitude", path, SETTINGS, tmp_path)
    ceiling = find(results, arm="ceiling", rows=ROWS[0], answer="mean")
    told = find(results, arm="ceiling", rows=ROWS[0], answer="geometric mean")
    assert told.value("r2_log_m1") < 0.8
    assert "r2_log_m2" not in told.metrics, "this observer is told the star's mass"
    assert ceiling.value("exponent_m1") < 0.8
    assert interval(ceiling, "exponent_m1")[2] < 1
    assert ceiling.value("exponent_r") == pytest.approx(-2, abs=0.5)


def test_a_force_model_predicts_by_itself_and_its_fresh_sequences_never_leaked(tmp_path, trained):
    path = trained(kind=ForceModel, protocol_args={"label_leak": 2}, n_train=12, n_test=30)
    results = evaluate("force_magnitude", path, SETTINGS, tmp_path)
    found, arm = by_case(results), "force head, scratch"
    assert {arm for arm, *_ in found} == {arm, "ridge", "untrained + ridge", "oracle", "ceiling"}
    setting = found[arm, 2, "leaked labels"].case.setting
    assert (setting["labels"], setting["leak"]) == (12, 2)
    assert "steps" not in setting
    checkpoint = Checkpoint.load(path)
    columns = head.own_predictions(checkpoint, SETTINGS)
    assert set(at(columns, "fresh sequences")["sequence_id"]) == set(range(30, 50))
    (result,) = evaluate("predictions", path, SETTINGS, tmp_path)
    written = artefact.load_arrays(folder.file(tmp_path, result, "predictions"))[0]
    assert set(written["sequence_id"]) == set(range(30, 50)), "no labels leaked there"
    data = OrbitData(
        protocol_args={**SIZES["identifiable"]}, population="force", n_test=20, eval_batch_size=20
    )
    (expected,) = quiet_trainer().predict(checkpoint.model, dataloaders=data.test_dataloader())
    ours = columns["force_predicted"][columns["sequence_id"] < 20]
    known = set(expected["force_predicted"].tolist())
    assert known <= set(ours.tolist())


def test_worlds_without_labelled_forces_are_refused():
    lightning.seed_everything(0, verbose=False)
    args = {"n_points": 24, "n_bins": 64}
    many = in_memory(NextTokenModel(protocol="nbody", protocol_args=args, **SMALL))
    for probe in (MAGNITUDE, PREDICTIONS):
        assert "no labelled forces" in probe.refusal(many, SETTINGS)


@pytest.mark.parametrize("name", ["fixed", "paper"])
def test_vectors_are_compared_with_the_sun(name):
    solar = force_vector.SolarForces(protocols.get(name, {"n_points": 64}))
    assert np.all(solar.labelled.sum(axis=1) == 10)
    assert not np.any(solar.labelled & solar.others)
    assert np.all((solar.labelled | solar.others)[:, 1::2])
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


def test_the_vector_loss_is_the_mean_square_over_drawn_sequences(load):
    solar = force_vector.SolarForces(load("fixed").protocol)
    batch = solar.batch(solar.scaled, solar.labelled)
    drawn = next(iter(Draws(batch, seed=3)))
    assert drawn["draws"].sum() == 64
    again = next(iter(Draws(batch, seed=3)))
    torch.testing.assert_close(drawn["draws"], again["draws"])
    lightning.seed_everything(0, verbose=False)
    model = VectorModel(protocol="fixed", protocol_args=SIZES["fixed"], **SMALL)
    repeated = drawn["draws"].long()
    with torch.no_grad():
        whole = {n: v.repeat_interleave(repeated, dim=0) for n, v in batch.items()}
        rows = whole["force"].isfinite().all(dim=-1)
        error = model.head(model.hidden(whole))[rows] - whole["force"][rows]
        torch.testing.assert_close(model._loss(drawn), (error**2).mean())


@pytest.mark.full
def test_fine_tuning_learns_the_labelled_vectors(load):
    checkpoint = load("paper")
    solar = force_vector.SolarForces(checkpoint.protocol)
    predicted = force_vector.tuned_vectors(checkpoint, 120, 0, "pretrained")["vector"]
    wrong = np.mean((predicted - solar.scaled)[solar.labelled] ** 2)
    assert wrong < 0.5 * np.mean(solar.scaled[solar.labelled] ** 2)


def test_the_untrained_twins_of_two_checkpoints_differ(load):
    one = load("paper")
    other = dataclasses.replace(one, seed=one.seed + 1)
    twins = [force_vector.tuned_vectors(x, 1, 0, "untrained")["vector"] for x in (one, other)]
    assert not np.allclose(*twins)


@pytest.mark.full
def test_results_of_the_vector_probe(tmp_path, trained):
    settings = dataclasses.replace(SETTINGS, seeds=(0, 1, 2))
    results = evaluate("force_vector", trained("paper"), settings, tmp_path)
    assert len(results) == 5 * 9
    found = {(x.case.variant, x.case.arm, x.case.setting["planet"]): x for x in results}
    for planet in (*solar_system.PLANETS, "all"):
        sun = found["towards the Sun", "oracle", planet]
        assert sun.value("cosine") == pytest.approx(1)
        assert sun.value("angle_deg") == pytest.approx(0, abs=1e-4)
        assert "r2" not in sun.metrics
        middle, low, high = interval(found["softmax", "pretrained", planet], "angle_deg")
        assert low < middle < high
    each = [found["softmax", "untrained", p].value("cosine") for p in solar_system.PLANETS]
    assert found["softmax", "untrained", "all"].value("cosine") == pytest.approx(np.mean(each))
    nearest = found[KNN, "oracle", "all"].value("cosine")
    assert nearest > 0.8 > found["mean of the labels", "control", "all"].value("cosine")
    pictures = VECTOR.draw(results, tmp_path)
    assert len(pictures) == 3
    assert all(picture.images[0].is_file() for picture in pictures)


def test_worlds_that_do_not_hold_the_solar_system_are_refused(load):
    reason = VECTOR.refusal(load(), SETTINGS)
    assert "Jupiter leaves the box" in reason
    assert "paper or fixed" in reason
    few = in_memory(NextTokenModel(protocol="fixed", protocol_args={"n_points": 16}, **SMALL))
    assert "10 labels asked" in VECTOR.refusal(few, SETTINGS)


def test_symreg_reads_the_prediction_file(tmp_path, trained):
    (result,) = evaluate("predictions", trained(), SETTINGS, tmp_path)
    table = symreg_predictions.read(folder.file(tmp_path, result, "predictions"))
    checkpoint = Checkpoint.load(trained())
    assert len(table) == result.value("points") == 20 * 6
    assert dict(table.row) == {
        "model": "softmax", "protocol": "identifiable", "arm": "pretrained", "labels": "12",
        "seed": checkpoint.seed,
    }  # fmt: skip
    assert table.manifest["inputs"]["checkpoint"] == checkpoint.sha256
    trained_now = trained_head(checkpoint, SETTINGS, leak=0, seed=0, from_scratch=False)
    expected = at(trained_now, "unlabelled")["force_predicted"]
    np.testing.assert_array_equal(table.force_predicted, expected)
    assert table.cosine() == pytest.approx(result.value("cosine"), abs=1e-5)
    (picture,) = PREDICTIONS.draw([result], tmp_path)
    assert picture.images[0].is_file()
