"""Exported models: the same answers as the checkpoint's, and refusals of what is none."""

import hashlib
import json

import pytest
import torch
import yaml
from safetensors.torch import load
from safetensors.torch import save as saved

from orbits.runs import plugins
from tests.worldmodel.trainings import save
from worldmodel.__main__ import main
from worldmodel.data.orbits import OrbitData
from worldmodel.models.checkpoint import CONFIG, WEIGHTS, check_resumable, read_checkpoint
from worldmodel.models.export import CARD, export, read_export, read_model, write_checkpoint
from worldmodel.models.exported import PRECISION
from worldmodel.models.load import export_model, load_model
from worldmodel.models.mixture import MixtureModel
from worldmodel.models.orbit import ForceModel, NextTokenModel
from worldmodel.models.text import TextModel
from worldmodel.probes.checkpoint import Checkpoint

SMALL = {"protocol_args": {"n_points": 8, "n_bins": 32}, "n_layer": 1, "n_head": 1, "head_dim": 8}


@pytest.fixture
def head(tmp_path):
    model = ForceModel(attention="lssar", attention_args={"p": 3.0}, **SMALL)
    model.head.mean.fill_(0.7)
    return save(model, tmp_path / "head.ckpt")


@pytest.mark.parametrize("backbone", [None, "runs/pretrain/last.ckpt"])
def test_an_exported_head_keeps_its_labels_its_seed_and_how_it_began(tmp_path, backbone):
    path = save(ForceModel(**SMALL), tmp_path / "head.ckpt", n_train=100, train_seed=None, seed=7)
    content = read_checkpoint(path)
    content["hyper_parameters"]["pretrained"] = backbone
    torch.save(content, path)
    found = [Checkpoint.load(x) for x in (path, export_model(path, tmp_path / "head"))]
    assert [(x.labels, x.seed, x.scratch) for x in found] == [(100, 7, backbone is None)] * 2
    assert "last.ckpt" not in (tmp_path / "head" / CONFIG).read_text()


@pytest.mark.parametrize("kind", [ForceModel, NextTokenModel])
def test_an_exported_model_answers_as_its_checkpoint(tmp_path, kind):
    made = kind(attention="lssar", attention_args={"p": 3.0}, **SMALL)
    path = save(made, tmp_path / "model.ckpt")
    folder = export(path, tmp_path / "model", "Orbits of a test.", {"seed": 0})
    population = "pretrain" if kind is NextTokenModel else "force"
    data = OrbitData(protocol_args=SMALL["protocol_args"], population=population, n_test=3)
    batch = next(iter(data.test_dataloader()))
    with torch.no_grad():
        loaded, original = (load_model(x).eval()(batch) for x in (folder, path))
    assert type(load_model(folder)) is kind
    assert torch.equal(loaded, original)


def test_rounded_weights_take_half_the_bytes_and_answer_as_float32(head, tmp_path):
    whole = export(head, tmp_path / "whole", "A test.", {})
    half = export(head, tmp_path / "half", "A test.", {}, half=True)
    sizes = [(folder / WEIGHTS).stat().st_size for folder in (half, whole)]
    assert sizes[0] < 0.7 * sizes[1], "names and shapes stay"
    rounded, exact = (read_export(folder)["state_dict"] for folder in (half, whole))
    for name, weights in exact.items():
        assert rounded[name].dtype == weights.dtype == torch.float32
        expected = weights.half().float() if weights.ndim > 1 else weights
        assert torch.equal(rounded[name], expected)
    assert "rounded to float16" in (half / CARD).read_text()
    assert PRECISION not in json.loads((whole / CONFIG).read_text())
    assert type(load_model(half)) is ForceModel


def test_a_weight_that_float16_cannot_hold_is_refused(head, tmp_path):
    content = read_checkpoint(head)
    content["state_dict"]["head.readout.weight"][0] = 1e5
    torch.save(content, head)
    with pytest.raises(ValueError, match=r"half: head\.readout\.weight has a weight too large"):
        export(head, tmp_path / "half", "A test.", {}, half=True)
    assert not (tmp_path / "half").exists()


