"""Loading of models from checkpoints, in the class that wrote them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from orbits.runs import artefact
from worldmodel.models.base import GPTModel
from worldmodel.models.export import read_model
from worldmodel.models.mixture import MixtureModel
from worldmodel.models.orbit import ForceModel, NextTokenModel
from worldmodel.models.restored import restored
from worldmodel.models.state import StateModel
from worldmodel.models.text import TextModel, TokenModel


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
    kind: type[GPTModel]
    if "tokenizer" in checkpoint["hyper_parameters"]:
        kind = TextModel
    elif "vocab_size" in checkpoint["hyper_parameters"]:
        kind = TokenModel
    elif "exponents" in checkpoint["hyper_parameters"]:
        kind = MixtureModel
    elif "head.state.weight" in checkpoint["state_dict"]:
        kind = StateModel
    else:
        kind = ForceModel if "head.readout.weight" in checkpoint["state_dict"] else NextTokenModel
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
    origin = {"checkpoint": artefact.sha256(checkpoint)}
    return load_model(checkpoint).save_pretrained(folder, about, origin)
