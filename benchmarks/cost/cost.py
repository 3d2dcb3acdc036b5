"""Time and memory of a training step and a forward pass of GPT-2 124M.

LSSAR (2026), Table A7 (batch 4, bfloat16) and ZeroS (2025), Table 7 (batch 8, float32), measured
by :mod:`benchmarks.cost.gpt2_step`: 12 blocks of 12 heads of 64 channels, 50,257 tokens, 1024
tokens a sequence, AdamW. ``eager`` is what the papers ran, ``triton`` the fused kernels and
``blocked`` the form for a CPU; a linear mixer has its ``own`` form, kernels where they serve. The
backbone is ours, with rotary positions in place of learned ones. Without a GPU a single small block
in float32 stands in: its ratios are those of one layer, and no time of it is GPT-2's; run it on a
quiet machine with one thread (``OMP_NUM_THREADS=1``), as its seconds are those of the clock on the
wall. Rounds follow each other, each over all variants, so that a machine's drift meets all of them
alike.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

from benchmarks.cost.comparison import check_device
from benchmarks.published.compare import Ours
from benchmarks.study import PaperStudy
from orbits.runs.deferred import deferred
from orbits.runs.executors import Execution
from orbits.runs.figure import figure_path
from orbits.runs.page import Picture
from orbits.runs.plots import bars
from orbits.runs.result import Quantity, Result
from orbits.runs.settings import check_at_least, check_not_empty
from orbits.runs.table import Table, by_seed, seed_table
from orbits.runs.verdict import against, beside, span

TABLES = {
    "lssar_table_a7": ("lssar-a7", {"train": "train", "evaluation": "eval"}, 1e3, 2**-20),
    "zeros_table_7": ("zeros-7", {"train": "train", "evaluation": "forward"}, 1.0, 2**-30),
}
"""Our setting, names of modes, and units of time and memory of each published table."""
DIGITS = 2
"""Decimals of memory in both tables."""
KEYS = ("setting", "mode", "backend", "variant")
ROUNDS = "Mean over seeds, each a round of measurements, with its 95% interval by Student's t."


@dataclass(frozen=True)
class Costs:
    """Settings of the timed steps.

    Attributes:
        attention: Attention variants and linear mixers, in all their implementations.
        sizes: lssar-a7 and zeros-7, GPT-2 124M as the two tables have it; small, small-256
            and tiny, a block.
        rounds: Numbers of the rounds, in each of which every step is timed once.
        device: cpu, or cuda.
    """

    attention: tuple[str, ...] = (
        "softmax", "lssa", "lssar", "elastic", "zeros", "linear", "gla", "hgrn2", "rwkv6", "rwkv7",
    )  # fmt: skip
    sizes: tuple[str, ...] = ("small",)
    rounds: tuple[int, ...] = (0, 1, 2)
    device: str = "cpu"

    def __post_init__(self) -> None:
        check_not_empty(self, "attention", "sizes", "rounds")
        if "softmax" not in self.attention:
            raise ValueError("attention must name softmax, by which the others are divided")
        check_at_least(self, {"rounds": 0})


FORMS = {
    "eager": "plain PyTorch",
    "sdpa": "fused (SDPA)",
    "blocked": "in blocks of rows",
    "triton": "fused (Triton)",
    "own": "its own form",
}
"""Names of backends in figures."""
STEPS = {"train": "training", "evaluation": "test"}


class CostStudy(PaperStudy):
    """Time and memory of training and evaluation steps."""

    name = "cost"
    version = 4
    about = "How much time and memory do attention variants take, training and evaluating?"
    Settings = Costs
    metrics: ClassVar[Mapping[str, Quantity]] = {
        "latency": Quantity("lower", "s", "median seconds of a step"),
        "latency_20": Quantity("lower", "s", "its 20% quantile"),
        "latency_80": Quantity("lower", "s", "its 80% quantile"),
        "throughput": Quantity("higher", "tokens per s", "tokens of a step by its seconds"),
        "memory": Quantity("lower", "bytes", "absolute peak on a GPU; kept by autograd on a CPU"),
    }
    published: ClassVar[tuple[str, ...]] = ("speed",)
    execution = Execution("here", workers=1)
    timed = True
    cells = deferred("benchmarks.cost.gpt2_step:cells")

    def check(self, settings: Costs) -> None:
        """Refuse a missing device."""
        check_device(settings.device)

    def tables(self, results: Sequence[Result]) -> list[Table]:
        """Return ratios to eager softmax and to SDPA's, then the measurements themselves."""
        title = "Latency and memory by those of eager softmax in the same round"
        fused = title.replace("eager softmax", "softmax by SDPA")
        values = "A step: seconds, tokens per second, bytes"
        ratios, by_sdpa = _ratios(results, "eager"), _ratios(results, "sdpa")
        by_sdpa = [x for x in by_sdpa if "latency_80" in x.metrics]  # not in reports of version 3
        first = seed_table(title, ratios, KEYS, ("latency", "memory"), ROUNDS)
        training = [place for place, row in enumerate(first.rows) if row[1].text == "train"]
        return [
            replace(first, front=training),
            seed_table(fused, by_sdpa, KEYS, ("latency", "memory"), ROUNDS),
            seed_table(values, results, KEYS, self.metrics, ROUNDS),
        ]

    def sentences(self, results: Sequence[Result]) -> list[str]:
        """Say which variants take longer than eager softmax to train, and which less."""
        ratios = [x for x in _ratios(results, "eager") if x.case.get("mode") == "train"]
        said, softmax = [], _named("softmax", "eager")
        for setting in dict.fromkeys(x.case.get("setting") for x in ratios):
            mine = [x for x in ratios if x.case.get("setting") == setting]
            seconds = by_seed(mine, "latency", "variant", "backend")
            rows = {_named(*key): each for key, each in seconds.items()}
            if compared := beside(against(rows, softmax), softmax, ".2f"):
                said.append(
                    f"A training step at size {setting}, in units of eager softmax's in the same "
                    f"round, on one machine: {compared}."
                )
        one_round = len({x.case.seed for x in results}) == 1
        return _one_round(results) if one_round else said

    def ours(self, results: Sequence[Result], table: str) -> Ours:
        """Return results at the setting of a published table, in its units."""
        setting, modes, second, byte = TABLES[table]
        ours: dict[str, dict[int | None, dict[str, float]]] = {}
        for result in results:
            case, metrics = result.case, result.metrics
            label = _published_row(table, case.variant, case.get("backend"))
            if case.get("setting") == setting and label is not None:
                mode = modes[case.get("mode")]
                values = ours.setdefault(label, {}).setdefault(case.seed, {})
                values[f"latency@{mode}"] = second * metrics["latency"].value
                values[f"throughput@{mode}"] = metrics["throughput"].value
                if "memory" in metrics:  # to the digits of the tables: kilobytes are no difference
                    values[f"memory@{mode}"] = round(byte * metrics["memory"].value, DIGITS)
        return ours

    def figures(self, results: Sequence[Result], out: Path) -> list[Picture]:
        """Draw the latency of each variant, divided by that of softmax."""
        pictures, ratios = [], _ratios(results, "eager")
        for place in dict.fromkeys((x.case.get("setting"), x.case.get("mode")) for x in ratios):
            chosen = [x for x in ratios if (x.case.get("setting"), x.case.get("mode")) == place]
            latencies = by_seed(chosen, "latency", "variant", "backend")
            values = {f"{x}, {FORMS[y]}": rounds for (x, y), rounds in latencies.items()}
            setting, mode = place
            xlabel = f"time of a {STEPS[mode]} step, relative to softmax in plain PyTorch"
            path = figure_path(out, f"{setting}_{mode}")
            title = f"Cost of attentions, {setting} model"
            level = 1.0, "softmax in plain PyTorch"
            bars(values, path, xlabel, *level, dots="rounds", title=title)
            caption = f"Latency by that of eager softmax, {mode}, setting {setting}."
            pictures.append(Picture(caption, [path]))
        return pictures


