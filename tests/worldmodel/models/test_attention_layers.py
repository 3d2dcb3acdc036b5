"""World models with tensor-product projections, and with keys that an indexer selects."""

import pytest
import torch
from lightning.pytorch.callbacks import Callback

from tests.worldmodel.trainings import trainer
from worldmodel.data.orbits import OrbitData
from worldmodel.maps import layer_states
from worldmodel.models.backbone import GPT
from worldmodel.models.checkpoint import read_checkpoint
from worldmodel.models.load import load_model
from worldmodel.models.orbit import NextTokenModel
from worldmodel.models.rollout import rollout
from worldmodel.models.text import TextModel
from worldmodel.training.callbacks import SelectAfter

SMALL = {"n_layer": 2, "n_head": 2, "head_dim": 8}
ARGS = {"n_points": 10, "n_bins": 40}
TPA = {"projections": "tpa", "q_rank": 2, "k_rank": 1, "v_rank": 1}
DSA = {"select": "dsa", "top_k": 4}
LAYERS = {"tpa": TPA, "dsa": DSA, "both": {**TPA, **DSA}}

pytestmark = pytest.mark.usefixtures("quiet")


def model(args, name="lssar", **changes):
    torch.manual_seed(0)
    return NextTokenModel(
        attention=name, attention_args=args, protocol_args=ARGS, **{**SMALL, **changes}
    )


def fit(task, folder, callbacks=(), steps=4):
    data = OrbitData(protocol_args=ARGS, n_train=32, n_val=8, n_test=4, batch_size=16)
    run = trainer(folder, steps, callbacks, limit_val_batches=0)
    run.fit(task, data)
    run.save_checkpoint(folder / "model.ckpt")
    return run, next(iter(data.test_dataloader()))


@pytest.mark.full
@pytest.mark.parametrize("kind", LAYERS)
@pytest.mark.parametrize("optimizer", ["muon", "adamw"])
def test_a_trained_one_is_reloaded_as_it_was(kind, optimizer, tmp_path):
    task = model({**LAYERS[kind], "p": 3.0}, optimizer=optimizer, warmup_steps=1)
    before = [p.clone() for p in task.parameters()]
    run, batch = fit(task, tmp_path)
    for (name, new), old in zip(task.named_parameters(), before, strict=True):
        assert not torch.equal(new, old), name
    assert ("train_index_loss" in run.callback_metrics) == ("select" in LAYERS[kind])
    again, task = load_model(tmp_path / "model.ckpt").eval(), task.eval()
    assert repr(again.gpt) == repr(task.gpt)
    assert again.hparams["attention_args"] == {**LAYERS[kind], "p": 3.0}
    assert torch.equal(again(batch), task(batch))
    other = model({**LAYERS[kind], "p": 4.0})
    with pytest.raises(ValueError, match="trained with attention_args="):
        other.check_checkpoint("x.ckpt", read_checkpoint(tmp_path / "model.ckpt"))


@pytest.mark.parametrize("kind", LAYERS)
@pytest.mark.parametrize("name", ["softmax", "lssar", "lazy"])
def test_a_rollout_with_a_cache_is_one_without(kind, name):
    task = model(LAYERS[kind], name).eval()
    batch = next(iter(OrbitData(protocol_args=ARGS, n_test=3).test_dataloader()))
    prompt = {key: batch[key][:, :4] for key in ("tokens", "coordinates")}
    with torch.no_grad():
        assert torch.equal(rollout(task, prompt, 6), rollout(task, prompt, 6, use_cache=False))


def test_the_loss_of_the_indexers_changes_nothing_else(tmp_path):
    with_it, without = model(DSA), model(DSA)
    batch = next(iter(OrbitData(protocol_args=ARGS, n_test=4).test_dataloader()))
    with_it.log = without.log = lambda *_, **__: None
    with_it.training_step(batch, 0).backward()
    without._loss(batch).backward()
    for (name, mine), theirs in zip(with_it.named_parameters(), without.parameters(), strict=True):
        if ".selection." in name:
            assert mine.grad.abs().max() > 0
            assert theirs.grad is None
        else:
            torch.testing.assert_close(mine.grad, theirs.grad, rtol=1e-4, atol=1e-6)


def test_selection_starts_at_its_step_and_travels_in_the_checkpoint(tmp_path):
    task, states = model(DSA), []

    class Watch(Callback):
        def on_train_batch_end(self, *_):
            states.append([block.attention.selection.narrows(10) for block in task.gpt.blocks])

    run, _ = fit(task, tmp_path, [SelectAfter(2), Watch()])
    assert states == [[False, False], [False, False], [True, True], [True, True]]
    task.gpt.blocks[0].attention.selection.set_active(False)
    run.save_checkpoint(tmp_path / "off.ckpt")
    again = load_model(tmp_path / "off.ckpt")
    assert [b.attention.selection.narrows(10) for b in again.gpt.blocks] == [False, True]
    with pytest.raises(ValueError, match="step must not be negative, got -1"):
        SelectAfter(-1)
    with pytest.raises(ValueError, match="needs attention with one: select=dsa"):
        fit(model(TPA), tmp_path, [SelectAfter(1)])


def test_maps_read_the_states_of_factors():
    task = TextModel(attention="lssar", attention_args=LAYERS["both"], **SMALL).eval()
    states = list(layer_states(task, torch.arange(12)[None]))
    assert [state.key.shape for state in states] == 2 * [(1, 2, 12, 8)]
    for state, block in zip(states, task.gpt.blocks, strict=True):
        assert (state.weights > 0).sum(dim=-1).max() <= 4
        x = block.norm_attention(state.hidden)
        a, b = block.attention.key.parts(x)  # one product: [B, 1, L, H] and [B, 1, L, D]
        torch.testing.assert_close(state.key, a.transpose(1, 3) * b)


def test_a_window_beside_a_selection_is_refused():
    with pytest.raises(ValueError, match="softmax with a window and select dsa both leave keys"):
        GPT("softmax", DSA, 1, 2, 8, window=4)
