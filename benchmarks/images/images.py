"""Image classification by encoders of any attention that can read ahead.

ZeroS (2025), Table 3: DeiT-Tiny on ImageNet-1k with other mixers in place of softmax, which sum
over all positions. Without these images there are scikit-learn's digits, and pictures of orbits
with a question whose best possible answers are known (:mod:`benchmarks.images.pictures`). Tables
of images (nearest neighbours) and a linear map stand beside the models.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

from benchmarks.images import tasks
from benchmarks.published.compare import Ours
from benchmarks.rates import best
from benchmarks.study import PaperStudy
from benchmarks.training_options import Training
from orbits.runs.at_once import Compared, in_each
from orbits.runs.deferred import deferred
from orbits.runs.figure import figure_path
from orbits.runs.page import Picture
from orbits.runs.plots import bars
from orbits.runs.result import Quantity, Result, grouped
from orbits.runs.settings import check_at_least, check_not_empty
from orbits.runs.table import Column, Table, Value, by_variant, number
from orbits.runs.verdict import against, beside, shown

BASELINE, CEILING = "softmax", "best possible"
KEYS = ("task", "variant", "lr")


@dataclass(frozen=True)
class Images:
    """Encoders on images.

    Attributes:
        tasks: Tasks: digits, eccentricity, mass_ratio, imagenet.
        data: The folder of ImageNet-1k, with train/CLASS/FILE and val/CLASS/FILE.
        attention: Attention that can read ahead: every quadratic variant without a window, zeros
            and its ablations.
        exponents: The p of every re-weighted variant, one row each; none for the catalogue's.
        n_layer: Blocks.
        n_head: Heads per block.
        head_dim: Channels per head.
        seeds: Model seeds, each with its own drawn training images.
        lrs: Learning rates of the sweep; the validation images choose.
        weight_decay: Decoupled weight decay.
        smoothing: Share of a target that all classes have.
        mixed: Whether training images are mixed in pairs by mixup and cutmix.
        drop_path: How often the last block's parts are left out (stochastic depth).
        augmented: Whether training images of a folder have RandAugment and random erasing.
        repeats: Times that a training image is in its batch (repeated augmentation).
        n_train: Most training images.
        steps: Training steps.
        val_steps: Steps between validations.
        batch_size: Images per step.
        n_val: Most validation images.
        n_test: Most test images.
        tracks: Orbits that the best possible answers are computed from.
        training: Device, precision and other options of training.
    """

    tasks: tuple[str, ...] = ("digits", "eccentricity", "mass_ratio")
    data: str | None = None
    attention: tuple[str, ...] = (BASELINE,)
    exponents: tuple[float, ...] = ()
    n_layer: int = 2
    n_head: int = 2
    head_dim: int = 32
    seeds: tuple[int, ...] = (0, 1, 2)
    lrs: tuple[float, ...] = (1e-3, 3e-3)
    weight_decay: float = 0.05
    smoothing: float = 0.0
    mixed: bool = False
    drop_path: float = 0.0
    augmented: bool = False
    repeats: int = 1
    n_train: int = 8000
    steps: int = 800
    val_steps: int = 100
    batch_size: int = 64
    n_val: int = 360
    n_test: int = 1000
    tracks: int = 30_000
    training: Training = field(default_factory=Training)

    def __post_init__(self) -> None:
        check_not_empty(self, "tasks", "attention", "seeds", "lrs")
        sizes = ("n_layer", "n_head", "head_dim", "n_train", "steps", "val_steps", "batch_size")
        check_at_least(self, dict.fromkeys((*sizes, "n_val", "n_test", "tracks", "repeats"), 1))
        check_at_least(self, {"n_train": 25})  # the 25 nearest are a control
        check_at_least(self, {"seeds": 0, "lrs": 1e-9, "weight_decay": 0, "exponents": 1e-9})
        for task in self.tasks:
            tasks.get(task)
        if not 0 <= self.smoothing < 1:
            raise ValueError(f"smoothing must be in [0, 1), got {self.smoothing}")
        if not 0 <= self.drop_path < 1:
            raise ValueError(f"drop_path must be in [0, 1), got {self.drop_path}")
        if self.augmented and set(self.tasks) != {tasks.FOLDER}:
            raise ValueError(f"augmented is for images of a folder: take --tasks {tasks.FOLDER}")


class ImageStudy(PaperStudy):
    """Encoders on images."""

    name = "images"
    about = "Which attention sees best, as an encoder, and how near to the best possible answers?"
    Settings = Images
    once = ("tasks", "attention", "lrs", "seeds")
    undeciding = ("data",)
    metrics: ClassVar[Mapping[str, Quantity]] = {
        "top1": Quantity("higher", "%", "right answers on test images", bounds=(0, 100)),
        "val_accuracy": Quantity("higher", "%", "the same of validation", bounds=(0, 100)),
        "params": Quantity("none", "million", "weights of the model"),
    }
    published: ClassVar = ("imagenet",)
    same_scale: ClassVar = ("zeros_table_3",)
    only_if_run = True
    cells = deferred("benchmarks.images.cells:cells")

    def ours(self, results: Sequence[Result], table: str) -> Ours:
        """Return the results on ImageNet-1k at the best rate of each row."""
        mine = [x for x in best(results) if x.case.get("task") == tasks.FOLDER]
        return super().ours(mine, table)

    def tables(self, results: Sequence[Result]) -> list[Table]:
        """Return accuracies at the best rate of each row, those without an encoder, the sweep."""
        trained = [result for result in results if result.case.seed is not None]
        title = "At the learning rate with the best validation accuracy"
        return [
            self.seed_table(title, best(trained), KEYS, ("top1", "params")),
            _without_encoder(results),
            self.seed_table("The sweep", trained, KEYS, ("val_accuracy",)),
        ]

    def sentences(self, results: Sequence[Result]) -> list[str]:
        """Compare the encoders of each task with softmax, and with answers without an encoder."""
        said = []
        for task, found in _by_task(results).items():
            values = by_variant(found, "top1")
            rows = {variant: seeds for variant, seeds in values.items() if None not in seeds}
            others = {name: seeds[None] for name, seeds in values.items() if None in seeds}
            if BASELINE not in rows:
                continue
            given = ", ".join(f"{name} {value:.1f}%" for name, value in others.items())
            bounds = self.metrics["top1"].bounds
            compared = beside(against(rows, BASELINE), BASELINE, ".1f", " points")
            said.append(
                f"{task}: {BASELINE} {shown(rows[BASELINE], '.1f', '%', bounds)}; without an "
                f"encoder {given}; {compared or 'nothing is compared by three seeds'}."
            )
        return said

    def all_at_once(self, results: Sequence[Result]) -> Compared:
        """Compare the encoders of each task at once, each at its best rate."""
        return in_each(
            {
                f"{task}, right answers": {
                    name: seeds
                    for name, seeds in by_variant(found, "top1").items()
                    if None not in seeds
                }
                for task, found in _by_task(results).items()
            }
        )

    def figures(self, results: Sequence[Result], out: Path) -> list[Picture]:
        """Draw the accuracy of each row, a figure per task."""
        pictures = []
        for task, found in _by_task(results).items():
            values = by_variant(found, "top1")
            level = values.pop(CEILING, {}).get(None)
            path = figure_path(out, f"top1_{task}")
            title = f"{task}: {tasks.get(task).about}".replace("_", " ")
            bars(values, path, "right answers, %", level, CEILING, title=title)
            pictures.append(Picture(f"{title}.", [path]))
        return pictures


def _without_encoder(results: Sequence[Result]) -> Table:
    """Return the accuracies of tables, of a linear map and of the best possible answers."""
    rows = [
        [
            Value(str(result.case.get("task")), kind="name"),
            Value(result.case.variant, kind="name"),
            number(result.value("top1"), ".1f"),
        ]
        for result in results
        if result.ok and result.case.seed is None
    ]
    return Table("Without an encoder", [Column(name) for name in ("task", "row", "top1")], rows)


def _by_task(results: Sequence[Result]) -> dict[str, list[Result]]:
    return grouped(best(results), lambda result: result.case.get("task"))


STUDY = ImageStudy()
