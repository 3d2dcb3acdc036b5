"""Configurations by name, and what is refused before torch is imported."""

import sys
import zipfile
from pathlib import Path

import pytest

from worldmodel import configurations, from_checkpoint
from worldmodel.__main__ import main


def test_a_name_is_found_from_any_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in configurations.names():
        assert Path(configurations.find(name)).is_file()
        assert configurations.find(f"{name}.yaml") == configurations.find(name)
    assert {"pretrain", "force", "text"} <= {*configurations.names()}


def test_a_file_of_that_name_comes_first_and_a_folder_does_not(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "force").mkdir()
    assert configurations.find("force") == str(configurations.FOLDER / "force.yaml")
    (tmp_path / "pretrain").write_text("model: null")
    assert configurations.find("pretrain") == "pretrain"
    assert configurations.find("model: {}") == "model: {}"


@pytest.mark.parametrize("name", ["pretrian", "configs/pretrian.yaml"])
def test_an_unknown_name_says_which_is_near(name):
    with pytest.raises(FileNotFoundError, match=r"did you mean -c pretrain\? choose from force"):
        configurations.find(name)


def test_no_other_file_of_the_package_is_a_configuration():
    with pytest.raises(FileNotFoundError):
        configurations.find("../probes/probe")


def test_every_spelling_of_the_flag_is_read():
    words = ["-c", "a.yaml", "--x", "-c=b.yaml", "--config=c.yaml", "--config", "d.yaml", "--y"]
    assert configurations.given(words) == ["a.yaml", "b.yaml", "c.yaml", "d.yaml"]
    assert configurations.after_configurations(words) == 7
    assert configurations.after_configurations(["--x"]) == 0
    assert configurations.found(["-c=pretrain", "--x"]) == [
        f"-c={configurations.FOLDER / 'pretrain.yaml'}", "--x",
    ]  # fmt: skip


def test_output_lies_beside_the_training_or_in_runs(tmp_path):
    inside = "runs/force/version_0/checkpoints/last.ckpt"
    assert from_checkpoint.output_of(inside, "x.npz") == Path("runs/force/version_0/x.npz")
    assert from_checkpoint.output_of("kept/mine.ckpt", "x.npz") == Path("runs/mine/x.npz")
    folder = tmp_path / "softmax-p15.0"
    folder.mkdir()
    assert from_checkpoint.output_of(folder, "x.npz") == Path("runs/softmax-p15.0/x.npz")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("fit", "fit needs a configuration, such as -c pretrain; choose a file, or from force"),
        ("fit --model.attention=lssar", "fit needs a configuration"),
        ("finetune", "finetune needs a configuration, such as -c force"),
        ("fit -c pretrian", "did you mean -c pretrain?"),
        ("predict there/checkpoints/last.ckpt", "there/predictions.npz exists; choose another"),
        ("predict last.ckpt --out mine.npz", "mine.npz exists; choose another file with --out"),
        ("predict missing.ckpt", "missing.ckpt: no such file"),
        ("predict missing.ckpt --out mine.npz", "missing.ckpt: no such file"),
        ("attention-maps missing.ckpt", "missing.ckpt: no such file"),
    ],
)
def test_what_cannot_be_is_one_line(tmp_path, monkeypatch, refusal, words, message):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "there" / "checkpoints").mkdir(parents=True)
    for name in ("there/predictions.npz", "mine.npz"):
        (tmp_path / name).write_text("precious")
    for name in ("there/checkpoints/last.ckpt", "last.ckpt"):
        with zipfile.ZipFile(tmp_path / name, "w") as archive:
            archive.writestr("data.pkl", "")
    monkeypatch.setattr(sys, "argv", ["worldmodel"])
    assert message in refusal(main, words.split())


def test_predict_makes_no_folder_of_a_logger_unless_one_is_asked_for():
    asked = ["-c", "mine.yaml", "--ckpt_path=x"]
    expected = ["-c", "mine.yaml", "--trainer.logger=false", "--ckpt_path=x"]
    assert from_checkpoint.evaluation("predict", asked) == expected
    assert from_checkpoint.evaluation("test", asked) == asked
