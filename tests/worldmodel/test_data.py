"""OrbitData: batches are a pure function of the step."""

import numpy as np
import pytest
import torch

from orbits import protocols
from worldmodel.data import OrbitData, StepSampler


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
    np.testing.assert_allclose(batch["force"].numpy(), expected["force"], rtol=1e-6, equal_nan=True)


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


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"protocol": "kepler"}, "identifiable, paper"),
        ({"batch_size": 0}, "batch_size"),
        ({"n_train": 0}, "unlimited"),
        ({"protocol_args": {"bins": 3}}, "n_bins"),
    ],
)
def test_bad_arguments_are_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        OrbitData(**arguments)
