"""Training on a dataset in files: the same batches as made in memory, and what is refused."""

import dataclasses
import sys

import numpy as np
import pytest
import torch

from orbits import protocols
from orbits.dataset import generate
from tests.worldmodel.trainings import trainer
from worldmodel import from_files
from worldmodel.__main__ import main
from worldmodel.data import files
from worldmodel.data.orbits import OrbitData
from worldmodel.models.orbit import ForceModel, NextTokenModel
from worldmodel.models.state import StateModel

WORLD = {"n_points": 16, "n_bins": 64, "law": "yukawa"}
SMALL = {"n_layer": 1, "n_head": 1, "head_dim": 8}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Return a small labelled dataset in three files of training sequences."""
    out = tmp_path_factory.mktemp("data") / "orbits"
    counts = {"train": 10, "val": 4, "test": 5}
    protocol = protocols.get("identifiable", WORLD)
    generate(out, protocol, counts, seed=3, sequences_per_shard=4, progress=False)
    return str(out)


def both(folder, **changes):
    """Return the data of the files, and the same made in memory."""
    made = {"protocol_args": WORLD, "population": "force", "seed": 3, "n_train": 10}
    return OrbitData.from_files(folder, **changes), OrbitData(**made | changes)


@pytest.mark.parametrize("loader", ["labelled", "val", "test"])
def test_files_hold_the_batches_that_memory_makes(folder, loader):
    read, made = (next(iter(getattr(x, f"{loader}_dataloader")())) for x in both(folder))
    assert read.keys() == made.keys()
    layout = protocols.get("identifiable", WORLD).tokens
    for name, values in read.items():
        expected = made[name][: len(values)]
        assert values.dtype == expected.dtype
        if name == "coordinates":
            assert not torch.equal(values, expected)
            assert (values - expected).abs().max() <= layout.width / 2 + 1e-6
            centres = layout.decode(read["tokens"][:, 1:].numpy())
            np.testing.assert_allclose(values[:, 1:], centres, rtol=1e-6)
        else:
            torch.testing.assert_close(values, expected, rtol=0, atol=0, equal_nan=True)


def test_epochs_are_in_the_same_order_and_all_sequences_are_drawn(folder):
    for seed in (None, 7):
        data = OrbitData.from_files(folder, batch_size=5, train_seed=seed)
        loader = iter(data.train_dataloader())
        epoch = [next(loader)["sequence_id"] for _ in range(2)]
        assert sorted(torch.cat(epoch).tolist()) == list(range(10))
    read, made = both(folder, batch_size=5)
    one, other = (next(iter(x.train_dataloader())) for x in (read, made))
    assert torch.equal(one["tokens"], other["tokens"])
    assert read.force_statistics() == made.force_statistics()
    assert read.hparams["n_train"] == 10


def test_a_training_on_files_of_a_shift_is_refused(tmp_path):
    shifted = protocols.get("identifiable", {"n_points": 16, "n_bins": 64, "shift": "closer"})
    generate(tmp_path / "closer", shifted, {"test": 2}, seed=0, progress=False)
    words = from_files.completed(["-c", "pretrain", f"--data.path={tmp_path / 'closer'}"])
    with pytest.raises(ValueError, match=r"closer has test systems alone, of shift 'closer'; take"):
        from_files.refuse_shift("fit", words)


@pytest.mark.parametrize("kind", [NextTokenModel, ForceModel])
def test_a_training_on_files_is_that_on_orbits_in_memory(folder, tmp_path, quiet, kind):
    weights = []
    for data in both(folder, batch_size=4):
        torch.manual_seed(0)
        model = kind(protocol_args=WORLD, **SMALL)
        trainer(tmp_path, steps=2).fit(model, datamodule=data)
        weights.append(model.state_dict())
    for name, values in weights[0].items():
        assert torch.equal(values, weights[1][name]), name


def test_a_model_that_reads_exact_places_is_refused(folder, tmp_path, quiet):
    for wrong in ({"input": "coordinates"}, {"predicts": "mixture"}):
        model = NextTokenModel(protocol_args=WORLD, **SMALL, **wrong)
        with pytest.raises(ValueError, match="holds bins and no exact places"):
            trainer(tmp_path).fit(model, datamodule=OrbitData.from_files(folder))


def test_the_published_wrong_states_are_no_true_ones(folder, tmp_path, quiet):
    data = OrbitData.from_files(folder)
    data.protocol = dataclasses.replace(data.protocol, as_published=True)
    with pytest.raises(ValueError, match="holds states as published"):
        trainer(tmp_path).fit(StateModel(protocol_args=WORLD, **SMALL), datamodule=data)


def test_a_training_is_resumed_on_its_own_files_alone(folder):
    data = OrbitData.from_files(folder)
    record = data.state_dict()
    assert record == {"dataset_sha256": files.read_index(folder)["dataset_sha256"]}
    assert OrbitData().state_dict() == {}
    data.trainer = trainer(None)
    data.trainer.state.fn = "fit"
    data.load_state_dict(record)
    with pytest.raises(ValueError, match="trained on another dataset than"):
        data.load_state_dict({"dataset_sha256": "0"})
    data.trainer.state.fn = "test"
    data.load_state_dict({"dataset_sha256": "0"})


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"population": "pretrain"}, "decides population; leave it out"),
        ({"device_batches": "float64"}, "device_batches needs orbits that are made"),
        ({"context_noise": 0.1}, "context_noise needs orbits that are made"),
        ({"n_train": 11}, "n_train 11: .* has 10 training sequences"),
    ],
)
def test_what_files_decide_or_lack_is_refused(folder, arguments, message):
    with pytest.raises(ValueError, match=message):
        OrbitData.from_files(folder, **arguments).setup("fit")


def test_another_world_than_that_of_the_files_is_refused(folder):
    for wrong, name in (({}, "protocol"), ({"protocol_args": WORLD}, "population")):
        with pytest.raises(ValueError, match=f"decides {name}, which is"):
            OrbitData(path=folder, **wrong)


def test_a_shifted_dataset_is_asked_and_not_trained_on(tmp_path):
    protocol = protocols.get("identifiable", {"shift": "closer", "n_points": 16})
    generate(tmp_path / "closer", protocol, {"test": 3}, progress=False)
    data = OrbitData.from_files(str(tmp_path / "closer"))
    assert len(next(iter(data.test_dataloader()))["tokens"]) == 3
    with pytest.raises(ValueError, match="'closer' is asked and never trained"):
        data.setup("fit")


def test_the_command_line_takes_the_world_from_the_files(folder, tmp_path):
    path = f"--data.path={folder}"
    words = from_files.completed(["-c", "pretrain.yaml", path, "--data.n_train=5"])
    assert words == [
        "-c", "pretrain.yaml", "--data.protocol=identifiable",
        '--data.protocol_args={"n_points": 16, "n_bins": 64, "law": "yukawa"}',
        "--data.population=force", "--data.seed=3", path, "--data.n_train=5",
    ]  # fmt: skip
    saved = tmp_path / "saved.yaml"
    saved.write_text(f"data: {{class_path: x.OrbitData, init_args: {{path: {folder}}}}}")
    assert len(from_files.completed(["-c", str(saved)])) == 6
    text = ["--data=TextData", "--data.path=README.md"]
    assert from_files.completed(text) == text


WRONG = [
    ("--data.protocol=paper", "decides data.protocol, which is 'identifiable'; leave out"),
    ("--data.protocol_args.law=newton", "decides data.protocol_args, which is {"),
    ("--data.seed=4", "decides data.seed, which is 3"),
]


@pytest.mark.parametrize(("word", "message"), WRONG)
def test_a_wrong_flag_beside_files_is_one_line(folder, refusal, monkeypatch, word, message):
    monkeypatch.setitem(sys.modules, "worldmodel.cli", None)  # which imports torch
    assert message in refusal(main, ["fit", "-c", "pretrain", f"--data.path={folder}", word])


@pytest.mark.full
def test_fit_and_finetune_read_files(folder, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    tiny = ["--trainer.max_steps=2", "--trainer.accelerator=cpu", "--data.batch_size=4"]
    path = f"--data.path={folder}"
    shape = [f"--model.{name}={value}" for name, value in SMALL.items()]
    main(["fit", "-c", "pretrain", path, *shape, *tiny])
    last = "runs/pretrain/version_0/checkpoints/last.ckpt"
    content = torch.load(last, weights_only=True)
    assert content["hyper_parameters"]["protocol_args"] == WORLD
    assert content["datamodule_hyper_parameters"]["path"] == folder
    main(["fit", "-c", "runs/pretrain/version_0/config.yaml", f"--ckpt_path={last}"])
    main(["finetune", "-c", "force", f"--pretrained={last}", path, "--data.n_train=8", *tiny])
    tuned = "runs/force/version_0/checkpoints/last.ckpt"
    capsys.readouterr()
    main(["test", tuned])
    made = capsys.readouterr().out
    main(["test", tuned, path])
    assert "test_loss" in capsys.readouterr().out
    assert "test_loss" in made
