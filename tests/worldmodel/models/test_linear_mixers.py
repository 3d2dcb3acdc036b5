"""World models and language models whose attention is a linear mixer."""

import pytest
import torch

import attention
from tests.tiers import corners
from tests.worldmodel.trainings import trainer
from worldmodel.data.orbits import OrbitData
from worldmodel.maps import attention_maps, layer_states, layer_weights
from worldmodel.models.load import load_model
from worldmodel.models.orbit import NextTokenModel
from worldmodel.models.text import TextModel
from worldmodel.training.callbacks import SharpenAfter

SMALL = {"n_layer": 2, "n_head": 2, "head_dim": 8}
ARGS = {"n_points": 10, "n_bins": 40}


def trained(folder, name, callbacks=()):
    torch.manual_seed(0)
    task = NextTokenModel(attention=name, protocol_args=ARGS, warmup_steps=1, **SMALL)
    data = OrbitData(protocol_args=ARGS, n_train=32, n_val=8, n_test=4, batch_size=16)
    # What starts at zero moves a step later.
    run = trainer(folder, 4, callbacks, limit_val_batches=0)
    before = [p.clone() for p in task.parameters()]
    run.fit(task, data)
    moved = [not torch.equal(a, b) for a, b in zip(before, task.parameters(), strict=True)]
    assert all(moved)
    run.save_checkpoint(folder / "model.ckpt")
    return task.eval(), next(iter(data.test_dataloader()))


@pytest.mark.parametrize("name", corners(attention.linear.names(), "zeros", "mamba2", "rwkv7"))
def test_a_trained_one_is_reloaded_as_it_was(name, tmp_path):
    task, batch = trained(tmp_path, name)
    again = load_model(tmp_path / "model.ckpt").eval()
    assert again.gpt.blocks[0].attention.name == name
    assert torch.equal(again(batch), task(batch))


def test_an_ablation_is_reloaded_as_it_was():
    arguments = {"norm": False, "zeroth": "first", "chunk": 8}
    task = TextModel(attention="zeros", attention_args=arguments, **SMALL)
    again = TextModel(**task.hparams)
    assert again.gpt.blocks[0].attention.label == "zeros zeroth=first norm=False"
    assert [block.attention.restores for block in again.gpt.blocks] == [True, False]
    again.load_state_dict(task.state_dict())


def test_what_needs_weights_is_refused(tmp_path):
    trained(tmp_path, "zeros")
    with pytest.raises(ValueError, match=r"zeros has no attention weights; .* one of softmax"):
        attention_maps(tmp_path / "model.ckpt", tmp_path / "maps.png")
    assert not (tmp_path / "maps.png").exists()
    text = TextModel(attention="linear", **SMALL).eval()
    with pytest.raises(ValueError, match="linear has no attention weights"):
        layer_weights(text, 0)
    with pytest.raises(ValueError, match="linear has no attention weights"):
        next(layer_states(text, torch.zeros(1, 4, dtype=torch.int64)))


def test_a_schedule_of_the_reweighting_is_refused(tmp_path):
    with pytest.raises(ValueError, match=r"re-weighting needs attention that has one: lssar, "):
        trained(tmp_path, "zeros", [SharpenAfter(1)])
