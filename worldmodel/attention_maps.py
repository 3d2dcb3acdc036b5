"""Attention maps of a checkpoint, one panel per head (LSSAR paper, Figs. A1 and A4 to A6)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import torch
from matplotlib.figure import Figure
from torch import Tensor

from attention import metrics
from attention.layer import Attention, with_weights
from orbits import pictures
from worldmodel.data import OrbitData
from worldmodel.gpt import Block
from worldmodel.gpt_task import GPTTask
from worldmodel.tasks import load_task
from worldmodel.text_task import TextTask

CLAMP = 0.5
"""Weights are drawn from 0 to this value, as published."""

SENTENCE = (
    "Working from home can be great most days. I enjoy the flexibility and not having to commute "
    "in traffic. But sometimes I miss the office interactions with my coworkers and team meetings."
)
"""What a text model is drawn on: the sentence of the LSSAR paper, Fig. A1."""

MAX_LABELS = 48
"""Up to this many tokens are written along the axes."""


def attention_maps(
    checkpoint: str | Path,
    out: str | Path,
    layer: int = -1,
    sequence: int | None = None,
    text: str | None = None,
) -> Path:
    """Draw every head's weights on one held-out orbit, or on a text.

    Args:
        checkpoint: Checkpoint of a NextTokenTask, a ForceTask or a TextTask.
        out: The ``.png`` to write.
        layer: Which block; -1 for the last.
        sequence: For orbits: which test sequence of the checkpoint's protocol; None for the first.
        text: For text: what to draw; None for ``SENTENCE``.

    Returns:
        The path of the picture.

    Raises:
        ValueError: Not a checkpoint, there is no such layer or sequence, the checkpoint is of the
            other kind, or its mixer is linear.
        FileExistsError: ``out`` exists.
    """
    out = Path(out)
    if out.exists():
        raise FileExistsError(f"{out} exists; choose another --out")
    task = load_task(checkpoint)
    depth = len(task.gpt.blocks)
    if not -depth <= layer < depth:
        raise ValueError(f"layer must be in [{-depth}, {depth}), got {layer}")
    weights = layer_weights(task, layer, sequence, text)
    title = f"{_mixer(task, layer).extra_repr()}, block {layer % depth + 1} of {depth}"
    if isinstance(task, TextTask):
        tokens = _tokens(task, text)
        figure = draw(weights, f"{title}, {len(tokens)} tokens", "token", _labels(task, tokens))
    else:
        figure = draw(weights, title)
    return pictures.save(figure, out)


def layer_weights(
    task: GPTTask, layer: int, sequence: int | None = None, text: str | None = None
) -> Tensor:
    """Return the attention matrix of one block on one test sequence or text, [H, T, T].

    Raises:
        ValueError: A text for an orbit model, a sequence for a text model, a negative sequence,
            or a text without tokens.
    """
    return weights_on(task, layer, _batch(task, sequence, text))


@torch.no_grad()
def weights_on(task: GPTTask, layer: int, batch: dict[str, Tensor]) -> Tensor:
    """Return the attention matrix of one block on the first sequence of a batch, [H, T, T]."""
    mixer = _mixer(task, layer)
    seen: list[Tensor] = []
    hook = mixer.register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0]))
    try:
        task.eval().hidden(batch)
    finally:
        hook.remove()
    return mixer.weights(seen[0])[0]


def _batch(task: GPTTask, sequence: int | None, text: str | None) -> dict[str, Tensor]:
    if isinstance(task, TextTask):
        if sequence is not None:
            raise ValueError("a text model has no test orbits: use --text instead of --sequence")
        return {"tokens": _tokens(task, text)[None]}
    if text is not None:
        raise ValueError("an orbit model reads no text: use --sequence instead of --text")
    index = sequence or 0
    if index < 0:
        raise ValueError(f"sequence must not be negative, got {index}")
    data = OrbitData(task.hparams["protocol"], task.hparams["protocol_args"], n_test=index + 1)
    return data.sequences("test", index + 1).__getitems__([index])


def _tokens(task: TextTask, text: str | None) -> Tensor:
    """Return the ids of a text, int64 [T]."""
    tokens = task.tokenizer.encode(SENTENCE if text is None else text)
    if not len(tokens):
        raise ValueError("text must not be empty")
    return torch.from_numpy(tokens).long()


def _labels(task: TextTask, tokens: Tensor) -> list[str] | None:
    """Return what is written along the axes, or None where there are too many tokens."""
    if len(tokens) > MAX_LABELS:
        return None
    pieces = [task.tokenizer.decode([i]).replace(" ", "·") for i in tokens.tolist()]
    return [piece if piece.isprintable() else ascii(piece)[1:-1] for piece in pieces]


def _mixer(task: GPTTask, layer: int) -> Attention:
    block = task.gpt.blocks[layer]
    assert isinstance(block, Block)
    return with_weights(block.attention)


def draw(
    weights: Tensor, title: str, position: str = "row", labels: Sequence[str] | None = None
) -> Figure:
    """Return a grid of heat maps with each head's sink ratio and entropy.

    Args:
        weights: [H, T, T].
        title: Headline of the figure.
        position: What a position is called.
        labels: What is written at each position, T strings; None for numbers.
    """
    heads, length = weights.shape[:2]
    columns = min(4, heads)
    rows = -(-heads // columns)
    # Inches: room for the labels, or two dots for each position up to a few hundred.
    side = max(2.7, 0.13 * length if labels else min(6, 0.02 * length))
    figure, axes = plt.subplots(
        rows,
        columns,
        figsize=(side * columns, (side + 0.2) * rows),
        squeeze=False,
        layout="constrained",
    )
    sinks, entropies = metrics.sink_ratio(weights), metrics.row_entropy(weights)
    low = -CLAMP if bool((weights < 0).any()) else 0.0
    for axis in axes.flat[heads:]:
        axis.set_visible(False)
    for head, axis in zip(range(heads), axes.flat, strict=False):
        image = axis.imshow(
            weights[head].float().numpy(),
            vmin=low,
            vmax=CLAMP,
            cmap="viridis" if low == 0 else "RdBu_r",
        )
        axis.set_title(
            f"head {head + 1}: sink {sinks[head]:.2f}, entropy {entropies[head]:.2f}", fontsize=8
        )
        axis.tick_params(labelsize=6)
        if labels:
            rotation = 90 if max(map(len, labels)) > 2 else 0
            axis.set_xticks(range(length), labels, rotation=rotation, parse_math=False)
            axis.set_yticks(range(length), labels, parse_math=False)
    figure.colorbar(image, ax=axes, shrink=0.7)
    figure.suptitle(title, fontsize=10)
    figure.supxlabel(f"key {position}", fontsize=8)
    figure.supylabel(f"query {position}", fontsize=8)
    return figure
