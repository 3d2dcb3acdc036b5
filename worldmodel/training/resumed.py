"""Settings of a checkpoint beside the configured ones: a resumed training keeps its own."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from typing import Any

from worldmodel.keys.signatures import LINKED

ASIDE = ("n_val", "n_test", "batch_size", "eval_batch_size", "num_workers", "path")
"""Settings of data that a resumed training may change: a batch is that of one device, of which
there may be more or fewer, and what files hold is compared by hash."""


def compare_model(configured: Any, restored: Any, path: str, resumes: bool) -> None:
    """Report the hyper-parameters of a checkpoint that differ from the configuration's.

    Args:
        configured: The configured model: a class path and its ``init_args``.
        restored: That of the checkpoint, likewise.
        path: The checkpoint.
        resumes: Whether a training is resumed; else a difference is printed and no error.

    Raises:
        ValueError: A training is resumed with other hyper-parameters.
    """
    configured, restored = (x.get("init_args") or {} for x in (configured, restored))
    changed = [
        f"{name} {value!r} (configured: {configured[name]!r})"
        for name, value in sorted(restored.items())
        if name in configured and configured[name] != value and name not in (*LINKED, "pretrained")
    ]
    if changed and resumes:
        raise ValueError(_refusal(path, changed))
    if changed:
        print(f"taken from {path}: {', '.join(changed)}", file=sys.stderr)


def compare_data(data: Any, checkpoint: Mapping[str, Any], path: str) -> None:
    """Refuse to resume on other data than those of the checkpoint, of which it would then tell.

    Args:
        data: The configured data module.
        checkpoint: The content of the checkpoint.
        path: The checkpoint.

    Raises:
        ValueError: A setting of the data differs that is not in :data:`ASIDE`.
    """
    own, restored = getattr(data, "hparams", None), checkpoint.get("datamodule_hyper_parameters")
    if not own or not isinstance(restored, dict):
        return
    configured, trained = _written_out(own), _written_out(restored)
    changed = [
        f"data.{name} {value!r} (configured: {own[name]!r})"
        for name, value in sorted(restored.items())
        if name in own
        and name not in ASIDE
        and not name.startswith("_")  # where the class lies, which may move between versions
        and _plain(configured[name]) != _plain(trained[name])
    ]
    if changed:
        raise ValueError(_refusal(path, changed))


def _refusal(path: str, changed: list[str]) -> str:
    return (
        f"{path} was trained with {', '.join(changed)}; a resumed training keeps what it "
        "started with, so configure the same"
    )


def _written_out(data: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings of data with what None stands for: the same seed, and the same bytes."""
    stands_for = {"train_seed": data.get("seed"), "device_batches": "float64"}
    return {
        name: stands_for[name] if value is None and name in stands_for else value
        for name, value in data.items()
    }


def _plain(value: Any) -> str:
    """Return a setting in a form in which lists and tuples are alike."""
    return json.dumps(value, default=str, sort_keys=True)
