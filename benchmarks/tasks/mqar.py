"""Multi-query associative recall: several keys are asked of many that were shown.

Arora et al., "Zoology" (ICLR 2024), Figure 2; LSSAR (2026) and ZeroS (2025), Figure 3. The rules
of the problem are those of :class:`benchmarks.problems.mqar.MQAR`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from benchmarks.task import Line, Measured, Metric, Table, Task, by_seed
from benchmarks.tasks._solve import Problems, answers, best, right_by_row, trained
from benchmarks.views import bars, interval_table
from symreg.cells import Cell, Compute, Progress


@dataclass(frozen=True)
class Recall(Problems):
    """Models, and how much they must recall.

    Attributes:
        vocab_size: Tokens: keys from the lower half, values from the upper.
        seq_lens: Lengths of the rows, each with the number of pairs at its place in ``n_pairs``.
        n_pairs: Key-value pairs of a row.
        head_dims: Model sizes; with one head, the width.
        lengths: Further lengths that trained models are tested at, with the pairs they know.
    """

    vocab_size: int = 256
    seq_lens: tuple[int, ...] = (32,)
    n_pairs: tuple[int, ...] = (4,)
    head_dims: tuple[int, ...] = (64,)
    lengths: tuple[int, ...] = (64, 128, 256)

    def __post_init__(self) -> None:
        super().__post_init__()
        if len(self.seq_lens) != len(self.n_pairs):
            raise ValueError(
                f"n_pairs must have one number for each of seq_lens {self.seq_lens}, got "
                f"{self.n_pairs}"
            )
        from benchmarks.problems.mqar import MQAR

        for length, pairs in zip(self.seq_lens, self.n_pairs, strict=True):
            for each in (length, *self.lengths):
                MQAR(self.vocab_size, each, pairs)  # refuses what cannot be


LENGTHS = (32, 64, 128, 256, 512, 1024)
SMALL = Recall(
    preset="small",
    about="256 tokens, 4 pairs in 32, width 64; a sweep of 3 rates, 20 minutes of CPU",
    attentions=("softmax", "lssa", "lssar"),
    exponents=(3.0, 15.0),
)
FIGURE_2 = replace(
    SMALL, preset="gpu", about="zoology's Figure 2 at widths 64 and 128; one GPU, hours",
    vocab_size=8192, seq_lens=(64, 128, 256, 512), n_pairs=(4, 8, 16, 64), head_dims=(64, 128),
    lrs=(1e-4, 4.64e-4, 2.15e-3, 1e-2), positions="learned", lengths=(), batch_size=256,
    n_train=100_000, n_val=1000, n_test=3000, steps=10_000, val_steps=250,
)  # fmt: skip
PRESETS = {
    "tiny": replace(
        SMALL, preset="tiny", about="smoke test, a minute of CPU; no claims", vocab_size=32,
        seq_lens=(16,), n_pairs=(2,), head_dims=(16,), lengths=(32,), attentions=("softmax",),
        lrs=(3e-3, 1e-2), seeds=(0,), steps=40, val_steps=20, n_val=64, n_test=64,
    ),
    "small": SMALL,
    "gpu": FIGURE_2,
    "paper": replace(
        FIGURE_2, preset="paper", about="zoology's Figure 2, up to 100 epochs; never run",
        head_dims=(64, 128, 256, 512), steps=39_000,
    ),
}  # fmt: skip
METRICS = {
    "accuracy": Metric("higher", "%", "share of right answers at the training length"),
    **{
        f"accuracy@{n}": Metric("higher", "%", f"share of right answers in rows of {n}")
        for n in LENGTHS
    },
    "val_accuracy": Metric("higher", "%", "the same on validation examples"),
    "steps": Metric("lower", "steps", "training steps until the accuracy that stops, or all"),
    "reweighted": Metric("none", "share", "1 if re-weighting was on in the end, 0 if never"),
}


class MQARTask(Task):
    """Multi-query associative recall."""

    name = "mqar"
    version = 1
    about = "Can a mixer look up what it saw: the value of each key that is asked?"
    metrics = METRICS
    presets = PRESETS

    def cells(self, settings: Recall) -> list[Cell]:
        """Return one cell per model, size, rate and seed: trained, then tested."""
        cells = []
        for row, variant, warm, seed, lr, decay in settings.models():
            for length, pairs in zip(settings.seq_lens, settings.n_pairs, strict=True):
                for head_dim in settings.head_dims:
                    size = replace(settings, head_dim=head_dim)
                    problem = {
                        "vocab_size": settings.vocab_size,
                        "seq_len": length,
                        "n_pairs": pairs,
                    }
                    config = size.training_config(
                        variant, warm, seed, lr, decay, "mqar", problem, length
                    )
                    config["lengths"] = list(settings.lengths)
                    full = {**row, "seq_len": length, "n_pairs": pairs, "width": head_dim}
                    label = f"{row['model']}, {length}/{pairs}, lr {lr:g}, seed {seed}"
                    cells.append(Cell("recall", self.measurement(full, seed, config), label=label))
        return cells

    def compute(self) -> Mapping[str, Compute]:
        """Return how a model is trained and tested."""
        return {"recall": self.recall}

    def recall(
        self, config: dict[str, Any], folder: Path, needs: dict[str, Path], progress: Progress
    ) -> dict[str, Any]:
        """Train a model and test it at its length and at longer ones."""
        from benchmarks.problem_data import ProblemData
        from worldmodel.extrapolate import at_length

        def measure(model: Any, data: ProblemData) -> dict[str, Measured]:
            found, n = {}, data.hparams["n_test"]
            known = data.hparams["problem_args"]
            for length in (None, *config["lengths"]):
                longer = {} if length is None else {"seq_len": length}
                at = ProblemData(**{**config["data"], "problem_args": {**known, **longer}})
                with at_length(model, at.problem.seq_len, None):
                    _, given, targets = answers(model, at, n)
                name = "accuracy" if length is None else f"accuracy@{length}"
                found[name] = Measured.mean(right_by_row(given, targets))
            return found

        return trained(self, config, folder, progress, measure)

    def tables(self, lines: Sequence[Line]) -> list[Table]:
        """Return accuracies at each row's best learning rate, and the sweep itself."""
        keys = ("seq_len", "n_pairs", "width", "model")
        at_best = "At the learning rate with the best validation accuracy"
        return [
            interval_table(f"{at_best}, %", best(lines), (*keys, "lr"), self.metrics),
            interval_table("The sweep", lines, (*keys, "lr"), ("val_accuracy", "steps")),
        ]

    def draw(self, lines: Sequence[Line], folder: Path) -> dict[str, Path]:
        """Draw the accuracy of every model at each load."""
        paths = {}
        keys = ("seq_len", "n_pairs", "width")
        for load in dict.fromkeys(tuple(x["row"][k] for k in keys) for x in lines):
            chosen = [x for x in best(lines) if tuple(x["row"][k] for k in keys) == load]
            found = by_seed(chosen, "accuracy", "model")
            values = {model: seeds for (model,), seeds in found.items()}
            length, pairs, width = load
            caption = f"Right answers, {pairs} pairs in {length} tokens, width {width}."
            path = folder / f"accuracy_{length}_{pairs}_{width}.png"
            paths[caption] = bars(values, path, "right answers, %", 100 / pairs, "a shown value")
        return paths


TASK = MQARTask()
