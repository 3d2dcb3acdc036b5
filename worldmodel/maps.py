"""Attention maps of a checkpoint (LSSAR paper, Figs. A1 and A4 to A6) and states of its layers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from matplotlib.figure import Figure
from torch import Tensor

from attention import label, metrics
from attention.layer import Attention, with_weights
from orbits.runs.cli import called
from orbits.runs.figure import headline, panels, save_figure
from orbits.runs.naming import display
from worldmodel.data.orbits import OrbitData
from worldmodel.models.backbone import Block
from worldmodel.models.base import GPTModel
from worldmodel.models.exported import check_layer
from worldmodel.models.load import load_model
from worldmodel.models.orbit import OrbitModel
from worldmodel.models.text import TextModel, TokenModel

CLAMP = 0.5
"""Largest weight of the colour scale, as published."""

SENTENCE = (
    "Working from home can be great most days. I enjoy the flexibility and not having to commute "
    "in traffic. But sometimes I miss the office interactions with my coworkers and team meetings."
)
"""Text for the maps of a text model: the sentence of the LSSAR paper, Fig. A1."""

MAX_LABELS = 48
"""Most tokens that are written along the axes."""


def attention_maps(
    checkpoint: str | Path,
    out: str | Path,
    layer: int = -1,
    sequence: int | None = None,
    text: str | None = None,
) -> Path:
    """Draw every head's weights on one held-out orbit, or on a text.

    Args:
        checkpoint: Checkpoint of a NextTokenModel, a ForceModel or a TextModel.
        out: The ``.png`` to write.
        layer: Number of the block; -1 for the last.
        sequence: For orbits: which test sequence of the checkpoint's protocol; None for the first.
        text: For text: what to draw; None for ``SENTENCE``.

    Returns:
        The path of the picture.

    Raises:
        ValueError: Not a checkpoint, there is no such layer or sequence, the checkpoint is of the
            other kind or of neither, or its mixer is linear.
        FileExistsError: ``out`` exists.
    """
    out = Path(out)
    if out.exists():
        raise FileExistsError(f"{out} exists; choose another --out")
    model = load_model(checkpoint)
    if not isinstance(model, OrbitModel | TextModel):
        raise ValueError(
            f"{checkpoint}: its model reads neither orbits nor text; name a checkpoint of "
            f"{called('worldmodel fit')} or finetune"
        )
    depth = len(model.gpt.blocks)
    check_layer(layer, depth)
    weights = layer_weights(model, layer, sequence, text)
    name = label(model.hparams["attention"], **(model.hparams["attention_args"] or {}))
    title = f"{display(name)}, block {layer % depth + 1} of {depth}"
    if isinstance(model, TextModel):
        tokens = _tokens(model, text)
        figure = draw(weights, f"{title}, {len(tokens)} tokens", "token", _labels(model, tokens))
    else:
        figure = draw(weights, title)
    return save_figure(figure, out)


def layer_weights(
    model: GPTModel, layer: int, sequence: int | None = None, text: str | None = None
) -> Tensor:
    """Return the attention matrix of one block on one test sequence or text, [H, T, T]."""
    return weights_on(model, layer, _batch(model, sequence, text))


@torch.no_grad()
def weights_on(model: GPTModel, layer: int, batch: dict[str, Tensor]) -> Tensor:
    """Return the attention matrix of one block on the first sequence of a batch, [H, T, T]."""
    mixer = _mixer(model, layer)
    entering: list[Tensor] = []
    hook = mixer.register_forward_pre_hook(lambda _, inputs: entering.append(inputs[0]))
    try:
        model.eval().hidden(batch)
    finally:
        hook.remove()
    return mixer.weights(entering[0])[0]


def _batch(model: GPTModel, sequence: int | None, text: str | None) -> dict[str, Tensor]:
    if isinstance(model, TextModel):
        if sequence is not None:
            raise ValueError("a text model has no test orbits: use --text instead of --sequence")
        return {"tokens": _tokens(model, text)[None]}
    if text is not None:
        raise ValueError("an orbit model reads no text: use --sequence instead of --text")
    index = sequence or 0
    if index < 0:
        raise ValueError(f"sequence must not be negative, got {index}")
    data = OrbitData(model.hparams["protocol"], model.hparams["protocol_args"], n_test=index + 1)
    return data.sequences("test", index + 1).__getitems__([index])


def _tokens(model: TextModel, text: str | None) -> Tensor:
    """Return the ids of a text, int64 [T]."""
    tokens = model.tokenizer.encode(SENTENCE if text is None else text)
    if not len(tokens):
        raise ValueError("text must not be empty")
    return torch.from_numpy(tokens).long()


def _labels(model: TextModel, tokens: Tensor) -> list[str] | None:
    """Return the labels along the axes, or None where there are too many tokens."""
    if len(tokens) > MAX_LABELS:
        return None
    pieces = [model.tokenizer.decode([i]).replace(" ", "·") for i in tokens.tolist()]
    return [piece if piece.isprintable() else ascii(piece)[1:-1] for piece in pieces]


def _mixer(model: GPTModel, layer: int) -> Attention:
    block = model.gpt.blocks[layer]
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
    # Inches: room for the labels, or two dots for each position up to a few hundred.
    side = max(2.7, 0.17 * length + 0.6 if labels else min(6, 0.02 * length))
    sinks, entropies = metrics.sink_ratio(weights), metrics.row_entropy(weights)
    low = -CLAMP if bool((weights < 0).any()) else 0.0
    with panels(heads, 2, side, side + 0.3) as (figure, axes):
        for head, axis in enumerate(axes):
            image = axis.imshow(
                weights[head].float().numpy(),
                vmin=low,
                vmax=CLAMP,
                cmap="viridis" if low == 0 else "RdBu_r",
            )
            axis.set_title(
                f"head {head + 1}: sink {sinks[head]:.2f}, entropy {entropies[head]:.2f}",
                fontsize=8,
            )
            if labels:
                rotation = 90 if max(map(len, labels)) > 2 else 0
                axis.set_xticks(range(length), labels, rotation=rotation, parse_math=False)
                axis.set_yticks(range(length), labels, parse_math=False)
        figure.colorbar(image, ax=axes, shrink=0.7, label="weight")
        headline(figure, title)
        figure.supxlabel(f"key {position}")
        figure.supylabel(f"query {position}")
    return figure


@dataclass(frozen=True)
class LayerState:
    """One block's attention on a batch of B sequences of L tokens.

    Attributes:
        weights: Attention weights, [B, H, L, L].
        query: Queries before the rotation, which changes no norm, [B, H, L, D].
        key: Keys before the rotation, [B, H_kv, L, D].
        value: Values, [B, H_kv, L, D].
        hidden: Hidden states that enter the block, [B, L, H D].
    """

    weights: Tensor
    query: Tensor
    key: Tensor
    value: Tensor
    hidden: Tensor


@torch.no_grad()
def layer_states(model: TokenModel, tokens: Tensor) -> Iterator[LayerState]:
    """Yield the state of every block, first to last.

    Args:
        model: A model, in evaluation mode.
        tokens: int64 [B, L].
    """
    hidden = model.embedded(tokens.to(model.device))
    for block in model.gpt.blocks:
        assert isinstance(block, Block)
        layer, x = with_weights(block.attention), block.norm_attention(hidden)
        query, key, value = (
            linear(x).unflatten(-1, (-1, layer.head_dim)).transpose(1, 2)
            for linear in (layer.query, layer.key, layer.value)
        )
        yield LayerState(layer.weights(x), query, key, value, hidden)
        hidden = block(hidden)


def by_position(values: Tensor) -> dict[str, Tensor]:
    """Return norm and variance over channels, averaged over all but the position.

    Args:
        values: [..., L, D].

    Returns:
        ``norm`` and ``var``, each float64 [L] (Lazy Attention, Tables 4 to 7).
    """
    values = values.double()
    statistics = {"norm": values.norm(dim=-1), "var": values.var(dim=-1)}
    return {name: value.flatten(0, -2).mean(dim=0) for name, value in statistics.items()}
