"""Settings and checksums of exported models, which are checked without torch.

:mod:`worldmodel.models.export` writes such a folder and loads its weights.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Container, Mapping
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open

from worldmodel.models.checkpoint import CONFIG, WEIGHTS, check_plain

SCHEMA = 2
PRECISION, HALF = "precision", "float16"
"""Key and value in the config of rounded weights; that of others has none."""
BY_SETTING = {"tokenizer": "TextModel", "vocab_size": "TokenModel", "exponents": "MixtureModel"}
"""Classes that a hyper-parameter tells."""
BY_WEIGHT = {"head.state.weight": "StateModel", "head.readout.weight": "ForceModel"}
"""Classes that a weight tells; a model with none of all these is a NextTokenModel."""


def settings_digest(settings: Mapping[str, Any]) -> str:
    """Return the sha256 of settings, in whatever order they are written."""
    return hashlib.sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest()


def class_name(settings: Mapping[str, Any], weights: Container[str]) -> str:
    """Return the name of the class of a model, by its hyper-parameters and its weights' names."""
    told = [kind for name, kind in BY_SETTING.items() if name in settings]
    told += [kind for name, kind in BY_WEIGHT.items() if name in weights]
    return next(iter(told), "NextTokenModel")


def is_of_text(settings: Mapping[str, Any]) -> bool:
    """Tell by its hyper-parameters whether a model is one of text, which no probe evaluates."""
    return class_name(settings, ()) in ("TextModel", "TokenModel")


def class_of(folder: str | Path, settings: Mapping[str, Any]) -> str:
    """Return the name of the class of an exported model, of whose weights the names are read.

    Raises:
        ValueError: The file of weights is none.
    """
    path = Path(folder) / WEIGHTS
    try:
        with safe_open(path, "numpy") as file:
            return class_name(settings, set(file.keys()))
    except SafetensorError as error:
        raise ValueError(f"{path}: {error}") from None


def check_layer(layer: int, depth: int) -> None:
    """Refuse the number of a block of which a model of some depth has none."""
    if not -depth <= layer < depth:
        raise ValueError(f"layer must be in [{-depth}, {depth}), got {layer}")


def read_config(folder: str | Path) -> dict[str, Any]:
    """Return the settings, the checksums and the provenance of an exported model.

    Weights fit many settings: those of LSSAR with one exponent load under another. So settings are
    checked too; older exports hold no checksum of them.

    Raises:
        FileNotFoundError: There are none.
        ValueError: They are damaged or changed, of another schema or no plain data.
    """
    path = Path(folder) / CONFIG
    try:
        config = json.loads(path.read_bytes())
        schema = config["schema"]
    except (FileNotFoundError, NotADirectoryError):
        raise FileNotFoundError(f"{folder}: no {CONFIG} in it; not an exported model") from None
    except (ValueError, KeyError, TypeError, RecursionError):
        raise ValueError(f"{path}: not the settings of an exported model") from None
    if schema != SCHEMA:
        raise ValueError(f"{path}: schema must be {SCHEMA}, got {schema!r:.40}; export it again")
    for name, kind in (("settings", dict), ("sha256", str), ("provenance", dict)):
        if not isinstance(config.get(name), kind):
            raise ValueError(f"{path}: not the settings of an exported model: no {name}")
    if "attention" not in config["settings"]:  # else the model would be softmax, unasked
        raise ValueError(f"{path}: its settings name no attention")
    check_plain(path, {"hyper_parameters": config["settings"]})
    stated = config.get("settings_sha256")
    if stated is not None and stated != settings_digest(config["settings"]):
        raise ValueError(
            f"{path}: its settings are not those that the weights were trained with (their sha256 "
            "is not settings_sha256); take another copy"
        )
    return dict(config)


def check_export(folder: str | Path) -> dict[str, Any]:
    """Compare the weights of an exported model with their checksum; return what it is read by.

    Raises:
        FileNotFoundError: A file of it is missing.
        ValueError: The weights are damaged, or as :func:`read_config`.
    """
    config, path = read_config(folder), Path(folder) / WEIGHTS
    try:
        with path.open("rb") as file:
            sha256 = hashlib.file_digest(file, "sha256").hexdigest()
    except FileNotFoundError:
        raise FileNotFoundError(f"{folder}: no {WEIGHTS} in it; not an exported model") from None
    if sha256 != config["sha256"]:
        raise ValueError(f"{path}: damaged, its sha256 is not that of {CONFIG}; take another copy")
    return config
