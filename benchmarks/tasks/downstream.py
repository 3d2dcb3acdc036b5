"""Zero-shot downstream tasks of trained language models, by lm-evaluation-harness.

LSSAR (2026), Tables 2, A1 and A2; Lazy Attention, Table 1. ``acc_norm`` divides a choice's
log-likelihood by its characters (LSSAR), ``acc_n`` rescales an accuracy against chance (Lazy
Attention, C.3): two metrics with two names. A task whose data cannot be reached is a failed
cell that says so: the next run tries it again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from benchmarks.downstream_tasks import TASKS
from benchmarks.task import Line, Metric, Table, Task, by_seed, measurements
from benchmarks.tasks import _language_model as language_model
from benchmarks.tasks._language_model import LanguageModels
from benchmarks.tasks.extrapolation import PRESETS as LANGUAGE_MODELS
from benchmarks.views import bars, interval_table
from symreg.cells import Cell, Compute, Progress

NAMES = {"perplexity": "ppl", "word_perplexity": "ppl"}
"""The papers' names of the harness's metrics."""


@dataclass(frozen=True)
class Downstream(LanguageModels):
    """Language models and what they are asked.

    Attributes:
        tasks: Names of tasks of lm-evaluation-harness, or ``summscreen``.
        limit: Most samples per task; None for all.
        include_path: A folder of further tasks of the harness, as YAML files.
        scrolls: A ``validation.jsonl`` of SummScreen; None for the hub's.
        checkpoints: Checkpoints of language models to ask in place of trained ones.
    """

    tasks: tuple[str, ...] = tuple(task.name for task in TASKS)
    limit: int | None = None
    include_path: str | None = None
    scrolls: str | None = None
    checkpoints: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.tasks:
            raise ValueError("tasks must not be empty")
        for name in (*self.checkpoints, self.include_path, self.scrolls):
            if name is not None and not Path(name).exists():
                raise FileNotFoundError(f"{name}: no such file or folder")


def _of(preset: str, about: str, **changes: Any) -> Downstream:
    """Return the language models of extrapolation's preset, with these questions."""
    models = {
        name: value
        for name, value in vars(LANGUAGE_MODELS[preset]).items()
        if name in LanguageModels.__dataclass_fields__
    }
    return Downstream(**{**models, "attentions": ("softmax", "lssar"), "about": about, **changes})


SMALL = _of(
    "small",
    "extrapolation's small models, 100 samples a task; needs the hub's data; an hour of CPU",
    exponents=(15.0,),
    limit=100,
)
PRESETS = {
    "tiny": replace(
        _of("tiny", "smoke test, two samples a task; needs the hub's data; no claims"),
        limit=2,
        tasks=("arc_easy", "lambada_openai"),
    ),
    "small": SMALL,
    "gpu": _of("gpu", "extrapolation's byte GPT of 11M on whole tasks; one GPU", exponents=(15.0,)),
    "paper": _of("paper", "GPT-2 124M of extrapolation's, every task; never run"),
}
METRICS = {
    f"{metric}@{task.name}": Metric(
        "lower" if metric == "ppl" else "higher",
        "perplexity" if metric == "ppl" else "%",
        f"{metric} of {task.name}",
    )
    for task in TASKS
    for metric in ("acc", "acc_norm", "acc_n", "ppl", "rouge1")
}


