"""Time, memory and share of the roofline of the fused attention kernels beside their peers.

Without a GPU eager attention and its blocks of rows are compared with SDPA, in time and in bytes
kept for the backward pass, and the rest is skipped. Calls that others are divided by are timed
first, then the others by interest, so that a lack of time costs the least interesting ones.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from benchmarks.cost import comparison
from orbits.runs.deferred import deferred
from orbits.runs.executors import Execution
from orbits.runs.figure import WIDTH, canvas, legend, save_figure
from orbits.runs.page import Picture
from orbits.runs.palette import looks
from orbits.runs.result import Quantity, Result
from orbits.runs.settings import check_at_least, check_not_empty
from orbits.runs.study import Study
from orbits.runs.table import Table
from orbits.runs.verdict import span

MODES = ("training", "forward", "backward")
"""Modes: forward and backward; forward without a gradient; backward alone, of a kept graph."""
BACKENDS = {
    "sdpa flash": "scaled_dot_product_attention of softmax, pinned to FLASH_ATTENTION",
    "sdpa cudnn": "the same, pinned to CUDNN_ATTENTION",
    "sdpa": "scaled_dot_product_attention of softmax, the CPU's choice",
    "triton": "our fused kernels",
    "blocked": "our blocks of rows on a CPU",
    "flex": "our score_mods through compiled FlexAttention, one call or two",
    "compiled": "torch.compile of the plain operations",
    "eager": "the plain operations one by one, in the dtype of the inputs",
}
FLOORS = {"cuda": ("sdpa flash", "sdpa cudnn"), "cpu": ("sdpa",)}
"""PyTorch's own kernels for softmax, by device."""
OURS = {"cuda": "triton", "cpu": "blocked"}
"""Our fused backend, by device."""
OTHERS = ("eager", "flex", "compiled")
"""Other backends that compute our variants."""
WANTED = 4096
"""The length of most interest, and the longest with a matrix of weights in memory."""


@dataclass(frozen=True)
class KernelSettings:
    """Settings of the timed calls.

    Attributes:
        attention: Variants.
        lengths: Tokens of a sequence.
        head_dims: Channels of a head.
        heads: Heads.
        tokens: Tokens of a call, at least one sequence: the batch shrinks as sequences grow.
        dtype: Type of queries, keys and values: float32, bfloat16 or float16.
        device: cpu, or cuda.
    """

    attention: tuple[str, ...] = ("lssar", "lssa", "elastic", "softmax")
    lengths: tuple[int, ...] = (512, 1024)
    head_dims: tuple[int, ...] = (64,)
    heads: int = 4
    tokens: int = 1
    dtype: str = "float32"
    device: str = "cpu"

    def __post_init__(self) -> None:
        check_not_empty(self, "attention", "lengths", "head_dims")
        check_at_least(self, dict.fromkeys(("lengths", "head_dims", "heads", "tokens"), 1))
        if self.dtype not in ("float32", "bfloat16", "float16"):
            raise ValueError(f"dtype must be float32 | bfloat16 | float16, got {self.dtype!r}")


