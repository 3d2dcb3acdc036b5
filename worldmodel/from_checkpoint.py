"""Settings from a checkpoint that complete a command line: model, data, and where output goes.

The settings become flags, each as JSON, in front of those that the user gives, which so override
them. A checkpoint may come from a stranger: it is read as plain data, and of its data's settings
only those of orbits are taken, which name no file.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from orbits.runs.deferred import deferred
from worldmodel.configurations import after_configurations, given
from worldmodel.models.checkpoint import (
    KEYWORDS,
    OWN_CLASS,
    SHAPE,
    check_attention,
    read_checkpoint,
)
from worldmodel.models.exported import read_config

read_model = deferred("worldmodel.models.export:read_model")
DATA = "datamodule_hyper_parameters"
ORBIT_DATA = ("protocol", "protocol_args", "population", "n_train", "n_val", "n_test", "seed",
              "train_seed", "batch_size", "eval_batch_size", "images")  # fmt: skip
"""Settings of OrbitData that make the same data again."""
BACKBONE = ("input", "attention", "attention_args", *SHAPE, "window")
"""Hyper-parameters that a force head's backbone shares with the pre-trained one."""
TRAINED = ("optimizer", "lr", "weight_decay", "warmup_steps", "min_lr_ratio", "direction_weight",
           "freeze_backbone")  # fmt: skip
"""Hyper-parameters of a training, which an evaluation only repeats."""
OF_LABELS = ("shift", "label_leak", "target")
"""Overrides of a protocol that are not the backbone's."""
MODELS = {
    "worldmodel.models.orbit.NextTokenModel",
    "worldmodel.models.orbit.ForceModel",
    "worldmodel.models.state.StateModel",
}
PREDICTIONS = "predictions.npz"
WRITER = "worldmodel.training.callbacks.PredictionWriter"


def check_ending(path: str | Path) -> None:
    """Refuse a file of predictions that says by its ending that it is no ``.npz``."""
    if Path(path).suffix != Path(PREDICTIONS).suffix:
        raise ValueError(f"{path}: predictions are written as {Path(PREDICTIONS).suffix}")


def output_of(checkpoint: str | Path, name: str) -> Path:
    """Return the path of a file or folder that is made of a checkpoint.

    It lies in the folder of the training, ``runs/force/version_0`` for example, and for a
    checkpoint that lies elsewhere in a folder of its name in ``runs``.
    """
    path = Path(checkpoint)
    if path.parent.name == "checkpoints":
        return path.parent.parent / name
    return Path("runs") / (path.name if path.is_dir() else path.stem) / name


def evaluation(command: str, arguments: Sequence[str]) -> list[str]:
    """Complete ``predict``, ``test`` or ``validate`` of a checkpoint without a configuration.

    What ``predict`` finds goes to its file alone: no logger makes a folder for it.
    """
    checkpoint = value_of(arguments, "ckpt_path")
    if given(arguments):
        place = after_configurations(arguments)
        quiet = ["--trainer.logger=false"] if command == "predict" else []
        return [*arguments[:place], *quiet, *arguments[place:]]
    if checkpoint in (None, *KEYWORDS):
        return list(arguments)
    content = read_checkpoint(str(checkpoint))
    check_attention(str(checkpoint), content)
    data, model = content.get(DATA), dict(content["hyper_parameters"])
    name = model.get(OWN_CLASS)
    if name not in MODELS or not isinstance(data, Mapping) or "protocol" not in data:
        raise ValueError(
            f"{checkpoint}: does not say which orbits it knows; give its configuration with -c"
        )
    if command == "predict" and not str(name).endswith(".ForceModel"):
        kind = str(name).rpartition(".")[2]
        raise ValueError(f"{checkpoint} is a {kind}, which tells no forces; finetune it first")
    words = ["--trainer.logger=false", f"--model={name}", "--data=OrbitData"]
    words += as_flags("model", {x: model[x] for x in (*BACKBONE, *TRAINED) if x in model})
    words += as_flags("data", {x: data[x] for x in ORBIT_DATA if x in data})
    if command == "predict":
        path = output_of(str(checkpoint), PREDICTIONS)
        writer = [{"class_path": WRITER, "init_args": {"path": str(path)}}]
        words += as_flags("trainer", {"callbacks": writer})
    return [*words, *arguments]


def configured_output(configuration: str) -> tuple[str, bool] | None:
    """Return the file that a configuration predicts into, and whether it may replace it."""
    try:
        content = yaml.safe_load(Path(configuration).read_text("utf-8"))
        callbacks = content["trainer"]["callbacks"]
    except (OSError, UnicodeError, yaml.YAMLError, LookupError, TypeError):
        return None  # whose message names more than this one could
    for callback in callbacks if isinstance(callbacks, list) else [callbacks]:
        if isinstance(callback, Mapping) and callback.get("class_path") == WRITER:
            own = callback.get("init_args") or {}
            path = own.get("path")
            return (path, own.get("overwrite") is True) if isinstance(path, str) else None
    return None


def fine_tuning(arguments: Sequence[str]) -> list[str]:
    """Complete ``finetune --pretrained CKPT`` by the shape and the protocol of the backbone.

    A training that is resumed has them from its own checkpoint.
    """
    pretrained, resumed = (value_of(arguments, key) for key in ("pretrained", "ckpt_path"))
    source = pretrained if resumed in (None, *KEYWORDS) else resumed
    if pretrained is None or source is None or "://" in source:
        return list(arguments)
    if Path(source).is_dir():  # whose settings are read without torch
        config = read_config(source)
        content = {**config, "hyper_parameters": config["settings"]}
    else:
        content = read_model(source)
    check_attention(source, content)
    model = content["hyper_parameters"]
    place = after_configurations(arguments)
    _refuse_other(source, model, arguments[place:])
    words = as_flags("model", {x: model[x] for x in BACKBONE if x in model})
    if "protocol" in model:
        overrides = dict(model.get("protocol_args") or {})
        of_world = {
            f"protocol_args.{name}": value
            for name, value in overrides.items()
            if name not in OF_LABELS and name.isidentifier()
        }
        words += as_flags("data", {"protocol": model["protocol"], **of_world})
    return [*arguments[:place], *words, *arguments[place:]]


def _refuse_other(source: str, model: Mapping[str, Any], arguments: Sequence[str]) -> None:
    """Refuse flags that give a backbone another attention or protocol than it was trained with."""
    for group, name in (("model", "attention"), ("data", "protocol")):
        for key in (f"{group}.{name}", f"{group}.init_args.{name}"):
            asked = value_of(arguments, key)
            if name in model and asked not in (None, model[name]):
                raise ValueError(
                    f"{source}: trained with {name}={model[name]!r}, this model has {name}="
                    f"{asked!r}; leave out --{key}"
                )


def value_of(arguments: Sequence[str], key: str) -> str | None:
    """Return the last value of a flag on a command line."""
    value = None
    for place, word in enumerate(arguments):
        flag, equals, rest = word.partition("=")
        if flag == f"--{key}":
            value = rest if equals else next(iter(arguments[place + 1 :]), None)
    return value


def as_flags(group: str, settings: Mapping[str, Any]) -> list[str]:
    """Return settings as flags whose values are read as YAML, of which JSON is a part."""
    return [f"--{group}.{name}={_yaml(value)}" for name, value in settings.items()]


def _yaml(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)
