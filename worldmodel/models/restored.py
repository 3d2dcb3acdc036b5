"""Models of a known class, with the settings and weights of a checkpoint."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

import lightning
import torch

from worldmodel.models.checkpoint import MAKER, OWN_CLASS, check_attention

Module = TypeVar("Module", bound=lightning.LightningModule)


def restored(kind: type[Module], checkpoint: Mapping[str, Any], path: str | Path) -> Module:
    """Return a model of a class that the caller chose, with a checkpoint's settings and weights.

    Args:
        kind: The class.
        checkpoint: Of :func:`read_checkpoint`.
        path: Where it is, for the message.
    """
    settings = {
        name: value
        for name, value in checkpoint["hyper_parameters"].items()
        if name not in (OWN_CLASS, MAKER)
    }
    try:
        _check_size(kind, settings, checkpoint["state_dict"])
        model = kind(**settings)
        model.on_load_checkpoint(dict(checkpoint))
        model.load_state_dict(checkpoint["state_dict"])
    except (TypeError, ValueError, RuntimeError, AttributeError, ArithmeticError, LookupError) as e:
        check_attention(path, checkpoint)  # a plug-in that is missing says more than its error
        reason = " ".join(str(e).split()) or type(e).__name__
        raise ValueError(f"{path}: not a checkpoint of a {kind.__name__}: {reason}") from None
    return model


def _check_size(
    kind: type[lightning.LightningModule], settings: Mapping[str, Any], state: Mapping[str, Any]
) -> None:
    """Compare a model's shapes with a checkpoint's weights before memory is allocated."""
    blocks = {name.split(".")[2] for name in state if name.startswith("gpt.blocks.")}
    if settings.get("n_layer", len(blocks)) != len(blocks):
        raise ValueError(
            f"n_layer is {settings['n_layer']}, its weights are of {len(blocks)} blocks"
        )
    with torch.device("meta"):
        shapes = {name: weights.shape for name, weights in kind(**settings).state_dict().items()}
    for name, shape in shapes.items():
        stored = getattr(state.get(name), "shape", None)
        if stored is not None and stored != shape:
            raise ValueError(f"{name} has shape {list(stored)}, its settings make {list(shape)}")
