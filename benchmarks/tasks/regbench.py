"""In-context language learning: strings of a hidden automaton, and what may follow.

Akyürek et al., RegBench (arXiv:2401.12973); ZeroS (2025), Figure 2. The rules are those of
:class:`benchmarks.problems.regbench.RegBench`, which says which traps of the public code it
leaves out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from benchmarks.presets import Training
from benchmarks.task import Line, Measured, Metric, Table, Task, by_seed
from benchmarks.tasks._solve import Problems, answers, best, trained
from benchmarks.views import bars, interval_table
from symreg.cells import Cell, Compute, Progress


@dataclass(frozen=True)
class Languages(Problems):
    """Models, and the strings they read.

    Attributes:
        n_symbols: Symbols of all languages together.
        max_states: Most states of an automaton.
        min_strings: Fewest strings in a row.
        max_strings: Most strings in a row.
        max_length: Most symbols in a string.
        max_edges: Most edges at a state: 3 in the published code, 4 in the paper.
    """

    n_symbols: int = 18
    max_states: int = 12
    min_strings: int = 10
    max_strings: int = 19
    max_length: int = 49
    max_edges: int = 3


PAPER = Languages(
    preset="paper",
    about="5,000 automata, 200 epochs, 8 layers of 512; never run",
    attentions=("softmax", "lssar", "zeros", "linear", "gla", "deltanet", "retnet", "mamba2"),
    warm_up=0.0,
    lrs=(2.5e-4, 5e-4),
    n_layer=8,
    n_head=8,
    mlp="gelu",
    steps=31_250,
    val_steps=1000,
    stop_at=1.0,
    min_lr_ratio=0.1,
    training=Training(accelerator="cuda", warmup_steps=3125),
    batch_size=32,
    n_train=5000,
    n_val=250,
    n_test=1000,
)
SMALL = replace(
    PAPER, preset="small", about="short strings, 1,000 automata, width 64; 6 minutes of CPU",
    min_lr_ratio=0.0, training=Training(),
    attentions=("softmax", "lssa", "lssar"), lrs=(3e-3,), n_layer=2, n_head=2, head_dim=32,
    steps=200, val_steps=100, n_train=1000, n_val=100, n_test=250, min_strings=10, max_strings=10,
    max_length=12,
)  # fmt: skip
PRESETS = {
    "tiny": replace(
        SMALL, preset="tiny", about="smoke test, a minute of CPU; no claims", head_dim=4,
        attentions=("softmax",), seeds=(0,), steps=20, val_steps=10, n_train=50, n_val=20,
        n_test=20, min_strings=3, max_strings=3, max_length=6,
    ),
    "small": SMALL,
    "gpu": replace(
        PAPER, preset="gpu", about="5,000 automata, 4 layers of 256; one GPU",
        n_layer=4, n_head=4, lrs=(5e-4,), steps=10_000,
    ),
    "paper": PAPER,
}  # fmt: skip
METRICS = {
    "dfa_accuracy": Metric("higher", "%", "share of greedy answers that the automaton allows"),
    "accuracy": Metric("higher", "%", "share of greedy answers that are the symbol that came"),
    "val_accuracy": Metric("higher", "%", "the same on validation automata"),
    "steps": Metric("none", "steps", "training steps"),
    "reweighted": Metric("none", "share", "1 if re-weighting was on in the end, 0 if never"),
}


class RegBenchTask(Task):
    """In-context language learning."""

    name = "regbench"
    version = 2
    about = "Does a model infer, from a few strings, which symbols may follow?"
    metrics = METRICS
    presets = PRESETS

    def cells(self, settings: Languages) -> list[Cell]:
        """Return one cell per model and rate and seed, and one of the 3-gram."""
        from benchmarks.problems.regbench import RegBench

        problem = {
            "n_symbols": settings.n_symbols,
            "max_states": settings.max_states,
            "min_strings": settings.min_strings,
            "max_strings": settings.max_strings,
            "max_length": settings.max_length,
            "max_edges": settings.max_edges,
        }
        length = RegBench(**problem).seq_len
        cells = []
        for trial in settings.trials():
            config = settings.training_config(trial, "regbench", problem, length)
            full = self.measurement(trial.row, trial.seed, config)
            cells.append(Cell("infer", full, label=trial.label))
        data = {"problem": "regbench", "problem_args": problem, "n_test": settings.n_test}
        reference = self.measurement({"model": "3-gram"}, None, {"data": data})
        return [*cells, Cell("ngram", reference, label="3-gram")]

    def compute(self) -> Mapping[str, Compute]:
        """Return how models are trained and tested, and how the 3-gram answers."""
        return {"infer": self.infer, "ngram": self.ngram}

    def infer(
        self, config: dict[str, Any], folder: Path, needs: dict[str, Path], progress: Progress
    ) -> dict[str, Any]:
        """Train a model and ask it for the next symbol everywhere."""

        def measure(model: Any, data: Any) -> dict[str, Measured]:
            _, given, _ = answers(model, data, data.hparams["n_test"])
            return _measured(data, given)

        return trained(self, config, folder, progress, measure)

    def ngram(
        self, config: dict[str, Any], folder: Path, needs: dict[str, Path], progress: Progress
    ) -> dict[str, Any]:
        """Let the 3-gram of each row answer: what counting alone can do."""
        import numpy as np

        from benchmarks.problem_data import ProblemData
        from benchmarks.problems.regbench import RegBench, ngram_answers
        from orbits.manifest import manifest

        data = ProblemData(**config["data"])
        assert isinstance(data.problem, RegBench)
        rows = data.problem.examples("test", 0, np.arange(data.hparams["n_test"]))
        metrics = _measured(data, ngram_answers(data.problem, rows.tokens))
        return self.line(config, metrics, manifest=manifest(config, seed=None))

    def tables(self, lines: Sequence[Line]) -> list[Table]:
        """Return accuracies at each row's best learning rate."""
        models, known = _split(lines)
        caption = "Mean over seeds with its 95% interval by Student's t; the 3-gram is not trained."
        chosen = [*best(models), *known]
        title = "At the learning rate with the best validation accuracy, %"
        return [interval_table(title, chosen, ("model", "lr"), self.metrics, caption)]

    def draw(self, lines: Sequence[Line], folder: Path) -> dict[str, Path]:
        """Draw the DFA accuracy of every model beside the 3-gram's."""
        models, counting = _split(lines)
        counted = by_seed(counting, "dfa_accuracy", "model")
        known = next((seeds[None] for seeds in counted.values()), None)  # type: ignore[index]
        found = by_seed(best(models), "dfa_accuracy", "model")
        values = {model: seeds for (model,), seeds in found.items()}
        path = folder / "dfa_accuracy.png"
        caption = "Answers that the automaton allows, beside those of a 3-gram of the row."
        return {caption: bars(values, path, "allowed answers, %", known, "3-gram")}


def _split(lines: Sequence[Line]) -> tuple[list[Line], list[Line]]:
    """Return the lines of models, and that of the 3-gram."""
    models = [line for line in lines if line["row"]["seed"] is not None]
    return models, [line for line in lines if line["row"]["seed"] is None]


def _measured(data: Any, given: Any) -> dict[str, Measured]:
    """Return both accuracies of answers to the test rows."""
    import numpy as np

    from benchmarks.problems import right_by_row
    from benchmarks.problems.regbench import dfa_accuracy

    indices, seed = np.arange(len(given)), data.hparams["seed"]
    targets = data.problem.examples("test", seed, indices).targets
    allowed = 100 * dfa_accuracy(data.problem, "test", seed, indices, given)
    return {
        "dfa_accuracy": Measured(allowed, len(given)),
        "accuracy": Measured.mean(100 * right_by_row(given, targets)),
    }


TASK = RegBenchTask()
