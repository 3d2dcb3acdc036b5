"""The sweep: small models that are trained on problems, each at several rates and decays."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from benchmarks.recall.problem import Problem
from benchmarks.training_options import Job, Training
from orbits.runs.deferred import deferred
from orbits.runs.settings import check_at_least, check_not_empty

if TYPE_CHECKING:
    from benchmarks.variants import Variant

AFTER = "first stage first"
"""Mark of a re-weighted model that trains without re-weighting until it can recall."""
variants = deferred("benchmarks.variants:variants")
attentions = deferred("attention:names")


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
    def label(self) -> str:
        """The name in tables."""
        return f"{self.variant.label}, {AFTER}" if self.warm else self.variant.label


@dataclass(frozen=True)
class Exercise:
    """A problem of training with the problems of its tests.

    Attributes:
        problem: The problem to train on.
        head_dim: Channels per head of the model.
        n_train: Number of different training examples; None for new ones at every step.
        tests: Problems to test on, by the end of their metrics' names.
        setting: The names in tables that tell its rows from those of others.
        attention: Names of the attention rows that take it; None for all.
    """

    problem: Problem
    head_dim: int
    n_train: int | None
    tests: Mapping[str, Problem]
    setting: Mapping[str, Any] = field(default_factory=dict)
    attention: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        check_at_least(self, {"head_dim": 1, "n_train": 1})


@dataclass(frozen=True)
class Sweep:
    """Settings of models, of their training and of the sweep.

    Attributes:
        attention: Attention variants, linear mixers, the papers' ablations of both, and layers.
        exponents: The p of every re-weighted variant, one row each; none for the catalogue's.
        warm_up: A validation accuracy: a further row per re-weighted variant, which trains
            without re-weighting until it has passed it; 0 for none.
        seeds: Model seeds, each with its own training examples.
        lrs: Learning rates of the sweep.
        weight_decays: Weight decays of the sweep.
        n_layer: Blocks.
        n_head: Heads per block.
        mlp: MLP behind attention in a block: gelu, swiglu or none.
        norm: layer or rms.
        positions: ``rope``, or ``learned`` absolute positions in its stead.
        init: ``ours``, or ``published`` for zoology's initial sizes and its tied head.
        optimizer: ``adamw`` or ``muon``.
        min_lr_ratio: The learning rate at the end, as a share of that at the start.
        steps: Most training steps.
        epochs: Passes over the training examples, which then decide the steps; None for ``steps``.
        val_steps: Steps between validations.
        stop_at: Training stops at this validation accuracy.
        batch_size: Examples per step.
        n_val: Validation examples.
        n_test: Test examples.
        training: Device, precision and other options of training.
    """

    attention: tuple[str, ...] = ("softmax", "lssa", "lssar")
    exponents: tuple[float, ...] = ()
    warm_up: float = 0.9
    seeds: tuple[int, ...] = (0, 1, 2)
    lrs: tuple[float, ...] = (1e-3, 3e-3, 1e-2)
    weight_decays: tuple[float, ...] = (0.1,)
    n_layer: int = 2
    n_head: int = 1
    mlp: str = "none"
    norm: str = "layer"
    positions: str = "rope"
    init: str = "ours"
    optimizer: str = "adamw"
    min_lr_ratio: float = 0.0
    steps: int = 1200
    epochs: int | None = None
    val_steps: int = 50
    stop_at: float = 0.99
    batch_size: int = 64
    n_val: int = 256
    n_test: int = 1024
    training: Training = field(default_factory=Training)

    def __post_init__(self) -> None:
        check_not_empty(self, "attention", "seeds", "lrs", "weight_decays")
        sizes = ("n_layer", "n_head", "steps", "val_steps", "batch_size", "n_val", "n_test")
        check_at_least(self, dict.fromkeys((*sizes, "epochs"), 1))
        check_at_least(self, {"seeds": 0, "lrs": 1e-9, "weight_decays": 0, "exponents": 1e-9})
        if self.epochs is None and self.val_steps > self.steps:
            raise ValueError(f"val_steps must be at most steps {self.steps}, got {self.val_steps}")
        if self.positions not in ("rope", "learned"):
            raise ValueError(f"positions must be rope or learned, got {self.positions!r}")
        if self.init not in ("ours", "published"):
            raise ValueError(f"init must be ours or published, got {self.init!r}")
        if not 0 < self.stop_at <= 1:
            raise ValueError(f"stop_at must be in (0, 1], got {self.stop_at}")
        if not 0 <= self.min_lr_ratio <= 1:
            raise ValueError(f"min_lr_ratio must be in [0, 1], got {self.min_lr_ratio}")
        if not 0 <= self.warm_up < 1:
            raise ValueError(f"warm_up must be in [0, 1), got {self.warm_up}")
        list(self.exercises())  # refuses problems that cannot be

    def exercises(self) -> Iterator[Exercise]:
        """Yield the problems of training with those of the tests."""
        yield from ()

    def trials(self, exercise: Exercise) -> Iterator[Trial]:
        """Yield every model that takes an exercise at every setting of the sweep."""
        asked = self.attention if exercise.attention is None else exercise.attention
        for seed in self.seeds:
            for variant in variants(asked, self.exponents):
                for warm in (False, True) if self.warm_up and variant.p is not None else (False,):
                    for lr in self.lrs:
                        for decay in self.weight_decays:
                            yield Trial(variant, warm, seed, lr, decay)

    def job(self, trial: Trial, exercise: Exercise) -> Job:
        """Return the job of training one model on a problem."""
        quadratic = trial.variant.attention in attentions()
        learned, length = self.positions == "learned" and quadratic, exercise.problem.seq_len
        steps = self.steps
        if self.epochs is not None:
            if exercise.n_train is None:
                raise ValueError("epochs need a number of training examples: give n_train")
            steps = self.epochs * -(-exercise.n_train // self.batch_size)
        arguments = trial.variant.arguments(length, rotary=not learned)
        if arguments.get("max_length", math.inf) < (longest := _longest(exercise)):
            raise ValueError(
                f"{trial.label} reads at most {arguments['max_length']} rows, fewer than the "
                f"longest test's {longest}"
            )
        job: Job = {
            "learner": exercise.problem.learner,
            "model": {
                "attention": trial.variant.attention,
                "attention_args": arguments or None,
                "n_layer": self.n_layer,
                "n_head": self.n_head,
                "head_dim": exercise.head_dim,
                "mlp": self.mlp,
                "norm": self.norm,
                "n_positions": longest if learned else None,
                "optimizer": self.optimizer,
                "weight_decay": trial.weight_decay,
                "tied": False,
                "min_lr_ratio": self.min_lr_ratio,
            },
            "data": {
                **exercise.problem.to_json(),
                "n_train": exercise.n_train,
                "n_val": self.n_val,
                "n_test": self.n_test,
                "batch_size": self.batch_size,
                "train_seed": trial.seed,
            },
            "seed": trial.seed,
            "lr": trial.lr,
            "steps": steps,
            "val_steps": min(self.val_steps, steps),
            "stop_when": {"metric": "val_accuracy", "above": self.stop_at},
        }
        if self.init == "published":
            if job["learner"] != "problem":
                raise ValueError(f"init published has no form for {exercise.problem.name}")
            job["learner"], job["model"]["tied"] = "problem_published", True
        if trial.warm:
            job["sharpen_when"] = {"metric": "val_accuracy", "above": self.warm_up}
        if changes := self.training.changes():
            job["training"] = changes
        return job


def _longest(exercise: Exercise) -> int:
    return max(each.seq_len for each in (exercise.problem, *exercise.tests.values()))
