"""Configurations and checkpoints of earlier versions, whose classes had other names and places."""

import importlib

import pytest
import torch
import yaml

from orbits.runs import artefact
from tests.worldmodel.test_cli import run
from worldmodel.cli import main
from worldmodel.models.load import load_model
from worldmodel.models.renamed import RENAMED, renamed

EARLIER = {present: earlier for earlier, present in RENAMED.items()}


def as_earlier(value):
    """Return plain data with the path by which an earlier version named each class."""
    if isinstance(value, dict):
        return {key: as_earlier(item) for key, item in value.items()}
    if isinstance(value, list):
        return [as_earlier(item) for item in value]
    return EARLIER.get(value, value) if isinstance(value, str) else value


@pytest.fixture(scope="module")
def earlier(tmp_path_factory):
    """Return the folder of a training and a fine-tuning with the names that they had once."""
    folder = tmp_path_factory.mktemp("runs")
    run("fit", "pretrain.yaml", folder)
    run("finetune", "force.yaml", folder, "--data.n_train=8")
    for kind in ("pretrain", "force"):
        saved = folder / kind / "version_0"
        config = yaml.safe_load((saved / "config.yaml").read_text())
        (saved / "config.yaml").write_text(yaml.safe_dump(as_earlier(config)))
        last = saved / "checkpoints" / "last.ckpt"
        checkpoint = torch.load(last, weights_only=True)
        for group in ("hyper_parameters", "datamodule_hyper_parameters"):
            checkpoint[group] = as_earlier(checkpoint[group])
        torch.save(checkpoint, last)
    return folder


@pytest.mark.parametrize("path", RENAMED.values())
def test_each_class_is_where_the_table_says(path):
    module, _, name = path.rpartition(".")
    assert getattr(importlib.import_module(module), name).__name__ == name


def test_plain_data_keep_everything_but_the_paths_of_classes():
    held = {"a": ["worldmodel.tasks.ForceTask", 1, None], "worldmodel.tasks.ForceTask": "ForceTask"}
    assert renamed(held) == {**held, "a": ["worldmodel.models.orbit.ForceModel", 1, None]}


@pytest.mark.full
def test_a_training_of_an_earlier_version_goes_on(earlier):
    saved = earlier / "pretrain" / "version_0"
    last = saved / "checkpoints" / "last.ckpt"
    text = (saved / "config.yaml").read_text()
    assert "worldmodel.tasks.NextTokenTask" in text
    assert "worldmodel.data.OrbitData" in text
    owner = torch.load(last, weights_only=True)["hyper_parameters"]["_class_path"]
    assert owner == "worldmodel.tasks.NextTokenTask"
    assert type(load_model(last)).__name__ == "NextTokenModel"
    arguments = ["-c", str(saved / "config.yaml"), f"--ckpt_path={last}"]
    main(["fit", *arguments, "--trainer.max_steps=3", "--trainer.val_check_interval=1"])
    resumed = earlier / "pretrain" / "version_1"
    assert torch.load(resumed / "checkpoints" / "last.ckpt")["global_step"] == 3
    assert "Task" not in (resumed / "config.yaml").read_text()


@pytest.mark.full
def test_predictions_are_those_of_the_renamed_files(earlier):
    saved, files = earlier / "force" / "version_0", []
    config, last = saved / "config.yaml", saved / "checkpoints" / "last.ckpt"
    assert "worldmodel.callbacks.PredictionWriter" in config.read_text()
    for number in range(2):
        files.append(earlier / f"{number}.npz")
        writer = f"--trainer.callbacks.path={files[-1]}"
        main(["predict", "-c", str(config), f"--ckpt_path={last}", writer, "--data.n_test=3"])
        checkpoint = torch.load(last, weights_only=True)
        checkpoint["hyper_parameters"] = renamed(checkpoint["hyper_parameters"])
        torch.save(checkpoint, last)
        config.write_text(yaml.safe_dump(renamed(yaml.safe_load(config.read_text()))))
    first, second = (artefact.load_arrays(file)[0] for file in files)
    assert {name: array.tobytes() for name, array in first.items()} == {
        name: array.tobytes() for name, array in second.items()
    }


def test_an_earlier_name_on_the_command_line_is_told_its_present_one(refusal):
    said = refusal(main, ["fit", "--model=worldmodel.tasks.ForceTask"], alone=False)
    message = "unknown model class 'worldmodel.tasks.ForceTask'; it is now "
    assert message + "worldmodel.models.orbit.ForceModel" in said


@pytest.mark.full
def test_a_checkpoint_of_a_class_outside_the_table_is_refused(earlier, tmp_path):
    last = earlier / "pretrain" / "version_0" / "checkpoints" / "last.ckpt"
    checkpoint = torch.load(last, weights_only=True)
    checkpoint["hyper_parameters"]["_class_path"] = "worldmodel.tasks.OrbitTask"
    torch.save(checkpoint, tmp_path / "other.ckpt")
    with pytest.raises(ValueError, match="is no model of this project"):
        load_model(tmp_path / "other.ckpt")
