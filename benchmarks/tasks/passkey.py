"""Passkey retrieval: a number hidden in filler, asked for at the end.

LSSAR (2026), Figures 2 and A3, with the prompt of Mohtashami and Jaggi (2023). Tiny language
models answer no such prompt, so there are two forms: ``trained`` trains a byte model on a short
form (:class:`benchmarks.problems.passkey.Passkey`) and tests it at longer ones; ``asked`` asks
language models for the number in the long prompt, at exact numbers of tokens.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar

from benchmarks.presets import Training
from benchmarks.task import Line, Measured, Metric, Settings, Table, Task
from benchmarks.tasks import _language_model as language_model
from benchmarks.tasks._asked import Model, models_of, training_cells
from benchmarks.tasks._language_model import LanguageModels
from benchmarks.tasks._solve import Problems, answers, best, trained
from benchmarks.tasks.extrapolation import PRESETS as LANGUAGE_MODELS
from benchmarks.views import curves, interval_table
from symreg.cells import Cell, Compute, Progress

MULTIPLES = (1, 1.5, 2, 3, 4, 8, 16)
TRAINED, ASKED = "trained", "asked"


@dataclass(frozen=True)
class ShortForm(Problems):
    """Models that are trained on the short form.

    Attributes:
        seq_len: Bytes of a training example.
        n_digits: Digits of the key.
    """

    not_flags: ClassVar = ("attentions", "exponents", "seeds", "n_test")  # of both forms
    seq_len: int = 96
    n_digits: int = 3

    def __post_init__(self) -> None:
        super().__post_init__()
        from benchmarks.problems.passkey import Passkey

        Passkey(self.seq_len, self.n_digits)  # refuses a key that does not fit


@dataclass(frozen=True)
class LongForm(LanguageModels):
    """Language models that are asked the long form."""

    not_flags: ClassVar = ("attentions", "exponents", "seeds")


@dataclass(frozen=True)
class Passkeys(Settings):
    """Models, the lengths they are asked at, and the form of the question.

    Attributes:
        form: ``trained`` or ``asked``: which of the two groups of settings below counts.
        multiples: Lengths as multiples of the training length.
        n_trials: Prompts at each length.
        attentions: Attention variants, linear mixers and the papers' ablations of both.
        exponents: The p of every re-weighted variant, one row each.
        seeds: Model seeds.
        trained: Models of the short form.
        asked: Models of the long one.
    """

    form: str = TRAINED
    multiples: tuple[float, ...] = MULTIPLES
    n_trials: int = 100
    attentions: tuple[str, ...] = ("softmax", "lssa", "lssar")
    exponents: tuple[float, ...] = (15.0,)
    seeds: tuple[int, ...] = (0, 1, 2)
    trained: ShortForm = field(default_factory=lambda: ShortForm(preset="", about=""))
    asked: LongForm = field(default_factory=lambda: LongForm(preset="", about=""))

    def __post_init__(self) -> None:
        if self.form not in (TRAINED, ASKED):
            raise ValueError(f"form must be {TRAINED} or {ASKED}, got {self.form!r}")
        self.check_not_empty("multiples")
        self.check({"n_trials": 1})
        for multiple in self.multiples:
            if multiple not in MULTIPLES:
                raise ValueError(f"multiples must be among {MULTIPLES}, got {multiple}")
        object.__setattr__(self, "multiples", tuple(map(float, self.multiples)))

    def models(self) -> ShortForm | LongForm:
        """Return the models of the chosen form."""
        shared: dict[str, Any] = {
            name: getattr(self, name) for name in ("attentions", "exponents", "seeds")
        }
        if self.form == TRAINED:
            return replace(self.trained, n_test=self.n_trials, **shared)
        return replace(self.asked, **shared)

    def check_given(self, preset: Any) -> None:
        """Refuse changes of the form that is not chosen, and of what is not trained."""
        other = ASKED if self.form == TRAINED else TRAINED
        if getattr(self, other) != getattr(preset, other):
            raise ValueError(f"with form {self.form!r}, --{other}. changes nothing: leave it")
        super().check_given(preset)
        getattr(self, self.form).check_given(getattr(preset, self.form))

    def trainings(self) -> list[Training]:
        """Return how the models of the chosen form are trained."""
        return self.models().trainings()


def _long_form(preset: str, **changes: Any) -> LongForm:
    """Return the language models of extrapolation's preset."""
    return LongForm(**{**LANGUAGE_MODELS[preset].shared(), **changes})


SMALL = Passkeys(
    preset="small",
    about="trained form, 3 digits in 96 bytes, width 64",
    trained=ShortForm(
        preset="small", about="", warm_up=0.0, n_head=2, head_dim=32, mlp="gelu", steps=600,
        lrs=(3e-3,), val_steps=100, batch_size=32,
    ),
    asked=_long_form("small", seq_len=256),
)  # fmt: skip
PRESETS = {
    "tiny": replace(
        SMALL, preset="tiny", about="smoke test, a minute of CPU; no claims",
        attentions=("softmax",), seeds=(0,), multiples=(1, 2), n_trials=4,
        trained=replace(
            SMALL.trained, seq_len=64, steps=20, val_steps=10, n_val=32, head_dim=8
        ),
        asked=_long_form("tiny", seq_len=256, steps=5),
    ),
    "small": SMALL,
    "gpu": replace(
        SMALL, preset="gpu", about="trained form, 5 digits in 256 bytes, 4 layers of 256; one GPU",
        trained=replace(
            SMALL.trained, seq_len=256, n_digits=5, n_layer=4, n_head=4, head_dim=64,
            steps=10_000, lrs=(1e-3,), batch_size=128, training=Training(accelerator="cuda"),
        ),
        asked=_long_form("gpu"),
    ),
    "paper": replace(
        SMALL, preset="paper", about="the prompt to GPT-2 124M of extrapolation's; never run",
        form=ASKED, multiples=(1, 1.5, 2, 3, 4, 8), asked=_long_form("paper"),
    ),
}  # fmt: skip
METRICS = {
    **{
        f"acc@{m:g}x": Metric("higher", "%", f"whole keys that are right at {m:g}x the length")
        for m in MULTIPLES
    },
    "val_accuracy": Metric("higher", "%", "digits that are right on validation examples"),
    "steps": Metric("lower", "steps", "training steps until the accuracy that stops, or all"),
    "reweighted": Metric("none", "share", "1 if re-weighting was on in the end, 0 if never"),
}


