"""Checkpoints: plain data that is checked before anything is made of it, and files in one piece.

A checkpoint may come from a stranger. So its archive's checksums are compared first (PyTorch's
reader does not), it is unpickled as weights and plain data alone, and its hyper-parameters may
name no class: which model they are of is this project's to say, and none is made by a name in a
file.
"""

from __future__ import annotations

import pickle
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar

import lightning
import torch
from lightning.pytorch.plugins import TorchCheckpointIO

from orbits import artefacts

Module = TypeVar("Module", bound=lightning.LightningModule)

HYPER_PARAMETERS = ("hyper_parameters", "datamodule_hyper_parameters")
OWN_CLASS, MAKER = "_class_path", "_instantiator"
"""What Lightning's command line adds to hyper-parameters: whose they are, and by what to make it.
The first is checked and the second never used."""
MODELS = (
    "worldmodel.tasks.NextTokenTask",
    "worldmodel.tasks.ForceTask",
    "worldmodel.state_task.StateTask",
    "worldmodel.text_task.TextTask",
)
"""The models that the command line trains."""


def read_checkpoint(path: str | Path) -> dict[str, Any]:
    """Return a world model's checkpoint as plain data.

    Raises:
        FileNotFoundError: There is no such file.
        ValueError: It is damaged, is not a checkpoint of a world model, or names a class.
    """
    check_archive(path)
    try:
        checkpoint = torch.load(path, map_location="cpu", weights_only=True)
        checkpoint["hyper_parameters"]["attention"], checkpoint["state_dict"]
    except (pickle.UnpicklingError, RuntimeError, OSError, EOFError, KeyError, TypeError):
        raise ValueError(f"{path}: not a checkpoint of a world model") from None
    check_plain(path, checkpoint)
    return checkpoint


def check_archive(path: str | Path) -> None:
    """Compare each member of a checkpoint with the checksum that was written with it.

    Raises:
        FileNotFoundError: There is no such file.
        ValueError: It is not a checkpoint, or a byte of it changed.
    """
    if not Path(path).exists():
        raise FileNotFoundError(f"{path}: no such file")
    if not zipfile.is_zipfile(path):
        raise ValueError(f"{path}: not a checkpoint of a world model")
    try:
        with zipfile.ZipFile(path) as archive:
            intact = archive.testzip() is None
    except Exception:  # whatever a reader of the archive trips over is damage
        intact = False
    if not intact:
        raise ValueError(f"{path}: damaged, its checksums do not match; take another copy")


def check_plain(path: str | Path, checkpoint: Mapping[str, Any]) -> None:
    """Refuse hyper-parameters by which a class would be made.

    Raises:
        ValueError: They hold a class path, are of a class outside the project, or are no plain
            data.
    """
    for group in HYPER_PARAMETERS:
        held = checkpoint.get(group, {})
        if not isinstance(held, Mapping):
            raise ValueError(f"{path}: {group} must be a mapping, got {type(held).__name__}")
        for place, value in _items(held):
            where = ".".join(place)
            if place[-1] == "class_path":
                raise ValueError(f"{path}: {where} names a class ({value!r}); a checkpoint may not")
            if not isinstance(value, Mapping | list | tuple | bool | int | float | str | None):
                kind = type(value).__name__
                raise ValueError(f"{path}: {where} must be plain data, got a {kind}")
    owner = checkpoint.get("hyper_parameters", {}).get(OWN_CLASS)
    if owner is not None and owner not in MODELS:
        raise ValueError(f"{path}: {OWN_CLASS} {owner!r} is no model of this project")


def _items(value: Any, place: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Yield everything inside nested mappings and lists, each with the keys that lead to it."""
    pairs = value.items() if isinstance(value, Mapping) else enumerate(value)
    for key, item in pairs:
        yield (*place, str(key)), item
        if isinstance(item, Mapping | list | tuple):
            yield from _items(item, (*place, str(key)))


def restored(kind: type[Module], checkpoint: Mapping[str, Any], path: str | Path) -> Module:
    """Return a model of a class that the caller chose, with a checkpoint's settings and weights.

    Args:
        kind: The class.
        checkpoint: Of :func:`read_checkpoint`.
        path: Where it is, for the message.

    Raises:
        ValueError: The settings or weights are not those of such a model.
    """
    held = checkpoint["hyper_parameters"]
    given = {name: value for name, value in held.items() if name not in (OWN_CLASS, MAKER)}
    try:
        model = kind(**given)
        model.on_load_checkpoint(dict(checkpoint))
        model.load_state_dict(checkpoint["state_dict"])
    except (TypeError, ValueError, RuntimeError, AttributeError) as error:
        reason = " ".join(str(error).split())
        raise ValueError(f"{path}: not a checkpoint of a {kind.__name__}: {reason}") from None
    return model


class AtomicCheckpoints(TorchCheckpointIO):
    """Replace a checkpoint in one step, and read none that is damaged or names a class.

    Lightning copies a new one in, where /tmp is another disk, and checks nothing when it reads.
    """

    def save_checkpoint(
        self, checkpoint: dict[str, Any], path: str | Path, storage_options: Any = None
    ) -> None:
        """Write a checkpoint; one at a URL as Lightning does.

        Raises:
            OSError: The disk is full or the folder cannot be written; the message has the path.
        """
        if "://" in str(path):
            super().save_checkpoint(checkpoint, path, storage_options)
            return
        with artefacts.replacing(path) as file:
            try:
                torch.save(checkpoint, file)
            except RuntimeError as error:  # of the archive's writer, which hides the file's error
                if isinstance(error.__context__, OSError):
                    raise error.__context__ from None
                raise

    def load_checkpoint(self, path: Any, *args: Any, **kwargs: Any) -> dict[str, Any]:
        """Read a checkpoint.

        Raises:
            ValueError: It is damaged, or its hyper-parameters name a class.
        """
        if "://" not in str(path):
            check_archive(path)
        checkpoint = super().load_checkpoint(path, *args, **kwargs)
        check_plain(path, checkpoint)
        return checkpoint
