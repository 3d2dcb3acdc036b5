"""OrbitData: batches are a pure function of the step."""

import subprocess
import sys

import numpy as np
import pytest
import torch

from orbits import protocols
from tests.worldmodel.trainings import save
from worldmodel.data.orbits import OrbitData
from worldmodel.data.sequences import StepSampler
from worldmodel.models.orbit import ForceModel, NextTokenModel
from worldmodel.models.predictions import read_rows


def test_unlimited_stream_never_repeats_a_sequence():
    sampler = StepSampler(batch_size=8, n_sequences=None, seed=0)
    seen = [index for step in range(20) for index in sampler.indices(step)]
    assert sorted(seen) == list(range(160))


@pytest.mark.parametrize("n_sequences", [10, 64, 100])
def test_limited_epochs_are_permutations(n_sequences):
    sampler = StepSampler(batch_size=20, n_sequences=n_sequences, seed=3)
    places = [i for step in range(3 * n_sequences) for i in sampler.indices(step)]
    for epoch in range(3):
        one = places[epoch * n_sequences : (epoch + 1) * n_sequences]
        assert sorted(one) == list(range(n_sequences))
    assert places[:n_sequences] != places[n_sequences : 2 * n_sequences]


def test_ranks_share_a_step_without_overlap():
    whole = StepSampler(8, 50, seed=1)
    ranks = [StepSampler(4, 50, seed=1, rank=r, world_size=2) for r in range(2)]
    for step in range(30):
        assert whole.indices(step) == ranks[0].indices(step) + ranks[1].indices(step)


def test_iteration_starts_at_the_step_training_stands_at():
    sampler = StepSampler(4, 30, seed=0, first_step=lambda: 7)
    assert next(iter(sampler)) == sampler.indices(7)


def test_batches_are_those_of_the_protocol():
    data = OrbitData(population="force", n_test=30)
    batch = next(iter(data.test_dataloader()))
    expected = protocols.get("identifiable").batch(0, "test", np.arange(30), "force")
    assert batch["tokens"].dtype == torch.int64
    np.testing.assert_array_equal(batch["tokens"].numpy(), expected["tokens"])
    np.testing.assert_allclose(batch["state"].numpy(), expected["state"], rtol=1e-6, equal_nan=True)
    second_half = batch["force"][:, 25:].numpy()
    np.testing.assert_allclose(second_half, expected["force"][:, 25:], rtol=1e-6, equal_nan=True)
    assert batch["force"][:, :25].isnan().all(), "no force is asked before there is a motion to see"


def test_force_statistics_come_from_the_labelled_sequences_alone():
    few, many = (OrbitData(population="force", n_train=n).force_statistics() for n in (5, 4000))
    labelled = protocols.get("identifiable").batch(0, "train", np.arange(5), "force")["force"]
    magnitude = np.linalg.norm(labelled, axis=-1)
    magnitude = np.log(magnitude[np.isfinite(magnitude)])
    assert few == pytest.approx((magnitude.mean(), magnitude.std()))
    assert few != pytest.approx(many)


def test_another_train_seed_changes_the_training_sequences_alone():
    one, other = (OrbitData(n_train=6, n_test=6, train_seed=seed) for seed in (None, 9))
    for split in ("val", "test"):
        a, b = (next(iter(getattr(d, f"{split}_dataloader")()))["tokens"] for d in (one, other))
        assert torch.equal(a, b)
    a, b = (next(iter(d.labelled_dataloader()))["tokens"] for d in (one, other))
    assert not torch.equal(a, b)


PAPER = {"protocol": "paper", "population": "force", "n_test": 12, "n_train": 9}


def paper(label_leak, **changes):
    args = {"n_points": 60, "label_leak": label_leak}
    return OrbitData(protocol_args=args, **PAPER | changes)


def test_fine_tuning_sees_the_labels_of_training_sequences_alone():
    data = paper(label_leak=0)
    batch = next(iter(data.labelled_dataloader()))
    assert len(batch["tokens"]) == 9
    rows = read_rows(batch)
    assert rows[:, 31::2].all()
    assert rows.sum() == 9 * 15
    assert set(next(iter(data.train_dataloader()))["sequence_id"].tolist()) == set(range(9))


def test_two_labels_of_each_test_sequence_leak_where_that_is_asked_for():
    batch = next(iter(paper(label_leak=2).labelled_dataloader()))
    assert len(batch["tokens"]) == 9 + 12
    clean = next(iter(paper(label_leak=0).labelled_dataloader()))
    for name, values in clean.items():
        torch.testing.assert_close(batch[name][:9], values, rtol=0, atol=0, equal_nan=True)
    test = protocols.get("paper", {"n_points": 60}).batch(0, "test", np.arange(12), "force")
    np.testing.assert_array_equal(batch["tokens"][9:], test["tokens"])
    leaked = read_rows(batch)[9:].numpy()
    # The published choice: RandomState(0) takes two of the odd rows, sequence by sequence.
    draws = np.random.RandomState(0)
    for row in leaked:
        chosen = 1 + 2 * draws.permutation(30)[:2]
        assert sorted(np.flatnonzero(row)) == sorted(chosen)
    assert leaked[:, :31].any(), "they count wherever they are"
    np.testing.assert_allclose(batch["force"][9:].numpy()[leaked], test["force"][leaked], rtol=1e-6)


