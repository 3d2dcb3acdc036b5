"""Attention maps of a checkpoint."""

import pytest
import torch

from attention import metrics
from orbits.runs.figure import WIDTH
from tests.letters import smallest
from tests.worldmodel.trainings import save
from worldmodel.__main__ import main
from worldmodel.maps import attention_maps, draw, layer_weights
from worldmodel.models.orbit import ForceModel, NextTokenModel
from worldmodel.models.text import TokenModel


@pytest.fixture
def checkpoint(tmp_path):
    torch.manual_seed(0)
    task = NextTokenModel(attention="lssa", n_layer=2, n_head=3, head_dim=8)
    return save(task, tmp_path / "model.ckpt")


def test_weights_are_those_the_block_mixes_with():
    torch.manual_seed(0)
    task = ForceModel(attention="lssar", n_layer=2, n_head=2, head_dim=8)
    found = layer_weights(task, layer=0, sequence=2)
    assert found.shape == (2, 49, 49)
    torch.testing.assert_close(found.sum(-1)[:, :3], torch.ones(2, 3))
    mixer = task.gpt.blocks[0].attention
    x = torch.randn(1, 49, 16)
    values = mixer.value(x).unflatten(-1, (2, 8)).transpose(1, 2)
    mixed = (mixer.weights(x) @ values).transpose(1, 2).flatten(-2)
    torch.testing.assert_close(mixer.project(mixed), mixer(x))
    assert not torch.allclose(found, layer_weights(task, layer=1, sequence=2))
    assert not torch.allclose(found, layer_weights(task, layer=0, sequence=3))
    assert metrics.zero_share(found).min() > 0


@pytest.mark.full
def test_the_command_draws_a_picture_and_never_overwrites(
    checkpoint, tmp_path, monkeypatch, refusal
):
    out = tmp_path / "maps.png"
    command = ["worldmodel", "attention-maps", str(checkpoint), "--out", str(out)]
    monkeypatch.setattr("sys.argv", command)
    main()
    assert out.read_bytes().startswith(b"\x89PNG")
    assert ">LSSA, block 2 of 2<" in out.with_suffix(".svg").read_text("utf-8")
    assert "maps.png exists" in refusal(main)


@pytest.mark.parametrize("words", [None, ["of", "a", "word"] * 8])
def test_letters_can_be_read_on_a_telephone(words):
    figure = draw(torch.ones(3, 24, 24) / 24, "LSSA, block 1 of 2", "token", words)
    assert smallest(figure) >= 8
    assert words or figure.get_figwidth() <= WIDTH


@pytest.mark.parametrize(("layer", "sequence"), [(2, 0), (-3, 0), (0, -1)])
def test_impossible_choices_are_refused(checkpoint, tmp_path, layer, sequence):
    with pytest.raises(ValueError, match=r"(layer|sequence) must"):
        attention_maps(checkpoint, tmp_path / "x.png", layer, sequence)
    assert not (tmp_path / "x.png").exists()


def test_a_model_of_neither_orbits_nor_text_is_refused(tmp_path):
    path = save(TokenModel(8, n_layer=1, n_head=1, head_dim=8), tmp_path / "recall.ckpt")
    with pytest.raises(ValueError, match=r"recall\.ckpt: its model reads neither orbits nor text"):
        attention_maps(path, tmp_path / "x.png")
