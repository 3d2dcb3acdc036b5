"""Checkpoint files: plain data that is checked before a model is made of it.

A checkpoint may come from a stranger. So its archive's checksums are compared first (PyTorch's
reader does not), it is unpickled as weights and plain data alone, and its hyper-parameters may
name no class and no file: the class of the model is one of this project's, and none is made by a
name in a file. Nor are the paths used that Lightning keeps of earlier checkpoints, which it would
write to and delete.

Nothing here imports torch before a file has passed the checks of its archive.
"""

from __future__ import annotations

import functools
import re
import sys
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from attention.listing import check_name
from orbits.runs import plugins
from orbits.runs.untrusted import printable
from worldmodel.models.renamed import RENAMED

KEYWORDS = ("best", "last", "hpc", "registry")
"""Values of ``ckpt_path`` that are not paths."""
HYPER_PARAMETERS = ("hyper_parameters", "datamodule_hyper_parameters")
SHAPE = ("n_layer", "n_head", "head_dim", "mlp", "norm")
"""Hyper-parameters of a backbone beside its attention."""
OWN_CLASS, MAKER = "_class_path", "_instantiator"
"""Keys that Lightning's command line adds to hyper-parameters: the class of the model, which is
checked, and the function that makes it, which is never used."""
MODELS = (
    "worldmodel.models.orbit.NextTokenModel",
    "worldmodel.models.orbit.ForceModel",
    "worldmodel.models.state.StateModel",
    "worldmodel.models.text.TextModel",
)
"""Models that the command line trains."""
PLUGINS = "plugins"
"""Key of the plug-in files that a model was trained with, names and checksums, for messages."""
PATHS = frozenset(
    ("dirpath", "best_model_path", "last_model_path", "kth_best_model_path", "best_k_models")
)
"""Keys of a ModelCheckpoint's state that name files it would write to or delete."""
MOST_ITEMS = 100_000
"""Most values inside hyper-parameters; lists that share parts make any number of few bytes."""
DEEPEST = 20
"""Most levels of nested hyper-parameters; a list in itself has no end."""
CONFIG = "config.json"
"""File that marks the folder of an exported model."""
WEIGHTS = "model.safetensors"
"""File of its weights."""
TOKENIZERS = ("bytes", "gpt2")
"""Tokenisers that have a name; any other is in the checkpoint, as the JSON that describes it."""
NAMED = re.compile(r"(?P<label>.+?):(?P<seed>\d+)=(?P<path>.+)")
"""A file with its label and seed in tables."""


def read_checkpoint(path: str | Path) -> dict[str, Any]:
    """Return a world model's checkpoint as plain data.

    Raises:
        FileNotFoundError: There is no such file.
        ValueError: It is damaged, is not a checkpoint of a world model, or names a class.
    """
    check_archive(path)
    import torch  # takes a second, which a refusal does not

    try:
        checkpoint = torch.load(path, map_location="cpu", weights_only=True)
        checkpoint["hyper_parameters"]["attention"], checkpoint["state_dict"]
    except Exception:  # whatever the reader trips over
        raise ValueError(f"{path}: not a checkpoint of a world model") from None
    check_plain(path, checkpoint)
    tell_changed(path, checkpoint)
    return checkpoint


def check_file(path: str | Path) -> None:
    """Refuse a missing file, or one that is no archive, without reading all of it."""
    if not Path(path).exists():
        raise FileNotFoundError(f"{path}: no such file")
    if Path(path).is_dir():
        is_one = (Path(path) / CONFIG).is_file()
        kind = "the folder of an exported model" if is_one else "a folder"
        raise ValueError(f"{path}: {kind}; name the file of a checkpoint, such as last.ckpt")
    if Path(path).name == WEIGHTS:
        raise ValueError(f"{path}: weights alone; name the folder, which has {CONFIG} beside them")
    if not zipfile.is_zipfile(path):
        raise ValueError(f"{path}: not a checkpoint of a world model")


def check_archive(path: str | Path) -> None:
    """Compare each member of a checkpoint with the checksum that was written with it."""
    check_file(path)
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
    """Refuse hyper-parameters that are not plain data or name a class."""
    for group in HYPER_PARAMETERS:
        settings = checkpoint.get(group, {})
        if not isinstance(settings, Mapping):
            raise ValueError(f"{path}: {group} must be a mapping, got {type(settings).__name__}")
        for n, (place, value) in enumerate(_items(settings)):
            if n == MOST_ITEMS:
                raise ValueError(f"{path}: {group} has more than {MOST_ITEMS:,} values")
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
    settings = checkpoint.get("hyper_parameters", {})
    tokenizer = settings.get("tokenizer", TOKENIZERS[0])
    if tokenizer not in TOKENIZERS and not str(tokenizer).startswith("{"):
        raise ValueError(f"{path}: tokenizer {str(tokenizer)[:40]!r} must be inside the checkpoint")
    owner = settings.get(OWN_CLASS)
    if owner is not None and RENAMED.get(owner, owner) not in MODELS:
        raise ValueError(f"{path}: {OWN_CLASS} {owner!r} is no model of this project")


def check_attention(path: str | Path, checkpoint: Mapping[str, Any]) -> None:
    """Refuse a checkpoint whose attention is not known here, and name the plug-ins to add."""
    name = str(checkpoint["hyper_parameters"]["attention"])
    try:
        check_name(name)
    except ValueError as error:
        reason, known, given = str(error), checkpoint.get(PLUGINS), plugins.addresses()
        files = [file for file in known if file not in given] if isinstance(known, Mapping) else []
        if files:
            flags = printable(" ".join(f"--plugin {file}" for file in files))
            reason = f"unknown attention {printable(name)!r}; it was trained with {flags}: add that"
        elif not given:
            hint = "if a plug-in defines it, add its --plugin"
            reason = f"unknown attention {printable(name)!r}; {hint}"
        raise ValueError(f"{path}: {reason}") from None


def tell_changed(path: str | Path, checkpoint: Mapping[str, Any]) -> None:
    """Say once which plug-ins have the name of a file of the training, but other contents.

    They may differ in a comment alone, so the model is not refused. Older checkpoints name none.
    """
    known = checkpoint.get(PLUGINS) or {}
    for file, sha256 in plugins.addresses().items() if isinstance(known, Mapping) else ():
        if known.get(file, sha256) != sha256:
            _say(f"{path}: the {file} of its training had other contents; answers may differ")


@functools.cache
def _say(line: str) -> None:
    """Print a line to standard error, once: a command may read a checkpoint several times."""
    print(line, file=sys.stderr)


def check_resumable(path: str | Path, checkpoint: Mapping[str, Any]) -> None:
    """Refuse a checkpoint from which training cannot be resumed."""
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


class NamedCheckpoint(NamedTuple):
    """A checkpoint or exported model; label and seed are None where only its path was given."""

    label: str | None
    seed: int | None
    path: Path


def named_checkpoint(text: str | Path) -> NamedCheckpoint:
    """Read ``PATH`` or ``LABEL:SEED=PATH``."""
    match = NAMED.fullmatch(str(text))
    path = Path(match["path"] if match else text)
    if path.is_dir():
        if not (path / CONFIG).is_file():
            raise FileNotFoundError(f"{path}: no {CONFIG} in it; not an exported model")
    elif not path.is_file():
        hint = "; a named checkpoint is LABEL:SEED=PATH" if "=" in str(text) and not match else ""
        raise FileNotFoundError(f"{path}: no such file{hint}")
    if not match:
        return NamedCheckpoint(None, None, path)
    return NamedCheckpoint(match["label"], int(match["seed"]), path)
