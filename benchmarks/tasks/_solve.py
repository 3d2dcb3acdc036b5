"""Small models trained on a synthetic problem and tested on it: what recall tasks share.

Every model is trained at every learning rate (and weight decay) of a sweep. A table shows the
setting whose *validation* accuracy, averaged over seeds, is highest: the test examples choose
nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any

from benchmarks.presets import Training
from benchmarks.task import Line, Measured, Settings, Task

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from benchmarks.problem_data import ProblemData
    from benchmarks.problems import Integers
    from benchmarks.variants import Variant
    from symreg.cells import Progress
    from worldmodel.token_task import TokenTask

AFTER = "first stage first"
"""Said of a re-weighted model that trains without re-weighting until it can recall."""

SWEPT = ("lr", "weight_decay")


@dataclass(frozen=True)
class Trial:
    """One model at one setting of a sweep.

    Attributes:
        variant: The attention.
        warm: Whether re-weighting waits for the first stage to have learned.
        seed: The model's seed.
        lr: Learning rate.
        weight_decay: Decoupled weight decay.
    """

    variant: Variant
    warm: bool
    seed: int
    lr: float
    weight_decay: float

    @property
    def row(self) -> dict[str, Any]:
        """What tables call it."""
        label = f"{self.variant.label}, {AFTER}" if self.warm else self.variant.label
        return {"model": label, "lr": self.lr, "weight_decay": self.weight_decay}

    @property
    def label(self) -> str:
        """What progress calls it."""
        return f"{self.row['model']}, lr {self.lr:g}, seed {self.seed}"


@dataclass(frozen=True)
class Problems(Settings):
    """Models, their training and the sweep.

    Attributes:
        attentions: Attention variants, linear mixers and the papers' ablations of both.
        exponents: The p of every re-weighted variant, one row each; none for the catalogue's.
        warm_up: A validation accuracy: a further row per re-weighted variant, which trains
            without re-weighting until it has passed it; 0 for none.
        seeds: Model seeds, each with its own training examples.
        lrs: Learning rates of the sweep.
        weight_decays: Weight decays of the sweep.
        n_layer: Blocks.
        n_head: Heads per block.
        head_dim: Channels per head.
        mlp: What follows attention in a block: gelu, swiglu or none.
        norm: layer or rms.
        positions: ``rope``, or ``learned`` absolute positions in its stead.
        optimizer: ``adamw`` or ``muon``.
        min_lr_ratio: The learning rate at the end, as a share of that at the start.
        steps: Most training steps.
        epochs: Passes over the training examples, which then decide the steps; None for ``steps``.
        val_steps: Steps between validations.
        stop_at: Training stops at this validation accuracy.
        batch_size: Examples per step.
        n_train: Number of different training examples; None for new ones at every step.
        n_val: Validation examples.
        n_test: Test examples.
        training: How cells are trained.
    """

    attentions: tuple[str, ...] = ("softmax", "lssa", "lssar")
    exponents: tuple[float, ...] = ()
    warm_up: float = 0.9
    seeds: tuple[int, ...] = (0, 1, 2)
    lrs: tuple[float, ...] = (1e-3, 3e-3, 1e-2)
    weight_decays: tuple[float, ...] = (0.1,)
    n_layer: int = 2
    n_head: int = 1
    head_dim: int = 64
    mlp: str = "none"
    norm: str = "layer"
    positions: str = "rope"
    optimizer: str = "adamw"
    min_lr_ratio: float = 0.0
    steps: int = 1200
    epochs: int | None = None
    val_steps: int = 50
    stop_at: float = 0.99
    batch_size: int = 64
    n_train: int | None = None
    n_val: int = 256
    n_test: int = 1024
    training: Training = field(default_factory=Training)

    def __post_init__(self) -> None:
        self.check_not_empty("attentions", "seeds", "lrs", "weight_decays")
        sizes = ("n_layer", "n_head", "head_dim", "steps", "val_steps", "batch_size", "n_train")
        self.check(dict.fromkeys((*sizes, "n_val", "n_test"), 1))
        self.check({"seeds": 0, "lrs": 1e-9, "weight_decays": 0, "exponents": 1e-9, "epochs": 1})
        if self.epochs is None and self.val_steps > self.steps:
            raise ValueError(f"val_steps must be at most steps {self.steps}, got {self.val_steps}")
        if self.positions not in ("rope", "learned"):
            raise ValueError(f"positions must be rope or learned, got {self.positions!r}")
        if not 0 < self.stop_at <= 1:
            raise ValueError(f"stop_at must be in (0, 1], got {self.stop_at}")
        if not 0 <= self.min_lr_ratio <= 1:
            raise ValueError(f"min_lr_ratio must be in [0, 1], got {self.min_lr_ratio}")
        if not 0 <= self.warm_up < 1:
            raise ValueError(f"warm_up must be in [0, 1), got {self.warm_up}")

    def trials(self) -> Iterator[Trial]:
        """Yield every model at every setting of the sweep."""
        from benchmarks.variants import variants

        for seed in self.seeds:
            for variant in variants(self.attentions, self.exponents):
                for warm in (False, True) if self.warm_up and variant.p is not None else (False,):
                    for lr in self.lrs:
                        for decay in self.weight_decays:
                            yield Trial(variant, warm, seed, lr, decay)

    def training_config(
        self, trial: Trial, problem: str, problem_args: Mapping[str, Any], length: int
    ) -> dict[str, Any]:
        """Return how one model is trained on a problem.

        Args:
            trial: The model, its rate and its decay.
            problem: A name of :mod:`benchmarks.problems.catalogue`.
            problem_args: Its settings.
            length: Tokens of its examples.
        """
        from benchmarks import learners

        learned = self.positions == "learned"
        steps = self.steps
        if self.epochs is not None:
            if self.n_train is None:
                raise ValueError("epochs need a number of training examples: give n_train")
            steps = self.epochs * -(-self.n_train // self.batch_size)
        arguments = trial.variant.arguments(length, rotary=not learned)
        config: dict[str, Any] = {
            "learner": "problem",
            "model": {
                "attention": trial.variant.attention,
                "attention_args": arguments or None,
                "n_layer": self.n_layer,
                "n_head": self.n_head,
                "head_dim": self.head_dim,
                "mlp": self.mlp,
                "norm": self.norm,
                "n_positions": length if learned else None,
                "optimizer": self.optimizer,
                "weight_decay": trial.weight_decay,
                "tied": False,
                "min_lr_ratio": self.min_lr_ratio,
            },
            "data": {
                "problem": problem,
                "problem_args": dict(problem_args),
                "n_train": self.n_train,
                "n_val": self.n_val,
                "n_test": self.n_test,
                "batch_size": self.batch_size,
                "train_seed": trial.seed,
            },
            "lr": trial.lr,
            "steps": steps,
            "val_steps": min(self.val_steps, steps),
            "stop_when": {"metric": "val_accuracy", "above": self.stop_at},
        }
        learners.check(config)
        if trial.warm:
            config["sharpen_when"] = {"metric": "val_accuracy", "above": self.warm_up}
        if changes := self.training.changes():
            config["training"] = changes
        return config


def trained(
    task: Task,
    config: dict[str, Any],
    folder: Path,
    progress: Progress,
    measure: Callable[[Any, Any], dict[str, Measured]],
) -> dict[str, Any]:
    """Train a model on its problem, measure it and return the result line.

    Args:
        task: The benchmark.
        config: The cell's configuration.
        folder: The cell's folder.
        progress: Told how far training is.
        measure: Takes the trained model and its data; returns metrics.
    """
    from benchmarks import learners, training
    from orbits.manifest import manifest
    from worldmodel.callbacks import sharpened
    from worldmodel.checkpoint import read_checkpoint

    with training.trained(config, folder, progress, seed=config["seed"]) as model:
        steps = read_checkpoint(folder / training.CHECKPOINT)["global_step"]
        device = "cuda" if training.device(config) != "cpu" else "cpu"
        metrics = measure(model.to(device).eval(), learners.data(config))
        curves = folder / training.CURVES
        metrics["val_accuracy"] = Measured(
            100 * training.last_value(curves, "val_accuracy"), config["data"]["n_val"]
        )
        metrics["steps"] = Measured(steps, 1)
        if "p" in (config["model"]["attention_args"] or {}):
            metrics["reweighted"] = Measured(sharpened(model), 1)
        record = manifest(config, seed=config["seed"], device=training.device(config))
        return task.line(config, metrics, manifest=record)


def answers(
    model: TokenTask, data: ProblemData, n: int, split: str = "test"
) -> tuple[Integers, Integers, Integers]:
    """Return tokens, greedy answers and targets of the first examples of a split, each [n, L]."""
    import numpy as np
    import torch

    examples = data.sequences(split, n)
    size = data.hparams["eval_batch_size"]
    found = []
    with torch.no_grad():
        for start in range(0, n, size):
            batch = examples.__getitems__(list(range(start, min(start + size, n))))
            logits = model({"tokens": batch["tokens"].to(model.device)})
            found.append((batch["tokens"], logits.argmax(dim=-1).cpu(), batch["targets"]))
    tokens, given, targets = (
        np.concatenate([np.asarray(x) for x in part]) for part in zip(*found, strict=True)
    )
    return tokens, given, targets


def best(lines: Sequence[Line]) -> list[Line]:
    """Return the lines at each row's best rate and decay: by mean validation accuracy.

    Of those with the most seeds: at the others some failed.
    """
    groups: dict[tuple, dict[tuple, list[Line]]] = {}
    for line in lines:
        row = {k: v for k, v in line["row"].items() if k not in (*SWEPT, "seed")}
        swept = tuple(line["row"].get(name) for name in SWEPT)
        groups.setdefault(tuple(row.items()), {}).setdefault(swept, []).append(line)
    # A rate at which a seed failed does not win by those that are left.
    return [
        line
        for found in groups.values()
        for line in max(
            found.values(),
            key=lambda some: (
                len(some),
                fmean(x["metrics"]["val_accuracy"]["value"] for x in some),
            ),
        )
    ]
