"""Keys and values that are judged by the sources, against what Lightning's parser says of them."""

import ast
import os
import re
import subprocess
import sys
from pathlib import Path

import jsonargparse
import pytest

from worldmodel import cli, configurations
from worldmodel.__main__ import main
from worldmodel.keys import checks, signatures
from worldmodel.keys import help as key_help

ENVIRONMENT = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
CLASSES = {"model": "NextTokenModel", "data": "OrbitData"}
FINE = [
    *(
        "--model.window=null",
        "--model.window=16",
        "--model.lr=6e-4",
        "--model.lr=1",
        "--model.lr=.5",
    ),
    *("--model.n_layer=1_0", "--model.attention_args={p: 3}", "--model.attention_args.p=3"),
    *("--model.attention=of_a_plug_in", "--model.init_args.norm=rms", "--model.dict_kwargs.x=3"),
    "--model.class_path=worldmodel.models.orbit.NextTokenModel",
    *("--data.images=True", "--data.images=yes", "--data.device_batches=null", "--data.path=x.y"),
    *("--data.protocol_args={law: power_1_5, n_bins: 32}", "--data.protocol_args.law=mond"),
    *("--data.protocol_args.law=39.5*m1*m2/r**1.7", "--data.protocol_args.law=power_a0.5_n2"),
    *("--data.protocol_args={shift: {r: [1, 2]}}", "--data.init_args.train_seed=null"),
    *("--trainer.max_steps=-1", "--trainer.max_epochs=null", "--trainer.max_steps=10_000"),
    *("--trainer.max_time=00:01:00:00", "--trainer.max_time=null"),
    *("--trainer.precision=16", "--trainer.precision=bf16-mixed", "--trainer.precision=null"),
    *("--trainer.devices=auto", "--trainer.devices=[0, 1]", "--trainer.devices=0,1"),
    *("--trainer.devices=-1", "--trainer.accelerator=xpu", "--trainer.accelerator=my_package.Chip"),
    *("--trainer.val_check_interval=0.25", "--trainer.val_check_interval=00:01:00:00"),
    *("--trainer.val_check_interval=~", "--trainer.val_check_interval={hours: 1}"),
    *("--trainer.gradient_clip_val=1e-1"),
    *("--trainer.callbacks+=RichProgressBar", "--trainer.callbacks+={class_path: Timer}"),
    *("--trainer.logger=false", "--trainer.logger.save_dir=runs", "--trainer.deterministic=warn"),
    *("--trainer.limit_val_batches=3", "--trainer.strategy=ddp", "--trainer.plugins=null"),
]


@pytest.mark.parametrize("word", FINE)
def test_a_correct_value_is_not_refused(word):
    checks.check([word], CLASSES)
    checks.check([*word.split("=", 1), "--trainer.max_steps", "-1"], CLASSES)


FINE_IN_A_FILE = [
    *("trainer: {max_steps: null}", "seed_everything: null", "seed_everything: false"),
    *(
        "model: {n_layer: null}",
        'model: {n_layer: "2"}',
        "trainer: {gradient_clip_val: .inf}",
        "model: {lr: 6e-3}",
    ),
    *("trainer: {precision: 32}", "trainer: {devices: [0]}", "trainer: {logger: false}"),
    *("data: {protocol_args: null}", "model: null", "model: TextModel", "ckpt_path: null"),
    *("trainer: {val_check_interval: 10:00:00:00}", "optimizer: {class_path: torch.optim.Adam}"),
    *("model: {class_path: their.Model, init_args: {n_layers: 3}}", "weights_only: true"),
    "model: {class_path: TextModel, init_args: {n_layer: 2}, dict_kwargs: {x: 3}}",
]


@pytest.mark.parametrize("text", FINE_IN_A_FILE)
def test_a_correct_configuration_is_not_refused(tmp_path, text):
    (tmp_path / "mine.yaml").write_text(text, "utf-8")
    chosen = configurations.settings(tmp_path / "mine.yaml", ["model.class_path"])
    classes = {**CLASSES, "model": chosen["model.class_path"] or CLASSES["model"]}
    checks.check(["-c", str(tmp_path / "mine.yaml"), "last.ckpt"], classes)


def test_the_configurations_of_the_package_are_not_refused():
    for name in configurations.names():
        path = configurations.find(name)
        chosen = configurations.settings(path, [f"{group}.class_path" for group in CLASSES])
        classes = {group: chosen[f"{group}.class_path"] or CLASSES[group] for group in CLASSES}
        checks.check(["-c", path], classes)
        assert any(x.startswith("--trainer.max_steps=") for x in configurations.words(path))


def test_a_key_before_a_word_that_changes_its_class_is_not_refused():
    data = {**CLASSES, "data": "TextData"}
    checks.check(["--data.n_train=3", "--data.population=x", "--data=TextData"], data)
    checks.check(["--data.n_train=3", "-c", configurations.find("text")], data)
    with pytest.raises(ValueError, match=r"unknown key 'data\.n_train'; choose from batch_size"):
        checks.check(["--data=TextData", "--data.n_train=3"], data)


