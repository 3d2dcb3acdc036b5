"""Steps of GPT-2 124M in two published settings: LSSAR Table A7 and ZeroS Table 7.

12 blocks of 12 heads of 64 channels, 50,257 tokens, 1024 tokens a sequence, AdamW. ``eager`` is
what the papers ran, ``triton`` the fused kernels; a linear mixer has its ``own`` form, kernels
where they serve. The backbone is ours, with rotary positions in place of learned ones. Training
comes before evaluation, so that what no time is left for is least wanted. It exits with 1 if a
kernel of ours failed.

    python -m benchmarks.speed.gpt2 [--out FILE] [--minutes M]
"""

from __future__ import annotations

import argparse
import functools
import itertools
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from unittest import mock

import torch
from torch import Tensor, nn
from torch.nn import functional

from attention import api, linear
from benchmarks.speed import eager, lines
from worldmodel.gpt import GPT

VARIANTS = ("softmax", "lssa", "lssar", "elastic")
MIXERS = ("zeros", "linear", "gla", "hgrn2", "rwkv6", "rwkv7")
"""Those of ZeroS Table 7."""
EAGER = api.Backend(
    refuses=lambda spec, q, v: None,
    avoids=lambda spec, q: "it is measured, not used",
    attend=lambda q, k, v, spec, learned: eager.attend(q, k, v, spec, (learned or {}).get("tau")),
)
SETTINGS = {"lssar-a7": (4, torch.bfloat16), "zeros-7": (8, torch.float32)}
"""Batch size and precision of each table."""

GPT2 = {"n_layer": 12, "n_head": 12, "vocab_size": 50_257, "length": 1024}
SMALL = {"n_layer": 1, "n_head": 2, "vocab_size": 257, "length": 1024}
"""What stands in on a CPU, in float32 and batches of one."""
MINUTES = 3.5


