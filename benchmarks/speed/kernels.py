"""The fused attention kernels against their peers: time, ratio, memory and share of the roofline.

One command, under 10 minutes on one GPU; lines are written as they are measured, and what no time
is left for is a skipped line. Without a GPU it compares eager attention with SDPA, in time and in
bytes kept for the backward pass, and says what was skipped. It exits with 1 if a kernel of ours
failed.

    python -m benchmarks.speed.kernels [--out FILE] [--figure PNG] [--minutes M]
"""

from __future__ import annotations

import argparse
import functools
import itertools
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import torch
from torch import Tensor
from torch.nn import functional
from torch.nn.attention import SDPBackend, sdpa_kernel

from attention import get
from attention.api import BACKENDS
from attention.spec import AttnSpec
from benchmarks.speed import eager, kernel_report, lines
from orbits import pictures

VARIANTS = ("lssar", "lssa", "elastic", "softmax")
MODES = ("training", "forward", "backward")
"""Forward and backward; forward without a gradient; backward alone, of a graph that is kept."""
TOKENS = 16_384  # per measurement on a GPU: the batch shrinks as sequences grow
HEADS = 12
LONGEST_SQUARE = 4096
"""Up to this length a matrix of weights is held in memory."""
MINUTES = 5.5
Attend = Callable[[Tensor, Tensor, Tensor], Tensor]

PEERS = {
    "sdpa flash": "scaled_dot_product_attention of softmax, pinned to FLASH_ATTENTION",
    "sdpa cudnn": "the same, pinned to CUDNN_ATTENTION",
    "sdpa": "scaled_dot_product_attention of softmax, the CPU's choice",
    "triton": "our fused kernels",
    "flex": "our score_mods through compiled FlexAttention, one call or two",
    "compiled": "torch.compile of the plain operations",
    "eager": "the plain operations one by one, in the dtype of the inputs",
}