def test_leaked_labels_are_part_of_every_epoch_and_evaluation_stays_as_it_is():
    leaky, clean = paper(label_leak=2, batch_size=7), paper(label_leak=0)
    loader = iter(leaky.train_dataloader())
    epoch = [next(loader) for _ in range(3)]  # 3 x 7 = 9 + 12 sequences
    few = [int((read_rows(batch).sum(dim=1) == 2).sum()) for batch in epoch]
    assert sum(few) == 12
    for split in ("val", "test"):
        one, other = (next(iter(getattr(d, f"{split}_dataloader")())) for d in (leaky, clean))
        assert torch.equal(read_rows(one), read_rows(other))


def test_leaked_labels_need_a_budget_to_leak_into():
    with pytest.raises(ValueError, match="n_train"):
        paper(label_leak=2, n_train=None).train_dataloader()


def test_a_backbone_serves_every_way_of_labelling(tmp_path):
    size = {"protocol": "paper", "n_layer": 1, "n_head": 2, "head_dim": 8}
    task = NextTokenModel(protocol_args={"n_points": 60}, **size)
    save(task, tmp_path / "x.ckpt")
    labelled = {"n_points": 60, "label_leak": 2, "target": "log"}
    ForceModel(protocol_args=labelled, **size).load_backbone(tmp_path / "x.ckpt")
    named = {**labelled, "law": "newton", "n_bins": 7000}  # the defaults
    ForceModel(protocol_args=named, **size).load_backbone(tmp_path / "x.ckpt")
    with pytest.raises(ValueError, match="protocol_args"):
        ForceModel(protocol_args={**labelled, "law": "mond"}, **size).load_backbone(
            tmp_path / "x.ckpt"
        )


def test_a_backbone_that_learnt_leaked_labels_is_no_honest_one(tmp_path):
    """A force model can be a backbone too; one that saw labels of test sequences says so."""
    size = {"protocol": "paper", "n_layer": 1, "n_head": 2, "head_dim": 8}
    tasks = {
        leak: ForceModel(protocol_args={"n_points": 60, "label_leak": leak}, **size)
        for leak in (0, 2)
    }
    for leak, task in tasks.items():
        save(task, tmp_path / f"{leak}.ckpt")
    tasks[0].load_backbone(tmp_path / "0.ckpt")
    tasks[2].load_backbone(tmp_path / "0.ckpt")
    tasks[2].load_backbone(tmp_path / "2.ckpt")
    with pytest.raises(ValueError, match="trained with label_leak=2 on labels of test sequences"):
        tasks[0].load_backbone(tmp_path / "2.ckpt")


def test_a_shift_is_asked_and_never_trained_on():
    data = OrbitData(protocol_args={"shift": "closer"}, population="force", n_train=8, n_test=3)
    (batch,) = data.test_dataloader()
    assert len(batch["tokens"]) == 3
    for refused in (
        data.labelled_dataloader,
        data.train_dataloader,
        data.val_dataloader,
        lambda: data.setup("fit"),
    ):
        with pytest.raises(ValueError, match="'closer' is asked and never trained"):
            refused()
    data.setup("predict")


@pytest.mark.full
def test_another_law_moves_the_bodies():
    one, other = (OrbitData(protocol_args={"law": law}, n_test=5) for law in ("newton", "harmonic"))
    a, b = (next(iter(d.test_dataloader()))["tokens"] for d in (one, other))
    assert not torch.equal(a, b)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"protocol": "kepler"}, "choose from identifiable, free_step, neutral_step, paper"),
        ({"batch_size": 0}, "batch_size must be at least 1, got 0"),
        ({"n_train": 0}, "n_train must be at least 1, got 0"),
        ({"seed": -1}, "seed must be at least 0, got -1"),
        ({"num_workers": -1}, "num_workers must be at least 0, got -1"),
        ({"batch_size": 2.5}, "batch_size must be a whole number, got 2.5"),
        ({"n_val": "3"}, "n_val must be a whole number, got '3'"),
        ({"protocol_args": {"bins": 3}}, "unknown protocol key 'bins'; did you mean n_bins"),
        ({"protocol_args": {"law": "newtn"}}, "unknown law 'newtn'; did you mean newton"),
        ({"protocol_args": {"label_leak": 1}}, "label_leak must be 0 or 2, got 1"),
        (
            {"protocol_args": {"shift": "closer"}},
            "'identifiable' under shift 'closer' has no population 'pretrain'; set data.population="
            "force",
        ),
        ({"protocol": "nbody", "population": "force"}, "'nbody' has no population 'force'"),
        ({"protocol": "paper", "train_seed": 40}, "seeds 0 and 40 share trajectories"),
        ({"protocol": "paper", "train_seed": 600_000_000}, "seed must be at most"),
    ],
)
def test_bad_arguments_are_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        OrbitData(**arguments)


@pytest.mark.full
def test_a_program_that_leaves_a_loader_before_its_last_batch_ends():
    code = (
        "from worldmodel.data.orbits import OrbitData\n"
        "batches = iter(OrbitData(batch_size=2, num_workers=1).train_dataloader())\n"
        "print(len(next(batches)['tokens']))"
    )
    ended = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=300
    )
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "2\n", "")