class PasskeyTask(Task):
    """Passkey retrieval."""

    name = "passkey"
    version = 3
    about = "Does a model find a number in filler, beyond the length it was trained on?"
    metrics = METRICS
    presets = PRESETS
    published = ("passkey",)

    def cells(self, settings: Passkeys) -> list[Cell]:
        """Return trainings with their tests, or language models and questions to them."""
        from benchmarks.problems.passkey import MAX_NEW_TOKENS, prompts
        from worldmodel.tokenizer import load_tokenizer

        models, multiples = settings.models(), list(settings.multiples)
        if isinstance(models, ShortForm):
            problem = {"seq_len": models.seq_len, "n_digits": models.n_digits}
            cells = []
            for trial in models.trials():
                config = models.training_config(trial, "passkey", problem, models.seq_len)
                row = {**trial.row, "form": TRAINED}
                full = self.measurement(row, trial.seed, {**config, "multiples": multiples})
                cells.append(Cell(TRAINED, full, label=trial.label))
            return cells
        found, questions = models_of(models), []
        for model in found:
            tokenizer = load_tokenizer(model.tokenizer)
            for multiple in multiples:
                length = int(multiple * model.context)
                model.check_length(length + MAX_NEW_TOKENS - 1)  # the last one is not read
                prompts(tokenizer, length, settings.n_trials)  # refuses
            how = {"multiples": multiples, "n_trials": settings.n_trials}
            label = f"ask {model.label}, seed {model.seed}"
            questions.append(model.question(self, ASKED, {"form": ASKED}, how, label))
        return [*training_cells(found), *questions]

    def compute(self) -> Mapping[str, Compute]:
        """Return how models are trained and asked."""
        return {
            "language_model": language_model.train,
            TRAINED: self.trained,
            ASKED: self.asked,
        }

    def trained(
        self, config: dict[str, Any], folder: Path, needs: dict[str, Path], progress: Progress
    ) -> dict[str, Any]:
        """Train a model on the short form and test it at every length."""
        from benchmarks.problem_data import ProblemData
        from benchmarks.problems import whole_by_row
        from worldmodel.extrapolate import at_length

        def measure(model: Any, data: ProblemData) -> dict[str, Measured]:
            found, known = {}, data.hparams["problem_args"]
            for multiple in config["multiples"]:
                length = {"seq_len": int(multiple * known["seq_len"])}
                longer = ProblemData(**{**config["data"], "problem_args": {**known, **length}})
                with at_length(model, length["seq_len"], None):
                    _, given, targets = answers(model, longer, data.hparams["n_test"])
                whole = 100 * whole_by_row(given, targets)
                found[f"acc@{multiple:g}x"] = Measured.mean(whole)
            return found

        return trained(self, config, folder, progress, measure)

    def asked(
        self, config: dict[str, Any], folder: Path, needs: dict[str, Path], progress: Progress
    ) -> dict[str, Any]:
        """Ask a language model for the number in prompts of exact lengths."""
        from benchmarks.problems.passkey import MAX_NEW_TOKENS, is_right, prompts
        from benchmarks.text_scorer import Prompt, TextScorer
        from worldmodel.extrapolate import at_length

        model = Model.needed(needs, config)
        task, metrics = model.load(), {}
        for done, multiple in enumerate(config["multiples"], 1):
            length = int(multiple * model.context)
            trials = prompts(task.tokenizer, length, config["n_trials"], config["seed"] or 0)
            questions = [
                Prompt(tuple(map(int, task.tokenizer.encode(trial.text))), MAX_NEW_TOKENS)
                for trial in trials
            ]
            with at_length(task, length, None):
                answers = TextScorer(task, length).generate(questions)
            right = [
                100.0 * is_right(answer, trial.key)
                for answer, trial in zip(answers, trials, strict=True)
            ]
            metrics[f"acc@{multiple:g}x"] = Measured.mean(right)
            progress(done, len(config["multiples"]))
        return model.line(self, config, metrics)

    def tables(self, lines: Sequence[Line]) -> list[Table]:
        """Return accuracies by length."""
        title = "Whole keys that are right, %, by multiple of the training length"
        return [interval_table(title, _chosen(lines), ("model", "form"), self.metrics)]

    def ours(
        self, lines: Sequence[Line], table: str = ""
    ) -> dict[str, dict[int, dict[str, float]]]:
        """Return what language models answered: the trained form is another question."""
        return super().ours([line for line in lines if line["row"]["form"] == ASKED])

    def draw(self, lines: Sequence[Line], folder: Path) -> dict[str, Path]:
        """Draw accuracy against length."""
        caption = "Whole keys that are right against length: means, bars over all seeds."
        path = folder / "accuracy.png"
        axes = ("length / training length", "right keys, %")
        return {caption: curves(_chosen(lines), "acc@", path, *axes)}


def _chosen(lines: Sequence[Line]) -> list[Line]:
    swept = [line for line in lines if line["row"]["form"] == TRAINED]
    return [*best(swept), *(line for line in lines if line["row"]["form"] == ASKED)]


TASK = PasskeyTask()