def main(arguments: list[str] | None = None) -> int:
    """Measure, print a table, write JSON lines and a figure; return the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.speed.kernels", description="Time the attention kernels."
    )
    parser.add_argument("--out", type=Path, help="file of JSON lines to write")
    parser.add_argument("--figure", type=Path, help="picture of the ratios")
    parser.add_argument(
        "--minutes", type=float, default=MINUTES, help=f"start nothing after this ({MINUTES})"
    )
    parser.add_argument("--lengths", type=int, nargs="+", help="sequence lengths")
    options = parser.parse_args(arguments)
    if not options.minutes > 0:
        parser.error(f"--minutes must be positive, got {options.minutes}")
    for path in (options.out, options.figure):
        if path and path.exists():
            parser.error(f"{path} exists; choose another file")
    device = "cuda" if torch.cuda.is_available() else "cpu"
    lengths = options.lengths or (
        [1024, 2048, 4096, 8192, 16384] if device == "cuda" else [512, 1024]
    )
    deadline = time.monotonic() + 60 * options.minutes
    config = {"lengths": lengths, "minutes": options.minutes}
    rows = lines.measure_all(
        "speed/kernels", cases(device, lengths), kernel_report.bases, config, deadline, device,
        options.out,
    )  # fmt: skip
    print("\n" + kernel_report.table(rows))
    print("\n".join(f"{name:11s} {what}" for name, what in PEERS.items()))
    if options.figure:
        pictures.save(kernel_report.draw(rows), options.figure, dpi=130)
    return lines.exit_code(rows, "peer")


def cases(device: str, lengths: list[int]) -> Iterator[lines.Case]:
    """Yield what to measure, the most wanted first; what others are divided by before them."""
    wanted = sorted(lengths, key=lambda length: abs(length - 4096))
    shapes = list(itertools.product(wanted, (64, 128) if device == "cuda" else (64,)))
    for (length, dim), mode in itertools.product(shapes, MODES):
        for peer in kernel_report.FLOORS[device]:
            yield _case(peer, "softmax", length, dim, mode, device)
        for variant in VARIANTS:
            yield _case("triton", variant, length, dim, mode, device)
    for peers in (("eager",), ("flex", "compiled")):
        for (length, dim), mode in itertools.product(shapes, MODES):
            for peer, variant in itertools.product(peers, VARIANTS):
                row, measure = _case(peer, variant, length, dim, mode, device)
                yield row, _left_out(peer, length, wanted[0]) or measure


def _left_out(peer: str, length: int, wanted: int) -> str | None:
    """Return why a peer is not measured at a length, or None."""
    if peer != "flex" and length > LONGEST_SQUARE:
        return "O(L^2) memory"
    if peer != "eager" and length != wanted:
        return "a minute to compile; one length"
    return None


def _case(peer: str, variant: str, length: int, dim: int, mode: str, device: str) -> lines.Case:
    batch, heads = (max(1, TOKENS // length), HEADS) if device == "cuda" else (1, 4)
    dtype = torch.bfloat16 if device == "cuda" else torch.float32
    row = {
        "peer": peer, "variant": variant, "length": length, "head_dim": dim, "mode": mode,
        "batch": batch, "heads": heads, "dtype": str(dtype).removeprefix("torch."),
    }  # fmt: skip
    if device == "cpu" and peer not in ("sdpa", "eager"):
        return row, lines.NEEDS_GPU
    shape = (batch, heads, length, dim)
    return row, functools.partial(measure, peer, get(variant), shape, dtype, device, mode)


def measure(
    peer: str, spec: AttnSpec, shape: tuple[int, ...], dtype: torch.dtype, device: str, mode: str
) -> lines.Row:
    """Time one kind of call.

    Args:
        peer: A key of ``PEERS``.
        spec: The variant.
        shape: [B, H, L, D] of q, k and v.
        dtype: Theirs.
        device: ``cuda`` or ``cpu``.
        mode: One of ``MODES``.

    Returns:
        ``seconds`` with quantiles, see :func:`lines.times`; ``bytes``: on a GPU the peak above the
        inputs, the graph included, on a CPU what autograd keeps beside the inputs; and of peers
        whose ``products`` are known ``flops_per_s``.
    """
    generator = torch.Generator(device).manual_seed(0)
    q, k, v, grad = (
        torch.randn(shape, generator=generator, device=device, dtype=dtype) for _ in range(4)
    )
    parameters = {"tau": torch.ones(shape[1], device=device)} if spec.name == "elastic" else {}
    attend = _attend(peer, spec, parameters)
    trained = mode != "forward"
    leaves = [x.requires_grad_(trained) for x in (q, k, v, *parameters.values())]

    def forward() -> Tensor:
        with torch.set_grad_enabled(trained):
            return attend(q, k, v)

    def gradients(out: Tensor, keep: bool = False) -> None:
        torch.autograd.grad(out, leaves, grad, retain_graph=keep)

    def training() -> None:
        gradients(forward())

    # Else the graphs of other cases count, and past a limit torch stops compiling, silently.
    torch._dynamo.reset()
    with (
        torch._dynamo.config.patch(fail_on_recompile_limit_hit=True),
        # A compiled backward pass may else overwrite the graph, which then cannot be kept.
        torch._functorch.config.patch(donated_buffer=mode != "backward"),
    ):
        call: Callable[[], object] = training if trained else forward
        call()  # compiles
        before = torch.cuda.memory_allocated() if device == "cuda" else 0
        if mode == "backward":
            call = functools.partial(gradients, forward(), keep=True)
        if device == "cuda":
            used = lines.peak_bytes(call) - before
        else:
            used = lines.kept_bytes(forward, leaves)
        found: lines.Row = {**lines.times(call, device), "bytes": used}
    count = products(peer, spec, mode)
    if count is not None:
        batch, heads, length, dim = shape
        # Halved: causal tiles above the diagonal are nobody's work.
        work = count * batch * heads * length**2 * dim
        found |= {"products": count, "flops_per_s": work / found["seconds"]}
    return found


def _attend(peer: str, spec: AttnSpec, parameters: dict[str, Tensor]) -> Attend:
    if peer.startswith("sdpa"):
        kernel = {
            "sdpa flash": SDPBackend.FLASH_ATTENTION,
            "sdpa cudnn": SDPBackend.CUDNN_ATTENTION,
        }

        def sdpa(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
            if peer == "sdpa":
                return functional.scaled_dot_product_attention(q, k, v, is_causal=True)
            with sdpa_kernel(kernel[peer]):
                return functional.scaled_dot_product_attention(q, k, v, is_causal=True)

        return sdpa
    if peer in ("triton", "flex"):
        return lambda q, k, v: BACKENDS[peer].attend(q, k, v, spec, parameters)
    plain = torch.compile(eager.attend, dynamic=False) if peer == "compiled" else eager.attend
    return lambda q, k, v: plain(q, k, v, spec, parameters.get("tau"))


def products(peer: str, spec: AttnSpec, mode: str) -> int | None:
    """Return how many products of 2 L^2 d a peer's algorithm takes, or None if it is not known.

    SDPA's (FlashAttention-2, cuDNN, the CPU's) take QK and AV forward, 5 backward: QK and dO V
    again, then dV, dQ and dK. Ours take 7 backward, as dq is made in a pass of its own; with a
    second stage a third one forward, QK for the first stage's sums, and a fourth where a backward
    pass will follow, which it spares another. Of the others, what a compiler makes of plain
    operations and how much of it lies above the diagonal cannot be read off here.
    """
    sharpened = spec.sharpen != "none"
    if peer.startswith("sdpa"):
        forward, saved, backward = 2, 0, 5
    elif peer == "triton":
        forward, saved, backward = 2 + sharpened, int(sharpened), 7
    else:
        return None
    return {"forward": forward, "training": forward + saved + backward, "backward": backward}[mode]


if __name__ == "__main__":
    sys.exit(main())
