"""What a training step and a forward pass of GPT-2 124M cost.

LSSAR (2026), Table A7 (batch 4, bfloat16) and ZeroS (2025), Table 7 (batch 8, float32), measured
by :mod:`benchmarks.speed.gpt2`. Without a GPU a single small block in float32 stands in: its
ratios are those of one layer, and no time of it is GPT-2's; run it on a quiet machine with one
thread (``OMP_NUM_THREADS=1``), as its seconds are those of the clock on the wall. Rounds follow
each other, each over all variants, so that a machine's drift meets all of them alike.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from benchmarks.task import Line, Measured, Metric, Settings, Table, Task, by_seed, measurements
from benchmarks.views import bars, interval_table
from symreg.cells import Cell, Compute, Progress

TABLES = {
    "lssar_table_a7": ("lssar-a7", {"train": "train", "evaluation": "eval"}, 1e3, 2**-20),
    "zeros_table_7": ("zeros-7", {"train": "train", "evaluation": "forward"}, 1.0, 2**-30),
}
"""Published table: our setting, its names of the modes, its units of time and of memory."""


@dataclass(frozen=True)
class Costs(Settings):
    """What is timed.

    Attributes:
        variants: Attention variants and linear mixers, in all their implementations.
        rounds: Measurements of each, one after the other.
    """

    variants: tuple[str, ...] = (
        "softmax", "lssa", "lssar", "elastic", "zeros", "linear", "gla", "hgrn2", "rwkv6", "rwkv7",
    )  # fmt: skip
    rounds: tuple[int, ...] = (0, 1, 2)

    def __post_init__(self) -> None:
        self.check_not_empty("variants", "rounds")
        if "softmax" not in self.variants:
            raise ValueError("variants must name softmax, by which the others are divided")
        self.check({"rounds": 0})


SMALL = Costs(preset="small", about="one small block in place of GPT-2; a minute of CPU", jobs=1)
PRESETS = {
    "tiny": replace(SMALL, preset="tiny", about="smoke test", variants=("softmax",), rounds=(0,)),
    "small": SMALL,
    "gpu": replace(SMALL, preset="gpu", about="both tables on one GPU, minutes"),
    "paper": replace(SMALL, preset="paper", about="the same as gpu: the tables are of one GPU"),
}
METRICS = {
    "latency": Metric("lower", "s", "median seconds of a step"),
    "throughput": Metric("higher", "tokens per s", "tokens of a step by its seconds"),
    "memory": Metric("lower", "bytes", "absolute peak on a GPU; kept by autograd on a CPU"),
}


class CostTask(Task):
    """Time and memory."""

    name = "cost"
    version = 2
    about = "What do attention variants cost in time and memory, training and evaluating?"
    metrics = METRICS
    presets = PRESETS
    published = ("speed",)

    def cells(self, settings: Costs) -> list[Cell]:
        """Return one cell per round, setting, mode and variant."""
        import torch

        import attention
        from benchmarks.speed import gpt2

        on_gpu = torch.cuda.is_available()
        if settings.preset in ("gpu", "paper") and not on_gpu:
            raise ValueError(f"preset {settings.preset!r} needs 1 CUDA device, found 0")
        device = torch.cuda.get_device_name() if on_gpu else "cpu"
        sizes = [setting for setting, *_ in TABLES.values()] if on_gpu else ["small"]
        cells = []
        for number in settings.rounds:
            for size in sizes:
                for mode in ("train", "evaluation"):
                    for name in settings.variants:
                        for backend in gpt2.backends(name):
                            if backend == "triton" and not on_gpu:
                                continue
                            row = {
                                "setting": size,
                                "mode": mode,
                                "backend": backend,
                                "model": attention.label(name),
                            }
                            config = {"variant": name, "device": device}
                            label = f"{mode} {name}, {backend}, round {number}"
                            full = self.measurement(row, number, config)
                            cells.append(Cell("step", full, label=label))
        return cells

    def compute(self) -> Mapping[str, Compute]:
        """Return how a step is timed."""
        return {"step": self.step}

    def step(
        self, config: dict[str, Any], folder: Path, needs: dict[str, Path], progress: Progress
    ) -> dict[str, Any]:
        """Time one step, many times."""
        from benchmarks.speed import gpt2
        from orbits.manifest import manifest

        row = config["row"]
        device = "cpu" if config["device"] == "cpu" else "cuda"
        found = gpt2.measure(
            row["setting"], row["backend"], config["variant"], row["mode"] == "train", device
        )
        metrics = {
            "latency": Measured(found["seconds"], 1),
            "throughput": Measured(found["tokens_per_s"], 1),
        }
        if found["bytes"]:  # without gradients autograd keeps nothing on a CPU
            metrics["memory"] = Measured(found["bytes"], 1)
        return self.line(config, metrics, manifest=manifest(config, seed=None, device=device))

    def tables(self, lines: Sequence[Line]) -> list[Table]:
        """Return ratios to softmax in the same round, then the measurements themselves."""
        keys = ("setting", "mode", "backend", "model")
        title = "Latency and memory by those of eager softmax in the same round"
        return [
            interval_table(title, _ratios(lines), keys, ("latency", "memory")),
            interval_table("A step: seconds, tokens per second, bytes", lines, keys, self.metrics),
        ]

    def ours(
        self, lines: Sequence[Line], table: str = ""
    ) -> dict[str, dict[int, dict[str, float]]]:
        """Return the rows of a table's own setting, in its units."""
        setting, modes, second, byte = TABLES[table]
        found: dict[str, dict[int, dict[str, float]]] = {}
        for line in measurements(lines):
            row = line["row"]
            label = _published_row(table, row["model"], row["backend"])
            if row["setting"] == setting and label is not None:
                mode, metrics = modes[row["mode"]], line["metrics"]
                values = found.setdefault(label, {}).setdefault(row["seed"], {})
                values[f"latency@{mode}"] = second * metrics["latency"]["value"]
                values[f"throughput@{mode}"] = metrics["throughput"]["value"]
                if "memory" in metrics:
                    values[f"memory@{mode}"] = byte * metrics["memory"]["value"]
        return found

    def draw(self, lines: Sequence[Line], folder: Path) -> dict[str, Path]:
        """Draw every variant's latency by that of softmax."""
        paths = {}
        ratios = _ratios(lines)
        for setting, mode in dict.fromkeys((x["row"]["setting"], x["row"]["mode"]) for x in lines):
            chosen = [
                x for x in ratios if (x["row"]["setting"], x["row"]["mode"]) == (setting, mode)
            ]
            found = by_seed(chosen, "latency", "model", "backend")
            values = {", ".join(key): seeds for key, seeds in found.items()}
            path = folder / f"{setting}_{mode}.png"
            caption = f"Latency by that of eager softmax, {mode}, setting {setting}."
            paths[caption] = bars(values, path, "latency by softmax's", 1.0, "softmax")
        return paths


def _ratios(lines: Sequence[Line]) -> list[Line]:
    """Return lines whose metrics are divided by those of eager softmax in the same round."""
    base = {
        _place(x): x["metrics"]
        for x in measurements(lines)
        if (x["row"]["model"], x["row"]["backend"]) == ("softmax", "eager")
    }
    return [
        {
            **line,
            "metrics": {
                name: {**metric, "value": metric["value"] / base[_place(line)][name]["value"]}
                for name, metric in line["metrics"].items()
                if name in base[_place(line)]
            },
        }
        for line in measurements(lines)
        if _place(line) in base
    ]


def _published_row(table: str, model: str, backend: str) -> str | None:
    """Return the row of a published table, None where it has none.

    The papers ran plain PyTorch, but for the row of ZeroS that FlashAttention computes.
    """
    if table == "zeros_table_7" and model == "softmax":
        return {"eager": "softmax_naive", "sdpa": "softmax"}.get(backend)
    return model if backend in ("eager", "own") else None


def _place(line: Line) -> tuple[Any, ...]:
    return tuple(line["row"][name] for name in ("setting", "mode", "seed"))


TASK = CostTask()
