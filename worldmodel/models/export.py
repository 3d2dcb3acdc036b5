"""Exported models: weights as safetensors beside their settings and a card, for others to load.

A checkpoint holds the optimiser too and is a pickle; an exported model is a folder of
``model.safetensors``, ``config.json`` (the settings, plain data, and the sha256 of these and of the
weights) and ``README.md`` (the card), as model hubs hold them. ``save_pretrained`` and
``from_pretrained`` of :class:`worldmodel.models.base.GPTModel` write and read it,
:func:`worldmodel.models.load.load_model` takes the folder as it takes a checkpoint, and
:func:`write_checkpoint` makes a checkpoint of it for what reads nothing else.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load, save

from orbits.runs import artefact, plugins
from worldmodel.models.checkpoint import (
    CONFIG,
    MAKER,
    OWN_CLASS,
    PLUGINS,
    WEIGHTS,
    check_plain,
    read_checkpoint,
    tell_changed,
)
from worldmodel.models.exported import HALF, PRECISION, SCHEMA, check_export, settings_digest

CARD = "README.md"
DATA = ("seed", "train_seed", "n_train", "batch_size")
"""Settings of the data of a training that an exported model keeps."""
HEADER = "---\nlibrary_name: orrery\n---\n\n"
"""Header of a card, for model hubs."""


def export(
    checkpoint: str | Path,
    folder: str | Path,
    about: str,
    provenance: Mapping[str, Any],
    half: bool = False,
) -> Path:
    """Write the model of a checkpoint to a new folder.

    Args:
        checkpoint: The checkpoint.
        folder: The folder, which must not be there.
        about: One sentence for the card: what the model was trained on.
        provenance: Plain data on where it comes from, for example a manifest.
        half: Round matrices to float16, in half the bytes. They are loaded as float32; answers are
            then not those of the training to the last digit, and no run starts from them.

    Raises:
        FileNotFoundError: There is no such checkpoint.
        FileExistsError: The folder exists.
        ValueError: It is no checkpoint of a world model, or a weight is too large for float16.
    """
    folder = Path(folder)
    contents = files(checkpoint, folder.name, about, provenance, half)
    return _write(folder, contents)


def files(
    checkpoint: str | Path, name: str, about: str, provenance: Mapping[str, Any], half: bool = False
) -> dict[str, bytes]:
    """Return the contents of the files of :func:`export`, by name; nothing is written.

    Args:
        checkpoint: The checkpoint.
        name: The name of the folder.
        about: As for :func:`export`.
        provenance: Likewise.
        half: Likewise.

    Raises:
        FileNotFoundError: There is no such checkpoint.
        ValueError: As :func:`export`.
    """
    source = read_checkpoint(checkpoint)
    settings, weights = source["hyper_parameters"], source["state_dict"]
    return _contents(settings, weights, name, about, dict(provenance), half)


def write(
    folder: str | Path,
    settings: Mapping[str, Any],
    weights: Mapping[str, torch.Tensor],
    about: str,
    provenance: Mapping[str, Any],
) -> Path:
    """Write settings and weights to a new folder; :func:`export` tells of the rest.

    Raises:
        FileExistsError: The folder exists.
        ValueError: The settings are no plain data.
    """
    folder = Path(folder)
    check_plain(folder, {"hyper_parameters": settings})
    return _write(folder, _contents(settings, weights, folder.name, about, dict(provenance)))


def _write(folder: Path, contents: Mapping[str, bytes]) -> Path:
    if folder.exists():
        raise FileExistsError(f"{folder} exists; choose another folder")
    folder.mkdir(parents=True)
    for name, content in contents.items():
        (folder / name).write_bytes(content)
    return folder


def _contents(
    hyper_parameters: Mapping[str, Any],
    state: Mapping[str, torch.Tensor],
    name: str,
    about: str,
    provenance: dict[str, Any],
    half: bool = False,
) -> dict[str, bytes]:
    settings = {
        key: value
        for key, value in hyper_parameters.items()
        if key not in (OWN_CLASS, MAKER)
        and not (key == "pretrained" and value)  # a path of one machine
    }
    weights = {key: each.detach().cpu().contiguous() for key, each in state.items()}
    weights = _halved(name, weights) if half else weights
    size = sum(each.numel() for each in weights.values())
    saved = save(weights)
    config = {
        "schema": SCHEMA,
        "settings": settings,
        "settings_sha256": settings_digest(settings),
        "sha256": hashlib.sha256(saved).hexdigest(),
        **({PRECISION: HALF} if half else {}),
        "provenance": provenance,
        **({PLUGINS: files} if (files := plugins.addresses()) else {}),
    }
    rounded = ", matrices rounded to float16" if half else ""
    card = (
        f"{HEADER}# {name}\n\n{about}\n\n{size:,} weights{rounded}. Load it with\n\n"
        "```python\nfrom worldmodel.models.load import load_model\n\n"
        f'model = load_model("{name}")\n```\n'
    )
    return {
        WEIGHTS: saved,
        CARD: card.encode(),
        CONFIG: json.dumps(config, indent=1).encode() + b"\n",
    }


def _halved(name: str, weights: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """Return weights with matrices as float16; vectors are few, and hold means and units."""
    halved = {
        key: x.half() if x.ndim > 1 and x.dtype == torch.float32 else x
        for key, x in weights.items()
    }
    for key, values in halved.items():
        if not torch.isfinite(values).all():
            raise ValueError(f"{name}: {key} has a weight too large for float16; leave out half")
    return halved


def read_model(path: str | Path) -> dict[str, Any]:
    """Return a checkpoint, or an exported model as if it were one, as plain data.

    Raises:
        FileNotFoundError: There is no such file.
        ValueError: As :func:`read_export` or :func:`worldmodel.models.checkpoint.read_checkpoint`.
    """
    return read_export(path) if Path(path).is_dir() else read_checkpoint(path)


def read_export(folder: str | Path) -> dict[str, Any]:
    """Return the settings and weights of an exported model, as a checkpoint holds them.

    They include settings of the data (:data:`DATA`), if its provenance has them.

    Raises:
        FileNotFoundError: A file of it is missing.
        ValueError: A file is damaged, or the settings are no plain data of this schema.
    """
    folder = Path(folder)
    config = check_export(folder)
    try:
        stored = load((folder / WEIGHTS).read_bytes())
    except SafetensorError as error:
        raise ValueError(f"{folder / WEIGHTS}: {error}") from None
    weights = {name: x.float() if x.dtype == torch.half else x for name, x in stored.items()}
    for name, values in weights.items():
        if not torch.isfinite(values).all():
            raise ValueError(f"{folder / WEIGHTS}: {name} is not finite; train the model again")
    tell_changed(folder, config)
    return {
        "hyper_parameters": config["settings"],
        "datamodule_hyper_parameters": _data(config["provenance"]),
        PLUGINS: config.get(PLUGINS),
        "state_dict": weights,
    }


def write_checkpoint(folder: str | Path, path: str | Path) -> None:
    """Write an exported model as a checkpoint.

    It holds settings and weights alone: training starts from it, and none is resumed from it.

    Args:
        folder: The exported model.
        path: The checkpoint, which is replaced in one step.

    Raises:
        FileNotFoundError: A file of the model is missing.
        ValueError: As :func:`read_export`.
    """
    found = read_export(folder)
    with artefact.replacing(path) as file:
        torch.save({name: found[name] for name in ("hyper_parameters", "state_dict")}, file)


def _data(provenance: Mapping[str, Any]) -> dict[str, int]:
    """Return the settings of the data that a provenance tells, itself or by its case."""
    told = provenance.get("data")
    told = dict(told) if isinstance(told, Mapping) else {}
    if isinstance(case := provenance.get("case"), Mapping):
        setting = case.get("setting")
        labels = setting.get("labels") if isinstance(setting, Mapping) else None
        told |= {"train_seed": case.get("seed"), "n_train": labels}
    return {name: told[name] for name in DATA if type(told.get(name)) is int}
