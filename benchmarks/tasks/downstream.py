"""Zero-shot downstream tasks of trained language models, by lm-evaluation-harness.

LSSAR (2026), Tables 2, A1 and A2; Lazy Attention, Table 1. ``acc_norm`` divides a choice's
log-likelihood by its characters (LSSAR), ``acc_n`` rescales an accuracy against chance (Lazy
Attention, C.3): two metrics with two names. A task whose data cannot be reached is a skipped
cell that says so: the next run tries it again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from benchmarks.downstream import catalogue
from benchmarks.task import Line, Metric, Table, Task, by_seed, measurements
from benchmarks.tasks import _language_model as language_model
from benchmarks.tasks._asked import Model, models_of, training_cells
from benchmarks.tasks._language_model import LanguageModels
from benchmarks.tasks.extrapolation import PRESETS as LANGUAGE_MODELS
from benchmarks.views import bars, interval_table
from symreg.cells import Cell, Compute, Progress, Skipped

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
    """

    tasks: tuple[str, ...] = catalogue.names()
    limit: int | None = None
    include_path: str | None = None
    scrolls: str | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        self.check_not_empty("tasks")
        self.check({"limit": 1})
        if twice := [name for name, n in Counter(self.tasks).items() if n > 1]:
            raise ValueError(f"duplicate {', '.join(twice)} in tasks; keep one")
        if self.scrolls is not None and not Path(self.scrolls).is_file():
            raise FileNotFoundError(f"{self.scrolls}: no such file")
        if self.include_path is not None and not Path(self.include_path).is_dir():
            raise FileNotFoundError(f"{self.include_path}: no such folder of tasks")


def _of(preset: str, about: str, **changes: Any) -> Downstream:
    """Return the language models of extrapolation's preset, with these questions."""
    models = LANGUAGE_MODELS[preset].shared()
    return Downstream(**{**models, "attentions": ("softmax", "lssar"), "about": about, **changes})


PRESETS = {
    "tiny": _of(
        "tiny",
        "smoke test, two samples a task; needs the hub's data; no claims",
        limit=2,
        tasks=("arc_easy", "lambada_openai"),
    ),
    "small": _of(
        "small",
        "extrapolation's small models, 100 samples a task; needs the hub's data",
        exponents=(15.0,),
        limit=100,
    ),
    "gpu": _of("gpu", "extrapolation's byte GPT of 11M on whole tasks; one GPU", exponents=(15.0,)),
    "paper": _of("paper", "GPT-2 124M of extrapolation's, every task; never run"),
}
KINDS = {
    "acc": Metric("higher", "%", "right answers, by log-likelihood"),
    "acc_norm": Metric("higher", "%", "right answers, by log-likelihood per character"),
    "acc_n": Metric(
        "higher",
        "%",
        "acc rescaled so that chance is 0 and perfection 100 (Lazy Attention, C.3), not acc_norm; "
        "the paper's columns acc_n are taken to be this, but their numbers look like acc_norm",
    ),
    "ppl": Metric("lower", "perplexity", "perplexity per word; in LAMBADA, of the last one"),
    "rouge1": Metric("higher", "%", "ROUGE-1 F1 of a summary with its best reference"),
}
"""What the papers report; those in % are shares in the harness."""


def _declared() -> dict[str, Metric]:
    """Return the papers' columns, each with the papers that have it."""
    found = {}
    for task in catalogue.TASKS:
        papers = {"LSSAR": task.lssar, "Lazy Attention": task.lazy}
        for metric in (*task.lssar, *task.lazy):
            kind = KINDS[NAMES.get(metric, metric)]
            where = " and ".join(paper for paper, known in papers.items() if metric in known)
            about = f"{kind.about}; a column of {where}"
            found[_label(metric, task.name)] = replace(kind, about=about)
    return found


def _label(metric: str, asked: str) -> str:
    """Return what we call a metric of the harness: as the papers do in their own tasks."""
    return f"{NAMES.get(metric, metric) if asked in catalogue.names() else metric}@{asked}"