def test_a_checkpoint_of_an_exported_model_holds_the_same(head, tmp_path):
    folder = export(head, tmp_path / "model", "A test.", {})
    write_checkpoint(folder, tmp_path / "again.ckpt")
    again, before = (read_checkpoint(path) for path in (tmp_path / "again.ckpt", head))
    assert again["hyper_parameters"] == before["hyper_parameters"]
    assert again["state_dict"].keys() == before["state_dict"].keys()
    for name, weights in before["state_dict"].items():
        assert torch.equal(again["state_dict"][name], weights)
        assert again["state_dict"][name].dtype == weights.dtype
    assert again.keys() == {"hyper_parameters", "state_dict"}
    with pytest.raises(ValueError, match="no optimizer_states"):
        check_resumable(tmp_path / "again.ckpt", again)


def test_the_card_says_what_it_is_and_no_path_of_a_machine_is_kept(head, tmp_path):
    folder = export(head, tmp_path / "softmax-0", "Trained on orbits of a test.", {"seed": 0})
    card = (folder / CARD).read_text()
    assert "Trained on orbits of a test." in card
    assert 'load_model("softmax-0")' in card
    config = json.loads((folder / CONFIG).read_text())
    assert config["settings"]["attention"] == "lssar"
    assert config["settings"]["pretrained"] is None
    assert str(tmp_path) not in (folder / CONFIG).read_text()
    with pytest.raises(FileExistsError, match="exists; choose another folder"):
        export(head, folder, "Again.", {})


@pytest.mark.parametrize(
    ("provenance", "told"),
    [
        ({"case": {"seed": 3, "setting": {"labels": 1000}}}, {"train_seed": 3, "n_train": 1000}),
        ({"case": {"seed": 3, "setting": {"labels": "unlimited"}}}, {"train_seed": 3}),
        ({"case": {"seed": True, "setting": "many"}}, {}),
        ({"case": [1]}, {}),
        ({}, {}),
    ],
)
def test_the_data_are_what_the_provenance_tells(head, tmp_path, provenance, told):
    folder = export(head, tmp_path / "one", "Orbits.", provenance)
    assert read_model(folder)["datamodule_hyper_parameters"] == told
    assert read_model(head)["hyper_parameters"]["attention"] == "lssar"


@pytest.mark.parametrize("kind", [ForceModel, NextTokenModel])
def test_a_model_is_saved_and_found_again_in_one_form(tmp_path, kind):
    made = kind(attention="lssar", attention_args={"p": 3.0}, **SMALL)
    folder = made.save_pretrained(tmp_path / "mine")
    assert sorted(x.name for x in folder.iterdir()) == [CARD, CONFIG, WEIGHTS]
    batch = next(iter(OrbitData(protocol_args=SMALL["protocol_args"], n_test=3).test_dataloader()))
    for again in (kind.from_pretrained(folder), load_model(folder)):
        assert type(again) is kind
        assert dict(again.hparams) == dict(made.hparams)
        assert torch.equal(again.hidden(batch), made.hidden(batch))
    same = export(save(made, tmp_path / "x.ckpt"), tmp_path / "exported" / "mine", "A test.", {})
    assert (same / WEIGHTS).read_bytes() == (folder / WEIGHTS).read_bytes()
    ours, theirs = (json.loads((each / CONFIG).read_text()) for each in (folder, same))
    assert ours == theirs
    card = (folder / CARD).read_text()
    header, about = card.removeprefix("---\n").split("\n---\n")
    assert yaml.safe_load(header) == {"library_name": "orrery"}
    assert f"A {kind.__name__} with the attention lssar, trained on orbits of protocol" in about
    with pytest.raises(FileExistsError, match="exists; choose another folder"):
        made.save_pretrained(folder)


def test_a_class_that_is_not_that_of_the_weights_is_refused(tmp_path):
    folder = NextTokenModel(**SMALL).save_pretrained(tmp_path / "mine")
    for wrong in (ForceModel, MixtureModel, TextModel):
        with pytest.raises(ValueError, match=f"not a checkpoint of a {wrong.__name__}"):
            wrong.from_pretrained(folder)
    for nowhere in ("someone/their-model", __file__):
        with pytest.raises(FileNotFoundError, match="not an exported model"):
            NextTokenModel.from_pretrained(nowhere)


def test_a_tokenizer_travels_inside_the_settings(tmp_path):
    made = TextModel(n_layer=1, n_head=1, head_dim=8)
    again = TextModel.from_pretrained(made.save_pretrained(tmp_path / "text"))
    assert again.tokenizer.vocab_size == made.tokenizer.vocab_size
    assert torch.equal(again.embedding.weight, made.embedding.weight)


