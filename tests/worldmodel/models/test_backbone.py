"""Backbone, embeddings and heads."""

import numpy as np
import pytest
import torch

import attention
from attention.parts import rotations
from orbits import protocols
from tests.tiers import corners
from worldmodel.data.orbits import OrbitData
from worldmodel.models.backbone import GPT
from worldmodel.models.heads import ForceHead
from worldmodel.models.orbit import ForceModel, NextTokenModel
from worldmodel.models.predictions import prediction_columns, read_rows

KINDS = ("tokens", "bin_centres", "coordinates")
SMALL = {"n_layer": 1, "n_head": 2, "head_dim": 8}
TRANSFORMED = ("dss", "gss", "hyena", "s4", "s4d", "tnn")
"""Mixers that convolve by a Fourier transform."""


def batch(population="force", n=6, **protocol_args):
    data = OrbitData(population=population, n_test=n, protocol_args=protocol_args or None)
    return next(iter(data.test_dataloader()))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("protocol", ["identifiable", "paper"])
def test_every_input_gives_next_token_logits(kind, protocol):
    args = {"n_points": 20, "n_bins": 100}
    data = OrbitData(protocol=protocol, protocol_args=args, n_test=3)
    task = NextTokenModel(protocol=protocol, protocol_args=args, input=kind, **SMALL)
    logits = task(next(iter(data.test_dataloader())))
    assert logits.shape == (3, 20, 2, 100)


@pytest.mark.parametrize(
    ("name", "kind"),
    corners(
        [
            *((name, "tokens") for name in attention.names("all")),
            *((name, kind) for name in ("lssar", "mamba2") for kind in KINDS[1:]),
        ],
        *((name, "tokens") for name in ("softmax", "lssar", "alibi", "zeros_sm", "zeros")),
        *(("mamba2", kind) for kind in KINDS),
    ),
)
def test_predictions_never_see_the_future(name, kind):
    torch.manual_seed(0)
    args = {"length": 49} if "length" in attention.arguments(name) else None
    task = NextTokenModel(
        attention=name, attention_args=args, input=kind, n_layer=2, n_head=2, head_dim=8
    ).eval()
    original = batch("pretrain")
    edited = {key: value.clone() for key, value in original.items()}
    edited["tokens"][:, 30:] = 3
    edited["coordinates"][:, 30:] = -1.5
    with torch.no_grad():
        before, after = task(original), task(edited)
    # A Fourier transform mixes all inputs; what comes later cancels but for its rounding.
    rounding = 1e-4 if name in TRANSFORMED else 0
    torch.testing.assert_close(before[:, :30], after[:, :30], rtol=0, atol=rounding)
    assert not torch.allclose(before[:, 30:], after[:, 30:], atol=10 * rounding)


def test_tokens_are_all_that_bin_centres_see():
    task = NextTokenModel(input="bin_centres", **SMALL)
    original = batch("pretrain")
    moved = {**original, "coordinates": original["coordinates"] + 0.1}
    torch.testing.assert_close(task(original), task(moved), rtol=0, atol=0)


def test_the_time_step_reaches_the_model():
    task = NextTokenModel(**SMALL)
    original = batch("pretrain")
    other = original["tokens"].clone()
    other[:, 0] = task.layout.n_bins + (other[:, 0] - task.layout.n_bins + 1) % 7
    assert not torch.allclose(task(original), task({**original, "tokens": other}))


def test_forces_are_read_at_planets_of_the_second_half():
    rows = read_rows(batch(n=4))
    assert rows.sum() == 4 * 12
    assert rows[:, 25::2].all()
    assert not rows[:, :25].any()


def test_columns_are_physically_consistent():
    read = batch(n=5)
    force = read["force"][read_rows(read)]
    columns = prediction_columns(read, 2 * force.norm(dim=-1), force)
    expected = 39.4784176044 * columns["m1"] * columns["m2"] / columns["r"] ** 2
    torch.testing.assert_close(columns["force"], expected, rtol=1e-5, atol=0)
    torch.testing.assert_close(columns["force_predicted"], 2 * expected, rtol=1e-5, atol=0)
    pull = (columns["position"] * columns["force_vector"]).sum(dim=-1)
    assert (pull < 0).all(), "the star attracts the planet"
    assert columns["step"].min() == 12
    assert columns["step"].max() == 23
    assert columns["sequence_id"].tolist() == [i for i in range(5) for _ in range(12)]


@pytest.mark.parametrize("target", ["log", "raw"])
def test_a_perfect_head_has_no_loss_and_answers_in_physical_units(target):
    head = ForceHead(8, target)
    head.mean.fill_(0.7)
    head.std.fill_(1.9)
    force = torch.tensor([[3.0, 4.0], [-0.01, 0.02]])
    magnitude = force.norm(dim=-1)
    perfect = torch.cat([head.standardise(magnitude)[:, None], force / magnitude[:, None]], dim=-1)
    assert head.loss(perfect, force, 0.3) < 1e-12
    answered, vector = head.physical(perfect)
    torch.testing.assert_close(answered, magnitude)
    torch.testing.assert_close(vector, force)
    off = perfect.clone()
    off[:, 0] += 1
    torch.testing.assert_close(head.loss(off, force, 0.3), torch.tensor(1.0))


def test_paper_protocol_regresses_raw_force():
    args = {"n_points": 20, "n_bins": 100}
    assert ForceModel(protocol="paper", protocol_args=args, **SMALL).head.target == "raw"
    assert protocols.get("identifiable").target == "log"


def test_a_frozen_backbone_trains_the_head_alone():
    task = ForceModel(freeze_backbone=True, **SMALL)
    trained = [name for name, p in task.named_parameters() if p.requires_grad]
    assert trained == ["head.readout.weight", "head.readout.bias"]


def test_sizes_below_one_are_refused():
    with pytest.raises(ValueError, match="n_layer must be at least 1, got 0"):
        NextTokenModel(n_layer=0)


def test_initial_loss_is_that_of_a_uniform_guess():
    task = NextTokenModel(**SMALL)
    loss = task._loss(batch("pretrain")).item()
    assert loss == pytest.approx(2 * np.log(512), rel=0.02)


@pytest.mark.parametrize("ntk_train_length", [None, 4])
def test_layers_share_the_cosines_of_a_pass_bit_for_bit(monkeypatch, ntk_train_length):
    gpt = GPT("lssar", {"p": 3, "ntk_train_length": ntk_train_length}, 3, 2, 8).eval()
    x = torch.randn(2, 9, 16, generator=torch.Generator().manual_seed(0))
    alone, caches = x, gpt.new_caches()
    for block in gpt.blocks:
        alone = block(alone)
    steps = []
    for block, cache in zip(gpt.blocks, gpt.new_caches(), strict=True):
        steps = [block(part, cache) for part in (steps or (x[:, :5], x[:, 5:8], x[:, 8:]))]
    computed, rotation = [], rotations.rotation
    monkeypatch.setattr(
        rotations, "rotation", lambda *given: computed.append(1) or rotation(*given)
    )
    assert torch.equal(gpt(x), gpt.norm(alone))
    assert len(computed) == 1
    for part, expected in zip((x[:, :5], x[:, 5:8], x[:, 8:]), steps, strict=True):
        computed.clear()
        assert torch.equal(gpt(part, caches), gpt.norm(expected))
        assert len(computed) <= 2  # of the new queries, and of all keys
