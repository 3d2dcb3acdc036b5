"""Loading of models from checkpoints, in the class that wrote them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from orbits.runs import artefact
from worldmodel.models.base import GPTModel
from worldmodel.models.export import DATA, read_model
from worldmodel.models.exported import class_name
from worldmodel.models.mixture import MixtureModel
from worldmodel.models.orbit import ForceModel, NextTokenModel
from worldmodel.models.restored import restored
from worldmodel.models.state import StateModel
from worldmodel.models.text import TextModel, TokenModel

CLASSES: tuple[type[GPTModel], ...] = (
    *(NextTokenModel, ForceModel, StateModel, TextModel, TokenModel, MixtureModel),
)
"""Classes that a checkpoint may be of."""


def load_model(path: str | Path, checkpoint: Mapping[str, Any] | None = None) -> GPTModel:
    """Return the model of a checkpoint or of an exported model's folder.

    Args:
        path: The file or the folder.
        checkpoint: Its content where it has been read already (:func:`read_model`).

    Raises:
        FileNotFoundError: There is no such file.
        ValueError: As :func:`worldmodel.models.checkpoint.read_checkpoint`, or weights and settings
            do not belong together.
    """
    checkpoint = read_model(path) if checkpoint is None else checkpoint
    name = class_name(checkpoint["hyper_parameters"], checkpoint["state_dict"])
    kind = next(each for each in CLASSES if each.__name__ == name)
    return restored(kind, checkpoint, path)


def export_model(checkpoint: str | Path, folder: str | Path, about: str = "") -> Path:
    """Write the model of a checkpoint to a new folder in the hub's form.

    Args:
        checkpoint: The checkpoint.
        folder: The folder, which must not be there.
        about: One sentence for the card: what the model was trained on.

    Raises:
        FileNotFoundError: There is no such checkpoint.
        FileExistsError: The folder exists.
        ValueError: As :func:`load_model`.
    """
    content = read_model(checkpoint)
    data = content.get("datamodule_hyper_parameters", {})
    kept = {name: data[name] for name in DATA if data.get(name) is not None}
    origin = {"checkpoint": artefact.sha256(checkpoint), **({"data": kept} if kept else {})}
    return load_model(checkpoint, content).save_pretrained(folder, about, origin)