class Kernels(Study):
    """Times of attention kernels."""

    name = "kernels"
    about = "How fast are the attention kernels, and how much memory do they take?"
    Settings = KernelSettings
    metrics: ClassVar = {
        **comparison.METRICS,
        "bytes": Quantity("lower", "bytes", "peak above the inputs; on a CPU kept by autograd"),
        "flops_per_s": Quantity("higher", "FLOP/s", "products of the algorithm by its seconds"),
        "peak_flops_per_s": Quantity("none", "FLOP/s", "of a bfloat16 matrix product, measured"),
        "roofline": Quantity("higher", "share", "of the FLOP/s of that product"),
    }
    execution = Execution("here", workers=1, minutes=5.5)
    timed = True
    cells = deferred("benchmarks.cost.kernel_call:cells")

    def check(self, settings: KernelSettings) -> None:
        """Refuse a missing device."""
        comparison.check_device(settings.device)

    def tables(self, results: Sequence[Result]) -> Sequence[Table]:
        """Return times and memory with their ratios, and a table that describes the backends."""
        device = _device(results)
        over = (*FLOORS[device], OURS[device])
        keys = ("backend", "variant", "mode", "length", "head_dim")
        kinds = dict.fromkeys(x.case.setting["backend"] for x in results)
        more = {"roofline": ("roofline", ".2f")}
        calls = comparison.table("Calls", results, keys, bases, over, more)
        length = _asked(_trained(results))
        asked = [("training", length, backend) for backend in over]
        front = [
            place
            for place, x in enumerate(result for result in results if result.ok)
            if tuple(map(x.case.get, ("mode", "length", "backend"))) in asked
        ]
        return [
            dataclasses.replace(calls, front=front),
            Table.of_text("Backends", ("backend", "what"), [(x, BACKENDS[x]) for x in kinds]),
        ]

    def sentences(self, results: Sequence[Result]) -> Sequence[str]:
        """Compare our fused kernels and the plain operations with PyTorch's kernel of softmax."""
        floor, ours = FLOORS[_device(results)][0], OURS[_device(results)]
        trained = _trained(results)
        length = _asked(trained)
        said: dict[str, dict[str, float]] = {}
        for result, times in trained:
            backend = result.case.get("backend")
            if result.case.get("length") == length and backend in (ours, "eager"):
                kind = f"{backend} with {result.case.get('head_dim')} channels"
                said.setdefault(kind, {})[result.case.variant] = times
        if not said:
            return ()
        times_of = "; ".join(
            f"{kind}: {span(each, rows='variants')}" for kind, each in said.items()
        )
        said_of = f"Time of forward and backward, {length:,} tokens, over PyTorch's softmax"
        return [f"{said_of} ({floor}): {times_of}."]

    def figures(self, results: Sequence[Result], out: Path) -> Sequence[Picture]:
        """Draw time over SDPA's by length, a panel per head dim and a line per variant."""
        floor = FLOORS[_device(results)][0]
        panels: dict[int, dict[str, dict[int, float]]] = {}
        for result in results:
            setting = result.case.setting
            base = bases(result, results).get(floor)
            times = comparison.ratio(result, base, "seconds")
            if times is None or setting["mode"] != "training" or base is result:
                continue
            lines = panels.setdefault(setting["head_dim"], {})
            line = lines.setdefault(f"{result.case.variant}, {setting['backend']}", {})
            line[setting["length"]] = times
        if not panels:
            return ()
        names = sorted({name for lines in panels.values() for name in lines})
        style, shape = looks(names), {"nrows": len(panels), "squeeze": False, "sharex": True}
        with canvas(WIDTH, 1.2 + 2.6 * len(panels), **shape) as (figure, grid):
            for (axis,), (dim, lines) in zip(grid, sorted(panels.items()), strict=True):
                for name, points in sorted(lines.items()):
                    axis.plot(*zip(*sorted(points.items()), strict=True), label=name, **style[name])
                axis.axhline(1, color="0.6", linewidth=1)
                axis.set(xscale="log", yscale="log", ylabel=f"time relative to {floor}")
                axis.set_title(f"forward and backward, heads of {dim} channels", loc="left")
            grid[-1][0].set_xlabel("sequence length")
            legend(figure)
            path = save_figure(figure, out / "training.png")
        return [Picture(f"Time of forward and backward by that of {floor} for softmax.", [path])]


def bases(result: Result, results: Sequence[Result]) -> Mapping[str, Result]:
    """Return the results that a result is divided by, by the names of their columns.

    These are the floors of its shape and mode, and for others our fused form's of its variant too.
    """
    device = _device(results)
    changes: dict[str, dict[str, Any]] = {
        floor: {"backend": floor, "variant": "softmax"} for floor in FLOORS[device]
    }
    if result.case.setting["backend"] in OTHERS:
        changes[OURS[device]] = {"backend": OURS[device]}
    by_column = {
        name: comparison.same_but(result, results, **each) for name, each in changes.items()
    }
    return {name: base for name, base in by_column.items() if base is not None}


def _trained(results: Sequence[Result]) -> list[tuple[Result, float]]:
    """Return the calls forward and backward, and their time over that of PyTorch's own kernel."""
    floor = FLOORS[_device(results)][0]
    return [
        (result, times)
        for result in results
        if result.ok and result.case.get("mode") == "training"
        if (times := comparison.ratio(result, bases(result, results).get(floor), "seconds"))
    ]


def _asked(trained: Sequence[tuple[Result, float]]) -> int | None:
    """Return the length that is spoken of: the plain operations' longest, or else the longest."""
    # The plain operations have no memory for the longest sequences.
    plain = [x.case.get("length") for x, _ in trained if x.case.get("backend") == "eager"]
    return max(plain or [x.case.get("length") for x, _ in trained], default=None)


def _device(results: Sequence[Result]) -> str:
    """Return the device that the results are of."""
    backends = {result.case.setting["backend"] for result in results}
    return next(device for device, floors in FLOORS.items() if backends & set(floors))


STUDY = Kernels()
