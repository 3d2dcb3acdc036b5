"""How many tiles of a trained model could be skipped below a threshold, and at what price.

Chunk-skipping would leave out tiles of keys whose weights (r^p of a re-weighted variant) all lie
below a share of the row's largest. Before such an option is worth a kernel, trained checkpoints
must have such tiles, and do without them:

    python -m benchmarks.speed.skippable CHECKPOINT [CHECKPOINT ...] [--length L] [--out FILE]
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from attention.layer import Attention, with_weights
from orbits import artefacts
from orbits.command_line import one_line_errors
from orbits.manifest import manifest
from worldmodel.gpt import Block
from worldmodel.tasks import load_task
from worldmodel.text import TextData
from worldmodel.text_task import TextTask

TILE = (128, 64)  # rows and keys of the forward kernel
THRESHOLDS = (0.0, 2.0**-24, 2.0**-12, 2.0**-9)


def main(arguments: list[str] | None = None) -> None:
    """Print shares and errors for every block of text checkpoints, and write JSON lines."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.speed.skippable")
    parser.add_argument("checkpoints", nargs="+", metavar="CHECKPOINT", type=Path)
    parser.add_argument("--length", type=int, default=1024, help="tokens of held-out text")
    parser.add_argument("--text", help="text file or folder (the standard library of Python)")
    parser.add_argument("--out", type=Path, help="file of JSON lines to write")
    options = parser.parse_args(arguments)
    if options.out and options.out.exists():
        parser.error(f"{options.out} exists; choose another file")
    rows: list[dict[str, Any]] = []
    with one_line_errors(resumes=False):
        for checkpoint in options.checkpoints:
            rows += rows_of(checkpoint, options.length, options.text)
    print("tiles below a share of the row's largest weight, and the output's error without them")
    print(f"{'threshold':32s}" + "".join(f"{t:>18.2g}" for t in THRESHOLDS))
    for row in rows:
        name = f"{row['checkpoint']} {row['variant']}, block {row['block']}"
        cells = zip(row["skippable"], row["error"], strict=True)
        print(f"{name:32s}" + "".join(f"{share:9.3f}{error:9.1e}" for share, error in cells))
    if options.out:
        text = "".join(json.dumps(row) + "\n" for row in rows)
        artefacts.write_bytes(options.out, text.encode())


def rows_of(checkpoint: Path, length: int, text: str | None = None) -> list[dict[str, Any]]:
    """Return a line for every block of a text checkpoint, on the first held-out tokens.

    A line holds, for each of ``thresholds``: ``skippable``, see :func:`shares`, and ``error``, see
    :func:`errors`.

    Raises:
        FileNotFoundError: There is no such checkpoint or text.
        ValueError: It is not a checkpoint of a text model, its mixer is linear, or the text is
            shorter than ``length``.
    """
    task = load_task(checkpoint)
    if not isinstance(task, TextTask):
        raise ValueError(f"{checkpoint}: not a text model")
    data = TextData(text, task.tokenizer.definition, seq_len=length, n_test=1)
    tokens = data.sequences("test", 1).__getitems__([0])["tokens"][:, :-1]
    inputs = {"checkpoint": artefacts.sha256(checkpoint), "corpus": data.corpus_record["sha256"]}
    config = {"length": length, "tile": TILE, "corpus": data.corpus_record}
    record = manifest(config, seed=None, inputs=inputs)
    return [
        {
            "benchmark": "speed/skippable",
            "checkpoint": checkpoint.name,
            "variant": mixer.spec.label,
            "sharpen": float(mixer.sharpen),
            "block": number,
            "thresholds": THRESHOLDS,
            "skippable": shares(weights, THRESHOLDS),
            "error": errors(weights, values, THRESHOLDS),
            "manifest": record,
        }
        for number, (mixer, weights, values) in enumerate(mixed(task, tokens), 1)
    ]


@torch.no_grad()
def mixed(task: TextTask, tokens: Tensor) -> Iterator[tuple[Attention, Tensor, Tensor]]:
    """Yield each block's attention, its weights [H, L, L] and its values [H, L, D].

    Args:
        task: The model.
        tokens: Its input, [1, L].

    Raises:
        ValueError: A mixer is linear.
    """
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

    Args:
        weights: [H, L, L].
        values: [H, L, D].
        thresholds: As for :func:`shares`.
    """
    length, tops, found = weights.shape[-1], _tops(weights), []
    norm = (weights @ values).norm().clamp_min(torch.finfo(weights.dtype).tiny)
    for threshold in thresholds:
        left_out = tops <= threshold
        for axis, size in zip((-2, -1), TILE, strict=True):
            left_out = left_out.repeat_interleave(size, dim=axis)
        dropped = weights * left_out[:, :length, :length]
        found.append(float((dropped @ values).norm() / norm))
    return found


def _tops(weights: Tensor) -> Tensor:
    """Return the largest share of its row's largest |weight| in each tile, [H, tiles, tiles]."""
    rows, keys = TILE
    length = weights.shape[-1]
    size = weights.abs()
    ratio = size / size.amax(-1, keepdim=True).clamp_min(torch.finfo(weights.dtype).tiny)
    padded = ratio.new_zeros(len(ratio), -(-length // rows) * rows, -(-length // keys) * keys)
    padded[..., :length, :length] = ratio
    return padded.unflatten(-1, (-1, keys)).unflatten(-3, (-1, rows)).amax(dim=(-3, -1))


if __name__ == "__main__":
    main()