def test_the_command_exports_a_checkpoint_once(head, tmp_path, capsys, refusal):
    out = tmp_path / "hub" / "head"
    main(["export", str(head), "--out", str(out), "--about", "A head."])
    said = capsys.readouterr().out.splitlines()
    assert said == [f"written    {out}", f"next: python -m worldmodel probe {out}"]
    assert "A head." in (out / CARD).read_text()
    provenance = json.loads((out / CONFIG).read_text())["provenance"]
    assert provenance == {"checkpoint": hashlib.sha256(head.read_bytes()).hexdigest()}
    assert load_model(out).hparams["attention"] == "lssar"
    assert "exists; choose another" in refusal(main, ["export", str(head), "--out", str(out)])
    assert "gone: no such file" in refusal(main, ["export", "gone"])


def edited(folder, **changes):
    """Change settings that have no checksum, as those of older exports have none."""
    config = json.loads((folder / CONFIG).read_text())
    del config["settings_sha256"]
    config["settings"] |= changes
    (folder / CONFIG).write_text(json.dumps(config))


def without_attention(folder):
    config = json.loads((folder / CONFIG).read_text())
    del config["settings"]["attention"]
    (folder / CONFIG).write_text(json.dumps(config))


def signed(folder, weights):
    """Put other bytes in place of the weights, with their sha256."""
    (folder / WEIGHTS).write_bytes(weights)
    config = json.loads((folder / CONFIG).read_text())
    config["sha256"] = hashlib.sha256(weights).hexdigest()
    (folder / CONFIG).write_text(json.dumps(config))


def without_a_number(folder):
    weights = load((folder / WEIGHTS).read_bytes())
    weights[min(weights)].view(-1)[0] = float("nan")
    signed(folder, saved(weights))


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda f: (f / CONFIG).unlink(), "not an exported model"),
        (lambda f: (f / WEIGHTS).unlink(), "no model.safetensors"),
        (lambda f: (f / CONFIG).write_text("{"), "not the settings"),
        (lambda f: (f / CONFIG).write_text('{"settings": {}, "schema": 9}'), "schema must be 2"),
        (lambda f: (f / CONFIG).write_text('{"settings": {}, "schema": 2}'), "no sha256"),
        (lambda f: (f / CONFIG).write_text("[" * 10**5), "not the settings"),
        (lambda f: (f / WEIGHTS).write_bytes(b"nothing"), "model.safetensors: damaged"),
        (lambda f: signed(f, b"nothing"), "model.safetensors"),
        (without_a_number, "is not finite"),
        (lambda f: edited(f, attention="theirs"), "if a plug-in defines it, add its --plugin"),
        (lambda f: edited(f, n_layer=2), "n_layer is 2, its weights are of 1 blocks"),
        (lambda f: edited(f, head_dim=16), "has shape"),
        (without_attention, "settings name no attention"),
        (lambda f: edited(f, attention_args={"class_path": "os.system"}), "names a class"),
    ],
)
def test_weights_that_do_not_fit_their_settings_are_refused(head, tmp_path, spoil, message):
    folder = export(head, tmp_path / "model", "A test.", {})
    spoil(folder)
    with pytest.raises((ValueError, FileNotFoundError), match=message):
        load_model(folder)


def test_a_plugin_that_is_missing_is_named(head, tmp_path, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(plugins, "addresses", lambda: {"mine.py": "0" * 64})
        folder = export(head, tmp_path / "model", "A test.", {})
    edited(folder, attention="theirs")
    with pytest.raises(ValueError, match=r"'theirs'; it was trained with .* mine\.py"):
        load_model(folder)


@pytest.mark.parametrize("exports", [False, True])
def test_a_plugin_of_other_contents_is_said_once(head, tmp_path, monkeypatch, capsys, exports):
    def said_of(path, **given):
        monkeypatch.setattr(plugins, "addresses", lambda: {f"{n}.py": x for n, x in given.items()})
        load_model(path)
        load_model(path)
        return capsys.readouterr().err

    monkeypatch.setattr(plugins, "addresses", lambda: {"mine.py": "a"})
    path = tmp_path / "model"
    export(head, path, "A test.", {}) if exports else save(load_model(head), path)
    capsys.readouterr()
    assert said_of(head, mine="b") + said_of(path, mine="a") + said_of(path, other="b") == ""
    line = f"{path}: the mine.py of its training had other contents; answers may differ\n"
    assert said_of(path, mine="b", other="b") == line
