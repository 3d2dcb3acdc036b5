"""The cells of the study ``skippable``: tiles of attention, and the output without them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import torch
from torch import Tensor

from attention.layer import Attention, with_weights
from benchmarks.cost.skippable import Skippable, TileSettings
from orbits.runs.cell import Cell, Outcome
from orbits.runs.result import Case
from worldmodel.data.text import TextData
from worldmodel.models.backbone import Block
from worldmodel.models.load import load_model
from worldmodel.models.text import TextModel

TILE = (128, 64)  # rows and keys of the forward kernel


def cells(study: Skippable, settings: TileSettings) -> Iterator[Cell]:
    """Yield a cell per checkpoint."""
    texts = {"text": Path(settings.text)} if settings.text else {}
    paths = [Path(path) for path in settings.checkpoints]
    names = [path.name for path in paths]
    for path in paths:
        # Every training's checkpoint has the same name: where they meet, the folder tells.
        name = path.name if names.count(path.name) == 1 else path.as_posix()
        setting = {"checkpoint": name, "length": settings.length}
        yield Cell(
            measure,
            Case(study.name, "measurement", setting=setting),
            {"length": settings.length, "thresholds": list(settings.thresholds)},
            inputs={"checkpoint": path, **texts},
        )


def measure(
    checkpoint: Path, length: int, thresholds: Sequence[float], text: Path | None = None
) -> list[Outcome]:
    """Measure each block of a text model on the first held-out tokens.

    Args:
        checkpoint: File of the checkpoint.
        length: Tokens.
        thresholds: Shares of the row's largest weight.
        text: Text file or folder; None for the standard library of Python.

    Returns:
        For every block ``skippable@T``, see :func:`shares`, and ``error@T``, see :func:`errors`,
        of each threshold T.
    """
    task = load_model(checkpoint)
    if not isinstance(task, TextModel):
        raise ValueError(f"{checkpoint}: not a text model")
    definition = task.tokenizer.definition
    data = TextData(str(text) if text else None, definition, seq_len=length, n_test=1)
    tokens = data.sequences("test", 1).__getitems__([0])["tokens"][:, :-1]
    return [
        Outcome(
            metrics={
                **_named("skippable", thresholds, shares(weights, thresholds)),
                **_named("error", thresholds, errors(weights, values, thresholds)),
            },
            details={"sharpen": float(mixer.sharpen), "tile": list(TILE)},
            variant=mixer.spec.label,
            setting={"block": number},
            inputs={"corpus": data.corpus_record["sha256"]},
            manifest={"corpus": data.corpus_record},
        )
        for number, (mixer, weights, values) in enumerate(mixed(task, tokens), 1)
    ]


@torch.no_grad()
def mixed(task: TextModel, tokens: Tensor) -> Iterator[tuple[Attention, Tensor, Tensor]]:
    """Yield each block's attention, its weights [H, L, L] and its values [H, L, D]."""
    x = task.eval().embedded(tokens)
    for block in task.gpt.blocks:
        assert isinstance(block, Block)
        mixer = with_weights(block.attention)
        normed = block.norm_attention(x)
        values = mixer.value(normed)[0].unflatten(-1, (-1, mixer.head_dim)).transpose(0, 1)
        shared = mixer.n_head // mixer.n_kv_head
        yield mixer, mixer.weights(normed)[0], values.repeat_interleave(shared, dim=0)
        x = block(x)


def shares(weights: Tensor, thresholds: Sequence[float]) -> list[float]:
    """Return the share of causal tiles without a weight above each share of its row's largest.

    Args:
        weights: [H, L, L].
        thresholds: Shares of the row's largest |weight|.
    """
    rows, keys = TILE
    tops = _tops(weights)
    first_row = torch.arange(tops.shape[-2])[:, None] * rows
    causal = torch.arange(tops.shape[-1]) * keys <= first_row + rows - 1
    return [float((tops[:, causal] <= threshold).double().mean()) for threshold in thresholds]


def errors(weights: Tensor, values: Tensor, thresholds: Sequence[float]) -> list[float]:
    """Return the error of the output where these tiles count as zero, RMS by the output's RMS.

    The other weights stay as they are, also where rows would be divided by a new sum.
    """
    length, tops, relative_errors = weights.shape[-1], _tops(weights), []
    norm = (weights @ values).norm().clamp_min(torch.finfo(weights.dtype).tiny)
    for threshold in thresholds:
        left_out = tops <= threshold
        for axis, size in zip((-2, -1), TILE, strict=True):
            left_out = left_out.repeat_interleave(size, dim=axis)
        dropped = weights * left_out[:, :length, :length]
        relative_errors.append(float((dropped @ values).norm() / norm))
    return relative_errors


def _tops(weights: Tensor) -> Tensor:
    """Return the largest share of its row's largest |weight| in each tile, [H, tiles, tiles]."""
    rows, keys = TILE
    length = weights.shape[-1]
    size = weights.abs()
    ratio = size / size.amax(-1, keepdim=True).clamp_min(torch.finfo(weights.dtype).tiny)
    padded = ratio.new_zeros(len(ratio), -(-length // rows) * rows, -(-length // keys) * keys)
    padded[..., :length, :length] = ratio
    return padded.unflatten(-1, (-1, keys)).unflatten(-3, (-1, rows)).amax(dim=(-3, -1))


def _named(name: str, thresholds: Sequence[float], values: Sequence[float]) -> dict[str, float]:
    words = [f"{x:.2g}" for x in thresholds]
    if len(set(words)) < len(words):
        words = [repr(x) for x in thresholds]
    return {f"{name}@{word}": value for word, value in zip(words, values, strict=True)}
