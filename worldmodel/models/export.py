"""Exported models: weights as safetensors beside their settings and a card, for others to load.

A checkpoint holds the optimiser too and is a pickle; an exported model is a folder of
``model.safetensors``, ``config.json`` (the settings, plain data) and ``README.md`` (the card).
:func:`worldmodel.models.load.load_model` takes the folder as it takes a checkpoint.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from safetensors.torch import load, save

from worldmodel.models.checkpoint import CONFIG, MAKER, OWN_CLASS, check_plain, read_checkpoint

WEIGHTS, CARD = "model.safetensors", "README.md"
SCHEMA = 1


def export(
    checkpoint: str | Path, folder: str | Path, about: str, provenance: Mapping[str, Any]
) -> Path:
    """Write the model of a checkpoint to a new folder.

    Args:
        checkpoint: The checkpoint.
        folder: The folder, which must not be there.
        about: One sentence for the card: what the model was trained on.
        provenance: Plain data on where it comes from, for example a manifest.

    Raises:
        FileNotFoundError: There is no such checkpoint.
        FileExistsError: The folder exists.
        ValueError: It is no checkpoint of a world model.
    """
    source = read_checkpoint(checkpoint)
    folder = Path(folder)
    folder.mkdir(parents=True)
    settings = {
        name: value
        for name, value in source["hyper_parameters"].items()
        if name not in (OWN_CLASS, MAKER, "pretrained")  # the last is a path of one machine
    }
    weights = {name: each.contiguous() for name, each in source["state_dict"].items()}
    size = sum(each.numel() for each in weights.values())
    config = {"schema": SCHEMA, "settings": settings, "provenance": dict(provenance)}
    card = (
        f"# {folder.name}\n\n{about}\n\n{size:,} weights. Load it with\n\n"
        "```python\nfrom worldmodel.models.load import load_model\n\n"
        f'model = load_model("{folder.name}")\n```\n'
    )
    (folder / WEIGHTS).write_bytes(save(weights))
    (folder / CARD).write_text(card, encoding="utf-8")
    (folder / CONFIG).write_text(json.dumps(config, indent=1) + "\n", encoding="utf-8")
    return folder


def read_model(path: str | Path) -> dict[str, Any]:
    """Return a checkpoint, or an exported model as if it were one, as plain data.

    Raises:
        FileNotFoundError: There is no such file.
        ValueError: As :func:`read_export` or :func:`worldmodel.models.checkpoint.read_checkpoint`.
    """
    return read_export(path) if Path(path).is_dir() else read_checkpoint(path)


def read_export(folder: str | Path) -> dict[str, Any]:
    """Return the settings and weights of an exported model, as a checkpoint holds them.

    Of its data it tells the seed and the number of labelled sequences, if its provenance does.

    Raises:
        FileNotFoundError: A file of it is missing.
        ValueError: A file is damaged, or the settings are no plain data of this schema.
    """
    folder = Path(folder)
    try:
        config = json.loads((folder / CONFIG).read_bytes())
        settings = dict(config["settings"])
        schema, data = config["schema"], _data(config.get("provenance"))
    except FileNotFoundError:
        raise FileNotFoundError(f"{folder}: no {CONFIG} in it; not an exported model") from None
    except (ValueError, KeyError, TypeError):
        raise ValueError(f"{folder / CONFIG}: not the settings of an exported model") from None
    if schema != SCHEMA:
        raise ValueError(f"{folder / CONFIG}: schema must be {SCHEMA}, got {schema!r:.40}")
    parts = {"hyper_parameters": settings, "datamodule_hyper_parameters": data}
    check_plain(folder / CONFIG, parts)
    try:
        weights = load((folder / WEIGHTS).read_bytes())
    except FileNotFoundError:
        raise FileNotFoundError(f"{folder}: no {WEIGHTS} in it; not an exported model") from None
    except SafetensorError as error:
        raise ValueError(f"{folder / WEIGHTS}: {error}") from None
    return {**parts, "state_dict": weights}


def _data(provenance: Any) -> dict[str, int]:
    """Return the settings of the data that the case of a provenance tells; there may be none."""
    case = provenance.get("case") if isinstance(provenance, Mapping) else None
    if not isinstance(case, Mapping):
        return {}
    setting = case.get("setting")
    labels = setting.get("labels") if isinstance(setting, Mapping) else None
    told = {"train_seed": case.get("seed"), "n_train": labels}
    return {name: value for name, value in told.items() if type(value) is int}
