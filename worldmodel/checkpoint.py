"""Checkpoints: plain data that is checked before anything is made of it, and files in one piece.

A checkpoint may come from a stranger. So its archive's checksums are compared first (PyTorch's
reader does not), it is unpickled as weights and plain data alone, and its hyper-parameters may
name no class and no file: which model they are of is this project's to say, and none is made by a
name in a file. Nor are the paths used that Lightning keeps of earlier checkpoints, which it would
write to and delete.
"""

from __future__ import annotations

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
PATHS = frozenset(
    ("dirpath", "best_model_path", "last_model_path", "kth_best_model_path", "best_k_models")
)
"""What Lightning's ModelCheckpoint keeps of files that it will write to or delete."""
DEEPEST = 20
"""Levels of hyper-parameters; a list in itself has no end."""
TOKENIZERS = ("bytes", "gpt2")
"""Tokenisers that have a name; any other is in the checkpoint, as the JSON that describes it."""


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
    except Exception:  # whatever the reader trips over
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
            # PyTorch compresses nothing, and what is compressed may be a thousand times as large.
            stored = all(x.compress_type == zipfile.ZIP_STORED for x in archive.infolist())
            intact = stored and archive.testzip() is None
    except Exception:  # whatever a reader of the archive trips over is damage
        intact = False
    if not intact:
        raise ValueError(f"{path}: damaged, its checksums do not match; take another copy")


def check_plain(path: str | Path, checkpoint: Mapping[str, Any]) -> None:
    """Refuse hyper-parameters by which a class would be made.

    Raises:
        ValueError: They hold a class path or a path of a tokeniser, are of a class outside the
            project, or are no plain data.
    """
    for group in HYPER_PARAMETERS:
        held = checkpoint.get(group, {})
        if not isinstance(held, Mapping):
            raise ValueError(f"{path}: {group} must be a mapping, got {type(held).__name__}")
        for place, value in _items(held):
            where = ".".join(place)
            if len(place) > DEEPEST:
                raise ValueError(f"{path}: {place[0]} is nested more than {DEEPEST} deep")
            if where.endswith("_args") and not isinstance(value, Mapping | None):
                raise ValueError(f"{path}: {where} must be a mapping, got {value!r}")
            if place[-1] == "class_path":
                raise ValueError(f"{path}: {where} names a class ({value!r}); a checkpoint may not")
            if not isinstance(value, Mapping | list | tuple | bool | int | float | str | None):
                kind = type(value).__name__
                raise ValueError(f"{path}: {where} must be plain data, got a {kind}")
            if isinstance(value, int) and value.bit_length() > 63:
                raise ValueError(f"{path}: {where} is no number of 64 bits")
    held = checkpoint.get("hyper_parameters", {})
    tokenizer = held.get("tokenizer", TOKENIZERS[0])
    if tokenizer not in TOKENIZERS and not str(tokenizer).startswith("{"):
        raise ValueError(f"{path}: tokenizer {str(tokenizer)[:40]!r} must be inside the checkpoint")
    owner = held.get(OWN_CLASS)
    if owner is not None and owner not in MODELS:
        raise ValueError(f"{path}: {OWN_CLASS} {owner!r} is no model of this project")


def check_resumable(path: str | Path, checkpoint: Mapping[str, Any]) -> None:
    """Refuse a checkpoint from which no training can go on.

    Raises:
        ValueError: It holds weights alone, or its optimiser's state is not what Lightning writes.
    """
    for name in ("optimizer_states", "lr_schedulers"):
        states = checkpoint.get(name)
        if not isinstance(states, list) or not all(isinstance(x, Mapping) for x in states):
            raise ValueError(
                f"{path}: has no {name}, so no training goes on from it; to start from its "
                "weights, fine-tune with --pretrained"
            )


def without_paths(callbacks: Mapping[str, Any]) -> dict[str, Any]:
    """Return the states of a checkpoint's callbacks without those that hold paths of files."""
    return {
        name: state
        for name, state in callbacks.items()
        if not (isinstance(state, Mapping) and PATHS & state.keys())
    }


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
        _check_size(kind, given, checkpoint["state_dict"])
        model = kind(**given)
        model.on_load_checkpoint(dict(checkpoint))
        model.load_state_dict(checkpoint["state_dict"])
    except (TypeError, ValueError, RuntimeError, AttributeError, ArithmeticError, LookupError) as e:
        reason = " ".join(str(e).split()) or type(e).__name__
        raise ValueError(f"{path}: not a checkpoint of a {kind.__name__}: {reason}") from None
    return model


def _check_size(
    kind: type[lightning.LightningModule], given: Mapping[str, Any], state: Mapping[str, Any]
) -> None:
    """Compare a model with the weights it shall have before any memory is taken for it.

    Raises:
        ValueError: It would have other weights.
    """
    blocks = {name.split(".")[2] for name in state if name.startswith("gpt.blocks.")}
    if given.get("n_layer", len(blocks)) != len(blocks):
        raise ValueError(f"n_layer is {given['n_layer']}, its weights are of {len(blocks)} blocks")
    with torch.device("meta"):
        shapes = {name: weights.shape for name, weights in kind(**given).state_dict().items()}
    for name, shape in shapes.items():
        held = getattr(state.get(name), "shape", None)
        if held is not None and held != shape:
            raise ValueError(f"{name} has shape {list(held)}, its settings make {list(shape)}")


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
