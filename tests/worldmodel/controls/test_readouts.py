"""Controls without training: the ridge read-out, and k-NN on the true state."""

import numpy as np
import torch

from worldmodel.controls.ridge import fit_ridge, ridge_readout
from worldmodel.controls.true_state_knn import true_state_knn
from worldmodel.data.orbits import OrbitData
from worldmodel.models.orbit import ForceModel

ARGS = {"n_points": 16, "n_bins": 32}
SMALL = {"protocol_args": ARGS, "n_layer": 1, "n_head": 2, "head_dim": 8}


def data(**changes):
    return OrbitData(**{"protocol_args": ARGS, "batch_size": 8, "n_val": 8, "n_test": 20} | changes)


def test_ridge_recovers_what_is_linear_in_the_features():
    source = data(population="force", n_train=60)
    task = ForceModel(**SMALL)

    def features(batch):
        """Put the answer itself, linearly mixed, in the hidden states."""
        force = batch["force"].nan_to_num(1.0)
        magnitude = force.norm(dim=-1, keepdim=True)
        truth = torch.cat([magnitude.log(), force / magnitude], dim=-1)
        return truth @ torch.tensor([[1.0, 2, 0, 1], [0, 1, 1, 3], [2, 0, 1, 0]])

    task.hidden = features
    columns = ridge_readout(task, source.labelled_dataloader(), source.test_dataloader())
    error = columns["force_predicted"].log() - columns["force"].log()
    assert error.abs().max() < 1e-2


def test_neighbours_of_the_true_state_improve_with_labels_and_averages_the_two_nearest():
    errors = []
    for n in (20, 2000):
        source = data(population="force", n_train=n)
        columns = true_state_knn(source.labelled_dataloader(), source.test_dataloader())
        errors.append((columns["force_predicted"].log() - columns["force"].log()).std().item())
    assert errors[1] < 0.6 * errors[0]
    source = data(population="force", n_train=20)
    known = true_state_knn(source.labelled_dataloader(), source.labelled_dataloader(), k=1)
    np.testing.assert_allclose(known["force_predicted"], known["force"], rtol=1e-5)


def test_ridge_holds_out_whole_sequences_to_choose_its_strength():
    rng = np.random.default_rng(0)
    n, rows, width = 60, 12, 40
    # Features that name the sequence and say nothing of its target, which is one per sequence.
    names = rng.normal(size=(n, width)).repeat(rows, axis=0)
    features = names + 0.01 * rng.normal(size=(n * rows, width))
    targets = rng.normal(size=(n, 2)).repeat(rows, axis=0)
    model = fit_ridge(features, targets, np.arange(n).repeat(rows))
    fresh = rng.normal(size=(500, width))
    assert model.predict(fresh).std() < 0.2, "leaving out single rows would find them predictable"
    useful = np.concatenate([features, targets], axis=1)
    found = fit_ridge(useful, targets, np.arange(n).repeat(rows)).predict(useful)
    assert np.corrcoef(found[:, 0], targets[:, 0])[0, 1] > 0.99