def _one_round(results: Sequence[Result]) -> list[str]:
    """Say how long training steps take where a single round allows no comparison."""
    places: dict[object, dict[str, dict[str, float]]] = {}
    for result in _ratios(results, "sdpa"):
        backend, case = result.case.get("backend"), result.case
        if case.get("mode") == "train" and backend != "sdpa":
            forms = places.setdefault(case.get("setting"), {})
            forms.setdefault(backend, {})[case.variant] = result.metrics["latency"].value
    return [
        f"A training step at size {setting}, in units of fused softmax's (SDPA), one round: "
        + "; ".join(f"{FORMS[x]}: {span(found, rows='variants')}" for x, found in forms.items())
        + "."
        for setting, forms in places.items()
    ]


def _named(variant: str, backend: str) -> str:
    return variant if backend == "own" else f"{backend} {variant}"


def _ratios(results: Sequence[Result], backend: str) -> list[Result]:
    """Return results whose metrics are divided by those of a backend's softmax in their round."""
    base = {
        _place(x): x.metrics
        for x in results
        if x.ok and (x.case.variant, x.case.get("backend")) == ("softmax", backend)
    }
    return [
        replace(
            result,
            metrics={
                name: replace(metric, value=metric.value / base[_place(result)][name].value)
                for name, metric in result.metrics.items()
                if name in base[_place(result)]
            },
        )
        for result in results
        if result.ok and _place(result) in base
    ]


def _published_row(table: str, variant: str, backend: str) -> str | None:
    """Return the row of a published table, None where it has none.

    The papers ran plain PyTorch, but for the row of ZeroS that FlashAttention computes.
    """
    if table == "zeros_table_7" and variant == "softmax":
        return {"eager": "softmax_naive", "sdpa": "softmax"}.get(backend)
    return variant if backend in ("eager", "own") else None


def _place(result: Result) -> tuple[object, ...]:
    return (result.case.get("setting"), result.case.get("mode"), result.case.seed)


STUDY = CostStudy()
