"""Multi-query associative recall: several keys are asked of many that were shown.

Arora et al., "Zoology" (ICLR 2024), Figure 2; LSSAR (2026) and ZeroS (2025), Figure 3. The rules
of the problem are those of :class:`benchmarks.problems.mqar.MQAR`. Models are not zoology's: see
``DEVIATIONS``, which reports print.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

from benchmarks.presets import Training
from benchmarks.problems import catalogue
from benchmarks.problems.mqar import FIGURE_2, MIXTURE_TEST, MQAR
from benchmarks.task import Line, Measured, Metric, Table, Task, by_seed
from benchmarks.tasks._solve import Problems, answers, best, trained
from benchmarks.views import bars, interval_table
from symreg.cells import Cell, Compute, Progress


def _problems(settings: Recall) -> Iterator[tuple[str, dict[str, Any], list[tuple[int, int]]]]:
    """Yield each problem to train on, its settings, and the lengths and pairs to test at."""
    vocabulary = {"vocab_size": settings.vocab_size}
    if settings.mixture:
        tests = [(problem.seq_len, problem.n_pairs) for problem, _ in MIXTURE_TEST]
        yield "mqar_mixture", vocabulary, tests
        return
    for length, pairs in zip(settings.seq_lens, settings.n_pairs, strict=True):
        problem = {**vocabulary, "seq_len": length, "n_pairs": pairs}
        yield "mqar", problem, [(length, pairs), *((longer, pairs) for longer in settings.lengths)]


@dataclass(frozen=True)
class Recall(Problems):
    """Models, and how much they must recall.

    Attributes:
        vocab_size: Tokens: keys from the lower half, values from the upper.
        seq_lens: Lengths of the rows, each with the number of pairs at its place in ``n_pairs``.
        n_pairs: Key-value pairs of a row.
        head_dims: Model sizes; with one head, the width.
        lengths: Further lengths that trained models are tested at, with the pairs they know.
        mixture: Train on zoology's later mixture in place of these, and test on its seven lengths
            and loads, which go beyond those of training.
    """

    not_flags: ClassVar = ("head_dim",)  # head_dims
    vocab_size: int = 256
    seq_lens: tuple[int, ...] = (32,)
    n_pairs: tuple[int, ...] = (4,)
    head_dims: tuple[int, ...] = (64,)
    lengths: tuple[int, ...] = (64, 128, 256)
    mixture: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if len(self.seq_lens) != len(self.n_pairs):
            raise ValueError(
                f"n_pairs must have one number for each of seq_lens {self.seq_lens}, got "
                f"{self.n_pairs}"
            )
        for _, problem, tests in _problems(self):
            for length, pairs in tests:
                MQAR(problem["vocab_size"], length, pairs)  # refuses what cannot be


SMALL = Recall(
    preset="small",
    about="256 tokens, 4 pairs in 32, width 64; two rates; 14 minutes of CPU",
    attentions=("softmax", "lssa", "lssar", "linear"),
    exponents=(15.0,),
    lrs=(3e-3, 1e-2),
    steps=800,
)
GPU = replace(
    SMALL, preset="gpu", about="zoology's Figure 2 at widths 64 and 128; one GPU; never run",
    attentions=(
        "softmax", "lssa", "lssar", "zeros", "zeros_sm", "linear", "gla", "deltanet", "mamba2"
    ),
    exponents=(3.0, 15.0), vocab_size=FIGURE_2[0].vocab_size,
    seq_lens=tuple(problem.seq_len for problem in FIGURE_2),
    n_pairs=tuple(problem.n_pairs for problem in FIGURE_2), head_dims=(64, 128),
    lrs=(1e-4, 4.64e-4, 2.15e-3, 1e-2), positions="learned", lengths=(), batch_size=256,
    n_train=100_000, n_val=1000, n_test=3000, steps=10_000, val_steps=250,
    training=Training(accelerator="cuda"),
)  # fmt: skip
PRESETS = {
    "tiny": replace(
        SMALL, preset="tiny", about="smoke test, a minute of CPU; no claims", vocab_size=32,
        seq_lens=(16,), n_pairs=(2,), head_dims=(16,), lengths=(32,), attentions=("softmax",),
        lrs=(3e-3, 1e-2), seeds=(0,), steps=40, val_steps=20, n_val=64, n_test=64,
    ),
    "small": SMALL,
    "gpu": GPU,
    "mixture": replace(
        GPU, preset="mixture", about="zoology's later mixture and loads beyond; one GPU; never run",
        mixture=True, n_train=180_000, epochs=32, lrs=(1e-3, 3.16e-3, 1e-2, 3.16e-2),
    ),
    "paper": replace(
        GPU, preset="paper", about="zoology's Figure 2 in batches of 256; never run",
        head_dims=(64, 128, 256, 512), epochs=100,
    ),
}  # fmt: skip
METRICS = {
    "accuracy": Metric("higher", "%", "share of right answers, by length and pairs"),
    "val_accuracy": Metric("higher", "%", "the same on validation examples"),
    "steps": Metric("lower", "steps", "training steps until the accuracy that stops, or all"),
    "reweighted": Metric("none", "share", "1 if re-weighting was on in the end, 0 if never"),
}

DEVIATIONS = {
    "steps": (
        "not comparable with zoology's, nor are accuracies before the end of training: weights "
        "start with a deviation of 1/sqrt(inputs) here and of 0.02 there, and the head is a matrix "
        "of its own here and tied to the embedding there. Models here learn recall several times "
        "sooner: 320 to 640 steps, where zoology's are at chance after 1,920 (256 tokens, 4 pairs "
        "in 64, width 64)"
    ),
    "dropout": "none here; zoology drops a tenth of embeddings and of attention weights",
    "choice": (
        "learning rate and early stop are chosen by validation rows; zoology's by the test rows"
    ),
    "other variants": (
        "zoology's repeated, compositional, forgetting and continuous recall are not here"
    ),
}


class MQARTask(Task):
    """Multi-query associative recall."""

    name = "mqar"
    version = 2
    about = "Can a mixer look up what it saw: the value of each key that is asked?"
    metrics = METRICS
    presets = PRESETS
    deviations = DEVIATIONS

    def cells(self, settings: Recall) -> list[Cell]:
        """Return one cell per model, size, rate and seed: trained, then tested."""
        cells = []
        for trial in settings.trials():
            for head_dim in settings.head_dims:
                size = replace(settings, head_dim=head_dim)
                for name, problem, tests in _problems(settings):
                    length = catalogue.get(name, **problem).seq_len
                    config = size.training_config(trial, name, problem, length)
                    config["tests"] = tests
                    if settings.mixture:
                        config["data"]["n_train"] = sum(catalogue.get(name, **problem).rows)  # type: ignore[attr-defined]
                    if settings.positions == "learned":
                        longest = max(length, *(other for other, _ in tests))
                        config["model"]["n_positions"] = longest
                    load = "mixture" if settings.mixture else "{}/{}".format(*tests[0])
                    row = {**trial.row, "load": load, "width": settings.n_head * head_dim}
                    full = self.measurement(row, trial.seed, config)
                    cells.append(Cell("recall", full, label=f"{load}, {trial.label}"))
        return cells

    def compute(self) -> Mapping[str, Compute]:
        """Return how a model is trained and tested."""
        return {"recall": self.recall}

    def recall(
        self, config: dict[str, Any], folder: Path, needs: dict[str, Path], progress: Progress
    ) -> dict[str, Any]:
        """Train a model and test it at its length and load, and at others."""
        from benchmarks.problem_data import ProblemData
        from benchmarks.problems import right_by_row
        from worldmodel.extrapolate import at_length

        def measure(model: Any, data: ProblemData) -> dict[str, Measured]:
            found, n = {}, data.hparams["n_test"]
            vocab_size = data.hparams["problem_args"]["vocab_size"]
            for length, pairs in config["tests"]:
                asked = {"vocab_size": vocab_size, "seq_len": length, "n_pairs": pairs}
                other = {"problem": "mqar", "problem_args": asked}
                test = ProblemData(**{**config["data"], **other})
                with at_length(model, length, None):
                    _, given, targets = answers(model, test, n)
                right = 100 * right_by_row(given, targets)
                found[f"accuracy@{length}/{pairs}"] = Measured.mean(right)
            return found

        return trained(self, config, folder, progress, measure)

    def tables(self, lines: Sequence[Line]) -> list[Table]:
        """Return accuracies at each row's best learning rate, and the sweep itself."""
        keys = ("load", "width", "model", "lr", "weight_decay")
        at_best = "At the learning rate with the best validation accuracy"
        names = {name for line in lines for name in line["metrics"]}
        metrics = sorted(names, key=lambda name: ([int(x) for x in re.findall(r"\d+", name)], name))
        return [
            interval_table(f"{at_best}, %", best(lines), keys, metrics),
            interval_table("The sweep", lines, keys, ("val_accuracy", "steps")),
        ]

    def draw(self, lines: Sequence[Line], folder: Path) -> dict[str, Path]:
        """Draw the accuracy of every model at each load it was trained at."""
        paths = {}
        for load, width in dict.fromkeys((x["row"]["load"], x["row"]["width"]) for x in lines):
            chosen = [
                x for x in best(lines) if (x["row"]["load"], x["row"]["width"]) == (load, width)
            ]
            length, pairs = ("64", "4") if load == "mixture" else load.split("/")
            found = by_seed(chosen, f"accuracy@{length}/{pairs}", "model")
            values = {model: seeds for (model,), seeds in found.items()}
            caption = f"Right answers, {pairs} pairs in {length} tokens, width {width}."
            path = folder / f"accuracy_{load.replace('/', '_')}_{width}.png"
            level = 100 / int(pairs)
            paths[caption] = bars(values, path, "right answers, %", level, "a shown value")
        return paths


TASK = MQARTask()
