"""The labelled rows of a force head's training, once and in order."""

import numpy as np
import pytest
import torch

from worldmodel.controls.labelled_images import LabelledImages, labels_as_trained
from worldmodel.data.orbits import OrbitData
from worldmodel.data.symmetry import images


def data(n_images=True):
    return OrbitData(population="force", n_train=5, n_test=5, images=n_images, eval_batch_size=3)


def joined(loader):
    batches = list(loader)
    return {name: torch.cat([batch[name] for batch in batches]) for name in batches[0]}


def rows(batch):
    return batch["force"].isfinite().all(dim=-1)


@pytest.mark.parametrize("n_images", [1, 2, 8])
def test_every_image_has_its_second_half_of_forces(n_images):
    batch = joined(labels_as_trained(data(), n_images))
    assert batch["sequence_id"].tolist() == np.repeat(range(5), n_images).tolist()
    assert rows(batch).sum() == 5 * n_images * 12
    assert not rows(batch)[:, :25].any()


def test_two_images_hold_all_24_forces_of_a_sequence_and_eight_each_of_them_four_times():
    whole = joined(data()._ordered(data().training_sequences()))
    true = whole["force"][rows(whole)].norm(dim=-1)
    for n_images, times in ((2, 1), (8, 4)):
        batch = joined(labels_as_trained(data(), n_images))
        found = batch["force"][rows(batch)].norm(dim=-1)
        torch.testing.assert_close(found.sort().values, true.repeat(times).sort().values)


def test_all_images_are_those_of_the_symmetries():
    whole = data().training_sequences()
    found = LabelledImages(whole, 512, 8, seed=0).__getitems__([8 * 3 + k for k in range(8)])
    alone = whole.__getitems__([3] * 8)
    expected = images(alone, torch.arange(8), 512)["tokens"]
    as_sets = [sorted(tokens.flatten(1).tolist()) for tokens in (found["tokens"], expected)]
    assert as_sets[0] == as_sets[1]


def test_a_batch_is_a_function_of_seed_and_index():
    whole = data().training_sequences()
    one, same, other = (LabelledImages(whole, 512, 1, seed) for seed in (0, 0, 1))
    indices = [4, 0, 3, 2, 1]
    together = one.__getitems__(indices)["tokens"]
    apart = torch.cat([same.__getitems__([index])["tokens"] for index in indices])
    assert torch.equal(together, apart)
    assert not torch.equal(together, other.__getitems__(indices)["tokens"])


def test_without_images_labels_are_taken_as_they_are():
    plain, found = joined(data(False).labelled_dataloader()), joined(labels_as_trained(data(False)))
    for name in plain:
        torch.testing.assert_close(found[name], plain[name], equal_nan=True, rtol=0, atol=0)


@pytest.mark.parametrize("n_images", [0, 9])
def test_an_impossible_number_of_images_is_refused(n_images):
    with pytest.raises(ValueError, match="n_images must be at"):
        labels_as_trained(data(), n_images)
