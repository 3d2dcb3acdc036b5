"""Attention maps of a checkpoint, one panel per head (LSSAR paper, Figs. A1 and A4 to A6)."""

from __future__ import annotations

import io
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import torch
from matplotlib.figure import Figure
from torch import Tensor

from attention import metrics
from attention.layer import Attention
from orbits import artefacts
from worldmodel.data import OrbitData
from worldmodel.tasks import OrbitTask, load_task

CLAMP = 0.5
"""Weights are drawn from 0 to this value, as published."""


def attention_maps(
    checkpoint: str | Path, out: str | Path, layer: int = -1, sequence: int = 0
) -> Path:
    """Draw every head's weights on one held-out orbit.

    Args:
        checkpoint: Checkpoint of a NextTokenTask or a ForceTask.
        out: The ``.png`` to write.
        layer: Which block; -1 for the last.
        sequence: Which test sequence of the checkpoint's protocol.

    Returns:
        The path of the picture.

    Raises:
        ValueError: Not a checkpoint, or there is no such layer or sequence.
        FileExistsError: ``out`` exists.
    """
    out = Path(out)
    if out.exists():
        raise FileExistsError(f"{out} exists; choose another --out")
    if sequence < 0:
        raise ValueError(f"sequence must not be negative, got {sequence}")
    task = load_task(checkpoint)
    depth = len(task.gpt.blocks)
    if not -depth <= layer < depth:
        raise ValueError(f"layer must be in [{-depth}, {depth}), got {layer}")
    weights = layer_weights(task, layer, sequence)
    name = _mixer(task, layer).extra_repr()
    figure = draw(weights, f"{name}, block {layer % depth + 1} of {depth}")
    picture = io.BytesIO()
    figure.savefig(picture, dpi=110, format="png")
    plt.close(figure)
    artefacts.write_bytes(out, picture.getvalue())
    return out


@torch.no_grad()
def layer_weights(task: OrbitTask, layer: int, sequence: int) -> Tensor:
    """Return the attention matrix of one block on one test sequence, [H, T, T]."""
    data = OrbitData(task.hparams["protocol"], task.hparams["protocol_args"], n_test=sequence + 1)
    batch = data.sequences("test", sequence + 1).__getitems__([sequence])
    mixer = _mixer(task, layer)
    seen: list[Tensor] = []
    hook = mixer.register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0]))
    try:
        task.eval().hidden(batch)
    finally:
        hook.remove()
    return mixer.weights(seen[0])[0]


def _mixer(task: OrbitTask, layer: int) -> Attention:
    mixer = task.gpt.blocks[layer].attention
    assert isinstance(mixer, Attention)
    return mixer


def draw(weights: Tensor, title: str) -> Figure:
    """Return a grid of heat maps with each head's sink ratio and entropy.

    Args:
        weights: [H, T, T].
        title: Headline of the figure.
    """
    heads = len(weights)
    columns = min(4, heads)
    rows = -(-heads // columns)
    figure, axes = plt.subplots(
        rows, columns, figsize=(2.7 * columns, 2.9 * rows), squeeze=False, layout="constrained"
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
    figure.colorbar(image, ax=axes, shrink=0.7)
    figure.suptitle(title, fontsize=10)
    figure.supxlabel("key row", fontsize=8)
    figure.supylabel("query row", fontsize=8)
    return figure