def main(arguments: list[str] | None = None) -> int:
    """Measure, print a table and write JSON lines; return the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.speed.gpt2", description="Time GPT-2 124M training steps."
    )
    parser.add_argument("--out", type=Path, help="file of JSON lines to write")
    parser.add_argument(
        "--minutes", type=float, default=MINUTES, help=f"start nothing after this ({MINUTES})"
    )
    options = parser.parse_args(arguments)
    if not options.minutes > 0:
        parser.error(f"--minutes must be positive, got {options.minutes}")
    if options.out and options.out.exists():
        parser.error(f"{options.out} exists; choose another file")
    device = "cuda" if torch.cuda.is_available() else "cpu"
    if device == "cpu":
        print("no GPU: one small block stands in, for the ratios of eager attention alone")
    deadline = time.monotonic() + 60 * options.minutes
    config = {"model": GPT2 if device == "cuda" else SMALL}
    rows = lines.measure_all(
        "speed/gpt2", cases(device), bases, config, deadline, device, options.out
    )
    print("\n" + table(rows))
    return lines.exit_code(rows, "backend")


def cases(device: str) -> Iterator[lines.Case]:
    """Yield what to measure; softmax, by which others are divided, before them."""
    settings = SETTINGS if device == "cuda" else ("small",)
    for mode, setting in itertools.product(("training", "evaluation"), settings):
        for name in (*VARIANTS, *MIXERS):
            for backend in backends(name):
                yield _case(setting, backend, name, mode, device)


def backends(name: str) -> tuple[str, ...]:
    """Return the implementations of a variant or linear mixer that are timed.

    Raises:
        ValueError: There is no such name, or no plain implementation of it here.
    """
    if name in linear.names():
        return ("own",)
    if name not in eager.NAMES:
        known = ", ".join((*eager.NAMES, *linear.names()))
        raise ValueError(f"{name!r} has no plain implementation to time; choose from {known}")
    return ("sdpa", "eager", "triton") if name == "softmax" else ("eager", "triton")


def _case(setting: str, backend: str, variant: str, mode: str, device: str) -> lines.Case:
    row = {"setting": setting, "backend": backend, "variant": variant, "mode": mode}
    if device == "cpu" and backend == "triton":
        return row, lines.NEEDS_GPU
    return row, functools.partial(measure, setting, backend, variant, mode == "training", device)


@mock.patch.dict(api.BACKENDS, eager=EAGER)
def measure(setting: str, backend: str, variant: str, trained: bool, device: str) -> lines.Row:
    """Time a step.

    Args:
        setting: A key of ``SETTINGS``; without a GPU a small block stands in for any.
        backend: One of :func:`backends`.
        variant: A variant or a linear mixer.
        trained: Whether the step trains, or only answers.
        device: ``cuda`` or ``cpu``.

    Returns:
        ``seconds`` with quantiles, see :func:`lines.times`; ``tokens_per_s``; ``bytes``: on a GPU
        the absolute peak, weights and optimiser included, as the papers' tables have it; on a CPU
        what autograd keeps beside the parameters, nothing in evaluation.
    """
    sizes, batch, dtype = SMALL, 1, torch.float32
    if device == "cuda":
        sizes, (batch, dtype) = GPT2, SETTINGS[setting]
    torch.manual_seed(0)
    with torch.device(device):  # a GPU draws 124M weights sooner
        model = Model(variant, backend, sizes["n_layer"], sizes["n_head"], sizes["vocab_size"])
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=device == "cuda")
    tokens = torch.randint(sizes["vocab_size"], (batch, sizes["length"] + 1), device=device)

    def step() -> None:
        precision = torch.autocast(device, dtype, enabled=dtype != torch.float32)
        with precision, torch.set_grad_enabled(trained):
            loss = model(tokens)
        if trained:
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()

    step()
    if device == "cuda":
        used = lines.peak_bytes(step)
    else:
        used = lines.kept_bytes(step, model.parameters())
    found = lines.times(step, device, milliseconds=500)
    return {**found, "bytes": used, "tokens_per_s": batch * sizes["length"] / found["seconds"]}


class Model(nn.Module):
    """GPT with a tied embedding, and its loss."""

    def __init__(
        self, variant: str, backend: str, n_layer: int, n_head: int, vocabulary: int
    ) -> None:
        super().__init__()
        arguments = None if backend == "own" else {"backend": backend}
        self.gpt = GPT(variant, arguments, n_layer, n_head, head_dim=64)
        self.embedding = nn.Embedding(vocabulary, self.gpt.width)

    def forward(self, tokens: Tensor) -> Tensor:
        """Return the loss of [B, T + 1] tokens."""
        hidden = self.gpt(self.embedding(tokens[:, :-1]))
        logits = functional.linear(hidden, self.embedding.weight)
        return functional.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten())


def bases(row: lines.Row, rows: list[lines.Row]) -> dict[str, lines.Row]:
    """Return softmax by ``sdpa`` and by ``eager`` in a row's setting and mode, if measured."""
    return {
        other["backend"]: other
        for other in rows
        if other["variant"] == "softmax"
        and other["backend"] in ("sdpa", "eager")
        and (other["setting"], other["mode"]) == (row["setting"], row["mode"])
    }


def table(rows: list[lines.Row]) -> str:
    """Return the rows with their ratios to softmax by SDPA and eager: of time, then of memory."""
    titles = f"{'x sdpa':>8s}{'x eager':>9s}"
    text = [
        f"{'setting':10s}{'backend':9s}{'variant':9s}{'mode':12s}{'ms':>9s}{titles}"
        f"{'tokens/s':>12s}{'MiB':>9s}{titles}"
    ]
    for row in rows:
        place = f"{row['setting']:10s}{row['backend']:9s}{row['variant']:9s}{row['mode']:12s}"
        if row["status"] != "measured":
            text.append(f"{place}  {row['status']}")
            continue
        seconds, memory = (
            f"{_or_dash(row.get(f'{over}_sdpa')):>8s}{_or_dash(row.get(f'{over}_eager')):>9s}"
            for over in ("x", "bytes_x")
        )
        text.append(
            f"{place}{1e3 * row['seconds']:9.2f}{seconds}{row['tokens_per_s']:12.0f}"
            f"{row['bytes'] / 2**20:9.0f}{memory}"
        )
    return "\n".join(text)


def _or_dash(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"


if __name__ == "__main__":
    sys.exit(main())