class DownstreamTask(Task):
    """Downstream tasks."""

    name = "downstream"
    version = 1
    about = "What do language models answer zero-shot on the papers' downstream tasks?"
    metrics = METRICS
    presets = PRESETS
    published = ("downstream", "lambada")

    def cells(self, settings: Downstream) -> list[Cell]:
        """Return trainings with a cell per task and model; or a cell per task and checkpoint."""
        from orbits import artefacts

        asked: list[Cell] = []
        trained: list[Cell] = []
        models: list[tuple[str, int | None, dict[str, Any]]] = []
        if settings.checkpoints:
            for path in map(Path, settings.checkpoints):
                known = {"checkpoint_sha256": artefacts.sha256(path)}
                label = str(path.with_suffix(""))
                models.append((label, None, {"config": known, "inputs": {"checkpoint": path}}))
        else:
            for variant, number in settings.models():
                cell = language_model.training_cell(settings, variant, number)
                trained.append(cell)
                models.append((variant.label, number, {"config": {}, "needs": {"model": cell}}))
        for label, seed, source in models:
            for name in settings.tasks:
                how = {
                    **source["config"],
                    **_contents(settings),
                    "limit": settings.limit,
                    "include_path": settings.include_path,
                    "scrolls": settings.scrolls,
                }
                config = self.measurement({"model": label, "asked": name}, seed, how)
                asked.append(
                    Cell(
                        "evaluate",
                        config,
                        needs=source.get("needs", {}),
                        inputs=source.get("inputs", {}),
                        label=f"{name} of {label}",
                    )
                )
        return [*trained, *asked]

    def compute(self) -> Mapping[str, Compute]:
        """Return how models are trained and asked."""
        return {"language_model": language_model.train, "evaluate": self.evaluate}

    def evaluate(
        self, config: dict[str, Any], folder: Path, needs: dict[str, Path], progress: Progress
    ) -> dict[str, Any]:
        """Ask a model one task; without its data the line says why it was skipped."""
        from benchmarks import downstream
        from benchmarks.training import CHECKPOINT, device
        from orbits import artefacts
        from orbits.manifest import manifest

        checkpoint = needs["checkpoint"] if "checkpoint" in needs else needs["model"] / CHECKPOINT
        name = config["row"]["asked"]
        found = downstream.evaluate(
            checkpoint,
            [name],
            limit=config["limit"],
            include_path=config["include_path"],
            scrolls=config["scrolls"],
        )["tasks"][name]
        inputs = {"checkpoint": artefacts.sha256(checkpoint)}
        record = manifest(config, seed=config["seed"], device=device(config), inputs=inputs)
        if found["status"] == "skipped":  # a failed cell is tried again, and never taken elsewhere
            raise RuntimeError(f"skipped: {found['reason']}")
        metrics = {}
        for metric, value in found["metrics"].items():
            label = f"{NAMES.get(metric, metric)}@{name}"
            scale = 1.0 if label.startswith("ppl") else 100.0
            error = None if value["stderr"] is None else scale * value["stderr"]
            if label in self.metrics or name not in {task.name for task in TASKS}:
                metrics[label] = {**value, "value": scale * value["value"], "stderr": error}
        about = {key: found[key] for key in ("version", "requests", "truncated")}
        return {**self.line(config, {}, manifest=record), "metrics": metrics, "harness": about}

    def tables(self, lines: Sequence[Line]) -> list[Table]:
        """Return every metric by model."""
        metrics = dict.fromkeys(m for line in measurements(lines) for m in line["metrics"])
        return [interval_table("Zero-shot metrics", lines, ("model",), metrics)]

    def draw(self, lines: Sequence[Line], folder: Path) -> dict[str, Path]:
        """Draw each task's first metric by model."""
        paths = {}
        for name in dict.fromkeys(line["row"]["asked"] for line in lines):
            chosen = [x for x in measurements(lines) if x["row"]["asked"] == name and x["metrics"]]
            if chosen:
                metric = next(iter(chosen[0]["metrics"]))
                found = by_seed(chosen, metric, "model")
                values = {model: seeds for (model,), seeds in found.items()}
                path = folder / f"{name}.png"
                paths[f"{metric} by model."] = bars(values, path, metric)
        return paths


def _contents(settings: Downstream) -> dict[str, str]:
    """Return the hashes of the user's files, which decide the answers as much as their names."""
    from orbits import artefacts

    files = [Path(settings.scrolls)] if settings.scrolls else []
    files += sorted(Path(settings.include_path).rglob("*.*")) if settings.include_path else []
    return {f"sha256 {file.name}": artefacts.sha256(file) for file in files if file.is_file()}


TASK = DownstreamTask()