METRICS = _declared()


@dataclass(frozen=True)
class _Files:
    """What a question is given of the user's files, and what says their content."""

    config: Mapping[str, Any] = field(default_factory=dict)
    inputs: Mapping[str, Path] = field(default_factory=dict)


class DownstreamTask(Task):
    """Downstream tasks."""

    name = "downstream"
    version = 2
    about = "What do language models answer zero-shot on the papers' downstream tasks?"
    metrics = METRICS
    presets = PRESETS
    published = ("downstream", "lambada")

    def cells(self, settings: Downstream) -> list[Cell]:
        """Return trainings with a cell per task and model; or a cell per task and checkpoint."""
        from benchmarks import downstream

        downstream.check(settings.tasks, settings.include_path, settings.scrolls)
        models, files = models_of(settings), _files(settings)
        questions = []
        for model in models:
            for name, given in files.items():
                how = {**given.config, "limit": settings.limit}
                label = f"{name} of {model.label}"
                row = {"asked": name}
                questions.append(
                    model.question(self, "evaluate", row, how, label, inputs=given.inputs)
                )
        return [*training_cells(models), *questions]

    def compute(self) -> Mapping[str, Compute]:
        """Return how models are trained and asked."""
        return {"language_model": language_model.train, "evaluate": self.evaluate}

    def evaluate(
        self, config: dict[str, Any], folder: Path, needs: dict[str, Path], progress: Progress
    ) -> dict[str, Any]:
        """Ask a model one task.

        Raises:
            Skipped: The task's data cannot be reached.
        """
        from benchmarks import downstream

        model, name = Model.needed(needs, config), config["row"]["asked"]
        found = downstream.evaluate(
            model.path,
            [name],
            limit=config["limit"],
            include_path=needs.get("tasks"),
            scrolls=needs.get("scrolls"),
        )["tasks"][name]
        if found["status"] == "skipped":
            raise Skipped(found["reason"])
        about = {key: found[key] for key in ("version", "requests", "truncated")}
        metrics = _columns(name, found["metrics"])
        return {**model.line(self, config, {}), "metrics": metrics, "harness": about}

    def tables(self, lines: Sequence[Line]) -> list[Table]:
        """Return every metric by model."""
        metrics = dict.fromkeys(m for line in measurements(lines) for m in line["metrics"])
        shares = ", ".join(name for name, kind in KINDS.items() if kind.unit == "%")
        title = f"Zero-shot metrics; {shares} in %"
        return [interval_table(title, lines, ("model",), metrics)]

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


def _files(settings: Downstream) -> dict[str, _Files]:
    """Return what each task is given of the user's files: their content decides the answers."""
    from orbits import artefacts

    ours = theirs = _Files()
    if settings.scrolls is not None:
        path = Path(settings.scrolls)
        ours = _Files({"scrolls_sha256": artefacts.sha256(path)}, inputs={"scrolls": path})
    if settings.include_path is not None:
        folder = Path(settings.include_path)
        hashes = {
            path.relative_to(folder).as_posix(): artefacts.sha256(path)
            for path in sorted(folder.rglob("*"))
            # Loading a task's Python functions leaves their compiled forms beside them.
            if path.is_file() and "__pycache__" not in path.parts
        }
        theirs = _Files({"tasks_sha256": hashes}, inputs={"tasks": folder})
    return {name: ours if name == catalogue.SUMMSCREEN else theirs for name in settings.tasks}


def _columns(asked: str, metrics: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """Return the harness's metrics of a task, shares as per cent: the papers' columns of theirs."""
    found = {}
    for metric, measured in metrics.items():
        label = _label(metric, asked)
        if label in METRICS or asked not in catalogue.names():
            scale = 100 if metric in KINDS and KINDS[metric].unit == "%" else 1
            error = measured["stderr"]
            found[label] = {
                **measured,
                "value": scale * measured["value"],
                "stderr": None if error is None else scale * error,
            }
    return found


TASK = DownstreamTask()