@pytest.mark.parametrize("chosen", ["{class_path: TextModel}", "TextModel.yaml", "my.TextModle"])
def test_a_class_in_a_file_in_settings_or_from_elsewhere_is_not_refused(chosen):
    checks.check([f"--model={chosen}", "--model.zzz=3", "--model.n_layer=many"], {"model": chosen})


def test_a_key_of_a_class_that_is_not_known_is_refused_when_it_is_a_misspelling_alone():
    checks.check(["--data.zzz=3", "--data.batch_size=many"], {})
    with pytest.raises(ValueError, match=r"did you mean --data\.batch_size\?"):
        checks.check(["--data.batch_sise=3"], {})


LAW = """
from orbits.laws import Law

LAW = Law(
    name="gentle", expression="k*m1*m2/r**1.9", potential="-k*m1*m2/(0.9*r**0.9)",
    parameters={"k": 39.5}, units={"k": "AU^2.9 / (solar mass year^2)"},
    exponents={"r": -1.9, "m1": 1.0, "m2": 1.0}, reference="a stranger",
)
"""


def test_a_law_of_a_plug_in_is_not_refused(tmp_path):
    (tmp_path / "gentle.py").write_text(LAW, "utf-8")
    code = """
from orbits.runs import plugins
from worldmodel.keys import checks
words = plugins.take(["--plugin=gentle.py", "--data.protocol_args={law: gentle}"])
checks.check([*words, *plugins.take(["--data.protocol_args.law=gentle.py"])], {"data": "OrbitData"})
"""
    subprocess.run([sys.executable, "-c", code], check=True, cwd=tmp_path, env=ENVIRONMENT)


@pytest.mark.parametrize("group", CLASSES)
def test_classes_take_what_their_sources_say(group):
    modules = {"model": cli.MODELS, "data": cli.DATA}[group]
    assert tuple(each.__name__ for each in modules) == signatures.CLASSES[group]
    for each in modules:
        parser = jsonargparse.ArgumentParser(exit_on_error=False)
        taken = parser.add_class_arguments(each, "it", fail_untyped=False)
        known = signatures.keys(group, each.__name__)
        assert {name.removeprefix("it.") for name in taken} == {*known}
        defaults = parser.get_defaults()["it"]
        for name, key in known.items():
            if key.default is not None:
                assert ast.literal_eval(key.default) == defaults[name]
            assert key.about, name


def test_help_has_a_line_per_key(capsys):
    main(["fit", "-c", "text", "--model.help"])
    text = capsys.readouterr().out
    assert text.startswith("usage: python -m worldmodel fit [-c CONFIG] [--model.KEY VALUE ...]")
    assert "\nTextModel: Predict the next token of a text.\n" in text
    lines = {line.split()[0]: line for line in text.splitlines() if line.startswith("  --")}
    assert {*lines} == {f"--model.{key}" for key in signatures.keys("model", "TextModel")}
    assert "muon | adamw" in lines["--model.optimizer"]
    assert " ".join(lines["--model.n_head"].split()) == "--model.n_head int 2 Heads per block."
    assert "`python -m worldmodel fit --model.help CLASS`" in text
    for words, kind in (
        (["finetune", "--model.help"], "ForceModel"),
        (["fit", "--model.help", "StateModel"], "StateModel"),
        (["fit", "--data.help=worldmodel.data.shards.ShardData"], "ShardData"),
        (["fit", "-c", "text", "--data.help"], "TextData"),
        (["validate", "--data.help"], "OrbitData"),
    ):
        main(words)
        assert f"\n{kind}: " in capsys.readouterr().out


def test_help_on_a_class_from_elsewhere_is_left_to_lightning():
    assert key_help.page("fit", ["--model.help=package.Model"], {}) is None


@pytest.mark.parametrize(
    ("words", "model", "data"),
    [
        (["fit", "--help"], "NextTokenModel", "OrbitData"),
        (["finetune", "-c", "force", "-h"], "ForceModel", "OrbitData"),
        (["fit", "-c", "text", "-h"], "TextModel", "TextData"),
        (["fit", "-c", "nothing", "-h"], "NextTokenModel", "OrbitData"),
    ],
)
def test_help_of_a_training_has_the_keys_of_its_model_and_data(words, model, data, capsys):
    main(words)
    said = capsys.readouterr().out
    assert f"keys of {model}, with their defaults:\n" in said
    assert "\n  --data.batch_size=64 " in said
    for group, kind in (("model", model), ("data", data)):
        shown = re.findall(rf"^  --{group}\.(\w+)=", said, re.MULTILINE)
        left_out = signatures.LINKED if group == "model" else ()
        assert shown == [key for key in signatures.keys(group, kind) if key not in left_out]
    assert len(said.splitlines()) <= 50, "a screen and a half"


@pytest.mark.parametrize("key", ["protocol", "protocol_args", "init_args.protocol"])
def test_what_the_model_takes_from_its_data_is_set_there(key):
    with pytest.raises(ValueError, match=r"from its data: set --data\.protocol"):
        checks.check([f"--model.{key}=paper"], CLASSES)
    with pytest.raises(ValueError, match=r"did you mean --data\.protocol\?"):
        checks.check(["--model.protocl=paper"], CLASSES)
