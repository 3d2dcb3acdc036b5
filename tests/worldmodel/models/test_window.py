"""The window of a backbone: how far it sees, what refuses it, and checkpoints with it."""

import pytest
import torch

import attention
from orbits import protocols
from tests.worldmodel.trainings import save
from worldmodel.data.orbit_sequences import OrbitSequences
from worldmodel.models.backbone import GPT, reach
from worldmodel.models.base import EARLIER
from worldmodel.models.checkpoint import read_checkpoint
from worldmodel.models.export import export
from worldmodel.models.load import load_model
from worldmodel.models.orbit import ForceModel, NextTokenModel
from worldmodel.models.windowed import Windowed

ARGS = {"n_points": 20, "n_bins": 40}
PROTOCOL = protocols.get("identifiable", ARGS)
SIZES = {"protocol_args": ARGS, "head_dim": 8}


def batch(n=3):
    return OrbitSequences(PROTOCOL, "pretrain", "test", 0, n).as_batch()


def test_arguments_of_an_attention_are_not_those_of_the_model():
    with pytest.raises(ValueError, match="attention_args has head_dim"):
        GPT("softmax", {"head_dim": 8}, 1, 2, 8)


def test_an_encoder_has_no_window():
    with pytest.raises(ValueError, match="a window looks back"):
        GPT("softmax", None, 1, 2, 8, window=2, causal=False)


@pytest.mark.parametrize("name", ["softmax", "lssar", "lazy", "gla", "rwkv7"])
def test_a_model_sees_its_reach_and_the_time_step_alone(name):
    window, n_layer, row = 3, 2, 15
    torch.manual_seed(0)
    task = NextTokenModel(**SIZES, attention=name, window=window, n_layer=n_layer).eval()
    given = batch()
    with torch.no_grad():
        before = task.hidden(given)[:, row]

    def moves(place):
        tokens = given["tokens"].clone()
        if place:
            tokens[:, place] = (tokens[:, place] + 7) % PROTOCOL.n_bins
        else:
            steps = len(PROTOCOL.dts)
            tokens[:, 0] = PROTOCOL.n_bins + (tokens[:, 0] - PROTOCOL.n_bins + 1) % steps
        with torch.no_grad():
            return not torch.equal(task.hidden({**given, "tokens": tokens})[:, row], before)

    seen = [place for place in range(1, 21) if moves(place)]
    assert seen == list(range(row - reach(window, n_layer) + 1, row + 1))
    assert moves(0), "the time step is always seen"


@pytest.mark.parametrize("name", ["softmax", "gla"])
def test_a_window_as_long_as_the_sequence_leaves_nothing_out(name):
    torch.manual_seed(0)
    task = NextTokenModel(**SIZES, attention=name).eval()
    torch.manual_seed(0)
    wide = NextTokenModel(**SIZES, attention=name, window=21).eval()
    with torch.no_grad():
        torch.testing.assert_close(wide(batch()), task(batch()))


@pytest.mark.parametrize("window", [1, 3, 7])
def test_a_windowed_mixer_runs_on_the_rows_that_it_sees(window):
    torch.manual_seed(0)
    mixer = attention.build("gla", n_head=2, head_dim=8)
    windowed, x = Windowed(mixer, window), torch.randn(2, 12, 16, requires_grad=True)
    found = windowed(x)
    for place in range(12):
        seen = [0, *range(max(1, place - window + 1), place + 1)] if place else [0]
        torch.testing.assert_close(found[:, place], mixer(x[:, seen])[:, -1])
    found.square().sum().backward()
    assert torch.isfinite(x.grad).all()


def test_a_cache_continues_a_windowed_mixer():
    torch.manual_seed(0)
    model, x = GPT("gla", None, 2, 2, 8, window=3).eval(), torch.randn(2, 12, 16)
    with torch.no_grad():
        caches, parts = model.new_caches(), []
        for part in x.split([5, 1, 4, 2], dim=1):
            parts.append(model(part, caches))
            assert caches[0].length == sum(each.shape[1] for each in parts)
        torch.testing.assert_close(torch.cat(parts, dim=1), model(x))


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"attention": "gla", "window": 0}, "window must be at least 1, got 0"),
        ({"attention": "sliding_window", "window": 3}, "has a window of its own"),
        ({"window": 0}, "window must be at least 1, got 0"),
        ({"window": 2.5}, "window must be a whole number, got 2.5"),
    ],
)
def test_what_has_no_such_window_is_refused(settings, words):
    with pytest.raises(ValueError, match=words):
        NextTokenModel(**SIZES, **settings)


@pytest.fixture
def path(tmp_path):
    model = NextTokenModel(**SIZES, window=3, predicts="mixture", input="coordinates")
    return save(model, tmp_path / "model.ckpt")


def test_checkpoints_and_exports_load_strictly_with_head_and_window(path, tmp_path):
    torch.load(path, weights_only=True)
    folder = export(path, tmp_path / "exported", "A model.", {})
    task = load_model(path)
    for model in (task, load_model(folder)):
        assert isinstance(model, NextTokenModel)
        assert (model.hparams["window"], model.hparams["predicts"]) == (3, "mixture")
        assert model.gpt.blocks[1].attention.spec.window == 3
        with torch.no_grad():
            torch.testing.assert_close(model.eval()(batch()), task.eval()(batch()), rtol=0, atol=0)


@pytest.mark.parametrize(
    "changes", [{"window": None}, {"window": 4}, {"predicts": "gaussian"}, {"predicts": "bins"}]
)
def test_another_window_or_head_is_refused(path, changes):
    own = {**SIZES, "window": 3, "predicts": "mixture", "input": "coordinates"}
    content = read_checkpoint(path)
    NextTokenModel(**own).check_checkpoint(path, content)
    (name,) = changes
    with pytest.raises(ValueError, match=f"trained with {name}="):
        NextTokenModel(**{**own, **changes}).check_checkpoint(path, content)


def test_a_force_head_takes_a_backbone_of_its_window_whatever_that_predicts(path):
    own = {**SIZES, "input": "coordinates"}
    force = ForceModel(**own, window=3)
    force.load_backbone(path)
    stored = read_checkpoint(path)["state_dict"]
    assert all(torch.equal(x, stored[f"gpt.{name}"]) for name, x in force.gpt.state_dict().items())
    with pytest.raises(ValueError, match="trained with window=3, this model has window=None"):
        ForceModel(**own).load_backbone(path)


def test_earlier_checkpoints_have_neither(tmp_path):
    old = save(NextTokenModel(**SIZES), tmp_path / "old.ckpt")
    content = torch.load(old, weights_only=True)
    for name in ("window", "predicts"):
        assert content["hyper_parameters"].pop(name) == EARLIER[name]
    torch.save(content, old)
    NextTokenModel(**SIZES).check_checkpoint(old, read_checkpoint(old))
    assert load_model(old).hparams["predicts"] == "bins"
    assert "window" not in load_model(old).architecture, "addresses of cells are as they were"
