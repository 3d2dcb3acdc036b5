"""Noise on the context: its size, what it leaves alone, and that it is a function of the step."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch

from orbits import protocols
from worldmodel.data.noise import with_noisy_context
from worldmodel.data.orbit_sequences import OrbitSequences
from worldmodel.data.orbits import OrbitData
from worldmodel.models.orbit import NextTokenModel

ARGS = {"n_points": 20, "n_bins": 40}
PROTOCOL = protocols.get("identifiable", ARGS)


def batch(n=4, first=0):
    indices = list(range(first, first + n))
    return OrbitSequences(PROTOCOL, "pretrain", "train", 0, 99).__getitems__(indices)


def transferred(data, given, step=0, training=True, rank=0):
    data.trainer = SimpleNamespace(training=training, global_step=step, global_rank=rank)
    return data.on_after_batch_transfer(given, 0)


def test_noise_has_its_size_and_leaves_targets_and_the_time_step_alone():
    given = batch(200 - 101)
    sd = 0.05
    noisy = with_noisy_context(given, sd, PROTOCOL.tokens, (0, 1))
    for name, value in given.items():
        torch.testing.assert_close(noisy[name], value, rtol=0, atol=0, equal_nan=True)
    off = noisy["noisy_coordinates"] - given["coordinates"]
    assert not off[:, 0].any()
    assert torch.equal(noisy["noisy_tokens"][:, 0], given["tokens"][:, 0])
    assert float(off[:, 1:].std()) == pytest.approx(sd, rel=0.05)
    assert abs(float(off[:, 1:].mean())) < 5 * sd / off[:, 1:].numel() ** 0.5
    places = noisy["noisy_coordinates"][:, 1:].double().numpy()
    bins = PROTOCOL.tokens.encode(places)
    assert (bins == noisy["noisy_tokens"][:, 1:].numpy()).mean() > 0.999  # float32 at an edge


def test_noise_is_a_function_of_seed_step_rank_and_sequences():
    data = OrbitData(protocol_args=ARGS, context_noise=0.1)
    first = transferred(data, batch())["noisy_coordinates"]
    again = OrbitData(protocol_args=ARGS, context_noise=0.1)
    assert torch.equal(first, transferred(again, batch())["noisy_coordinates"])
    others = [
        transferred(data, batch(), step=1),
        transferred(data, batch(), rank=1),
        transferred(OrbitData(protocol_args=ARGS, context_noise=0.1, train_seed=7), batch()),
    ]
    for other in others:
        assert not np.isclose(other["noisy_coordinates"][:, 1:], first[:, 1:]).all()
    # Accumulated batches have one step; their noise is not the same.
    later = transferred(data, batch(first=4))
    noise = later["noisy_coordinates"] - batch(first=4)["coordinates"]
    assert not np.isclose(noise[:, 1:], (first - batch()["coordinates"])[:, 1:], atol=1e-4).all()


def test_nothing_is_noisy_but_training():
    data = OrbitData(protocol_args=ARGS, context_noise=0.1)
    assert set(transferred(data, batch(), training=False)) == set(batch())
    assert set(transferred(OrbitData(protocol_args=ARGS), batch())) == set(batch())


@pytest.mark.parametrize("kind", ["coordinates", "bin_centres", "tokens"])
def test_a_model_reads_the_noisy_places_and_predicts_the_true_ones(kind):
    torch.manual_seed(0)
    task = NextTokenModel(protocol_args=ARGS, head_dim=8, input=kind).eval()
    noisy = with_noisy_context(batch(), 0.5, PROTOCOL.tokens, (0,))
    read = {name: noisy[f"noisy_{name}"] for name in ("tokens", "coordinates")}
    with torch.no_grad():
        torch.testing.assert_close(task.hidden(noisy), task.hidden(read), rtol=0, atol=0)
        assert not torch.equal(task.hidden(noisy), task.hidden(batch()))
        expected = 2 * task.head.loss(task(read), noisy["tokens"][:, 1:], None)
        torch.testing.assert_close(task._loss(noisy), expected)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"context_noise": -0.1}, "context_noise must be 0 or a number of AU above it, got -0.1"),
        ({"context_noise": float("nan")}, "context_noise must be 0 or a number of AU"),
        ({"context_noise": 0.1, "population": "force"}, "leave it out for population=force"),
    ],
)
def test_what_is_no_noise_is_refused(settings, words):
    with pytest.raises(ValueError, match=words):
        OrbitData(**settings)
