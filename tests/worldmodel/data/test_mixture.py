"""Batches of a mixture, and a model that is told each sequence's law."""

import numpy as np
import pytest
import torch

from orbits import protocols
from orbits.mixture import Mixture
from worldmodel.data.mixture import MixtureData
from worldmodel.models.mixture import MixtureModel
from worldmodel.models.rollout import rollout

EXPONENTS = (-2.5, -1.0)
ARGUMENTS = {"n_points": 8, "n_bins": 64}


def data(**more):
    return MixtureData(EXPONENTS, protocol_args=ARGUMENTS, **more)


def model(**more):
    torch.manual_seed(0)
    return MixtureModel(
        EXPONENTS,
        protocol="neutral_step",
        protocol_args=ARGUMENTS,
        n_layer=1,
        head_dim=8,
        **more,
    ).eval()


def test_batches_are_those_of_the_mixture_and_train_seeds_share_the_held_out_ones():
    mixture = Mixture(protocols.get("neutral_step", ARGUMENTS), EXPONENTS)
    for split, seed in (("train", 5), ("val", 0)):
        found = data(train_seed=5).sequences(split, 100).__getitems__([3, 70])
        plain = mixture.batch(seed, split, [3, 70])
        np.testing.assert_array_equal(found["tokens"], plain["tokens"])
        np.testing.assert_allclose(found["coordinates"], plain["coordinates"], rtol=1e-6)
        assert found["tokens"].dtype == torch.int64


def test_few_sequences_are_the_first_of_the_stream_and_come_again():
    few = data(train_seed=5, n_train=6, batch_size=4)
    stream = data(train_seed=5).sequences("train", 100).__getitems__([*range(6)])
    seen = [batch for batch, _ in zip(few.train_dataloader(), range(3), strict=False)]
    places = torch.cat([batch["tokens"] for batch in seen])
    assert {tuple(row.flatten().tolist()) for row in places} == {
        tuple(row.flatten().tolist()) for row in stream["tokens"]
    }
    assert len(few.sequences("val", 7)) == 7


def test_only_a_told_sequence_tells_its_law():
    plain, told = (data(told=x).sequences("train", 9).__getitems__([0, 1, 2]) for x in (0, 1))
    assert plain["coordinates"][:, 0].abs().max() == 0
    assert told["coordinates"][:, 0, 0].tolist() == plain["exponent"].tolist()
    assert torch.equal(plain["coordinates"][:, 1:], told["coordinates"][:, 1:])


def test_a_told_model_answers_by_the_law_and_any_other_does_not():
    batch = data(told=True).sequences("train", 9).__getitems__([0, 1, 2])
    other = {**batch, "coordinates": batch["coordinates"].clone()}
    other["coordinates"][:, 0, 0] = -1.7  # held out, between those of the training
    with torch.no_grad():
        for told in (True, False):
            asked = model(told=told)
            assert torch.equal(asked(batch), asked(other)) is not told


def test_a_told_model_goes_on_alike_with_and_without_a_cache():
    batch = data(told=True).sequences("train", 9).__getitems__([0, 1, 2])
    prompt = {name: batch[name][:, :5] for name in ("tokens", "coordinates")}
    asked = model(told=True)
    fast, plain = (rollout(asked, prompt, 4, use_cache=x) for x in (True, False))
    assert torch.equal(fast, plain)


def test_a_model_with_no_place_for_the_law_is_refused():
    with pytest.raises(ValueError, match="needs input bin_centres, got tokens"):
        model(told=True, input="tokens")
