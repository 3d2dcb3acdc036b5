"""The cells of images: answers without an encoder, and a training per task, row, rate and seed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from benchmarks import learners, rates, training
from benchmarks.images import folder as image_folder
from benchmarks.images import pictures, tasks
from benchmarks.images.images import CEILING, Images
from benchmarks.images.learner import ImageData
from benchmarks.study import MEASUREMENT
from benchmarks.training_options import Job, options
from benchmarks.variants import variants
from orbits.runs.cell import Cell, Outcome, Progress, leave_out
from orbits.runs.result import Case, Metric
from orbits.runs.study import Study

PLAIN = {
    "most common class": DummyClassifier(),
    "1-NN": KNeighborsClassifier(1),
    "25-NN": KNeighborsClassifier(25),
}
"""Classifiers that are fitted to the pixels of the first seed's training images."""
LINEAR = "logistic regression"
STRENGTHS = (0.01, 0.1, 1.0, 10.0)
"""C of the regressions among which validation images choose, as they choose an encoder's rate."""


def cells(study: Study, settings: Images) -> list[Cell]:
    """Return the cells of each task; one that is skipped where its folder is not there."""
    made: list[Cell] = []
    for name in settings.tasks:
        task = tasks.get(name)
        n_classes, inputs = task.n_classes, {}
        if name == tasks.FOLDER:
            try:
                n_classes = len(image_folder.read(settings.data).classes)
            except image_folder.Missing as reason:
                case = Case(study.name, MEASUREMENT, "all", setting={"task": name})
                made.append(Cell(leave_out, case, {"why": str(reason)}))
                continue
            inputs = {"images": Path(str(settings.data))}
        for cell in _of_task(study, settings, task, n_classes):
            made.append(Cell(cell.function, cell.case, cell.arguments, inputs=inputs))
    return made


def _of_task(study: Study, settings: Images, task: tasks.Task, n_classes: int) -> Iterator[Cell]:
    """Yield the cells of one task."""
    sizes = {name: getattr(settings, name) for name in ("n_train", "n_val", "n_test")}
    data = {"task": task.name, **sizes, **_changed(settings, "augmented", "repeats")}
    if task.name != tasks.FOLDER:
        case = Case(study.name, MEASUREMENT, "plain", setting={"task": task.name, "lr": None})
        of_plain = {"strengths": list(STRENGTHS), "tracks": settings.tracks}
        yield Cell(without_encoder, case, {**of_plain, "data": data})
    tokens = 1 + (task.size // task.patch) ** 2
    of_model = ("n_layer", "n_head", "head_dim", "weight_decay", "smoothing", "mixed")
    for variant in variants(settings.attention, settings.exponents):
        model = {
            "n_classes": n_classes,
            "attention": variant.attention,
            "attention_args": variant.arguments(tokens, rotary=False) or None,
            **{name: getattr(settings, name) for name in of_model},
            **_changed(settings, "drop_path"),
        }
        for job in rates.jobs(settings, "images", model, data):
            learners.check_encoder(job, variant.name)
            setting = {"task": task.name, "lr": job["lr"]}
            case = Case(study.name, MEASUREMENT, variant.label, seed=job["seed"], setting=setting)
            yield Cell(train_and_test, case, {"job": job})


def _changed(settings: Images, *names: str) -> dict[str, Any]:
    """Return settings that are not the default: cells without them are those of older runs."""
    found = {name: getattr(settings, name) for name in names}
    return {name: value for name, value in found.items() if value != getattr(Images, name)}


def train_and_test(
    job: Job, folder: Path, scratch: Path, progress: Progress, images: Path | None = None
) -> Outcome:
    """Train an encoder on a task and test it."""
    place = None if images is None else str(images)
    job = {**job, "data": {**job["data"], "folder_of": place}}
    model = training.train(job, folder, scratch, progress)
    device = training.device(job)
    model.to(training.torch_device(options(job))).eval()
    right = []
    for batch in ImageData(**job["data"]).sequences("test", job["data"]["n_test"]).batches(250):
        with torch.no_grad():
            logits = model({"images": batch["images"].to(model.device)}).cpu()
        right.append((logits.argmax(dim=-1) == batch["labels"]).numpy())
    accuracy = training.validated(model, job, folder, "val_accuracy")
    weights = sum(each.numel() for each in model.parameters()) / 1e6
    metrics = {"top1": _percent(np.concatenate(right)), "params": Metric(weights, n=1)}
    return Outcome({**metrics, "val_accuracy": Metric(100 * accuracy)}, device=device)


def without_encoder(data: dict[str, Any], strengths: list[float], tracks: int) -> list[Outcome]:
    """Test answers without an encoder: tables of images, a linear map, the best possible ones."""
    made = ImageData(**data)
    x, labels = _pixels(made, "train", data["n_train"])
    chosen, right = _pixels(made, "val", data["n_val"])
    asked, truth = _pixels(made, "test", data["n_test"])
    fitted = {name: plain.fit(x, labels) for name, plain in PLAIN.items()}
    linear = [
        make_pipeline(StandardScaler(), LogisticRegression(C=c, max_iter=500)).fit(x, labels)
        for c in strengths
    ]
    fitted[LINEAR] = max(linear, key=lambda each: each.score(chosen, right))
    outcomes = [
        Outcome({"top1": _percent(plain.predict(asked) == truth)}, variant=name)
        for name, plain in fitted.items()
    ]
    if data["task"] in pictures.TASKS:
        shown = asked.reshape(-1, pictures.SIZE, pictures.SIZE) * pictures.NOISE
        answers = pictures.best_answers(data["task"], shown, tracks)
        outcomes.append(Outcome({"top1": _percent(answers == truth)}, variant=CEILING))
    return outcomes


def _pixels(data: ImageData, split: str, n: int) -> tuple[np.ndarray, np.ndarray]:
    batch = data.sequences(split, n).as_batch()
    return batch["images"].flatten(1).numpy(), batch["labels"].numpy()


def _percent(right: np.ndarray) -> Metric:
    return Metric.mean(100.0 * right)
