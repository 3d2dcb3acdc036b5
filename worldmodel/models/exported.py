"""Settings and checksums of exported models, which are checked without torch.

:mod:`worldmodel.models.export` writes such a folder and loads its weights.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from worldmodel.models.checkpoint import CONFIG, WEIGHTS, check_plain

SCHEMA = 2


def settings_digest(settings: Mapping[str, Any]) -> str:
    """Return the sha256 of settings, in whatever order they are written."""
    return hashlib.sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest()


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
