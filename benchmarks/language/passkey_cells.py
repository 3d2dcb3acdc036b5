"""The cells of passkey retrieval: trainings, and the answers of each model at every length."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from benchmarks.language.checkpoints import TextCheckpoint
from benchmarks.language.models import models_of, training_cells
from benchmarks.language.passkey import Passkeys, PasskeyStudy
from benchmarks.language.passkey_prompts import MAX_NEW_TOKENS, is_right, prompts
from benchmarks.language.scorer import Prompt, TextScorer
from orbits.runs.cell import Cell, Outcome, Progress
from orbits.runs.result import Metric
from worldmodel.extrapolate import at_length
from worldmodel.text.tokenizers import load_tokenizer


def cells(study: PasskeyStudy, settings: Passkeys) -> list[Cell]:
    """Return trainings, and a cell of prompts per model."""
    models, evaluations = models_of(settings), []
    for model in models:
        tokenizer = load_tokenizer(model.tokenizer)
        for multiple in settings.multiples:
            length = int(multiple * model.context)
            model.check_length(length + MAX_NEW_TOKENS - 1)  # the last one is not read
            prompts(tokenizer, length, settings.n_trials)  # refuses
        arguments = {
            "multiples": list(settings.multiples),
            "n_trials": settings.n_trials,
            "seed": model.seed or 0,
        }
        evaluations.append(model.evaluation(study, retrieve, {}, arguments))
    return [*training_cells(models), *evaluations]


def retrieve(
    multiples: Sequence[float], n_trials: int, seed: int, model: Path, progress: Progress
) -> Outcome:
    """Let a language model continue prompts of exact lengths."""
    checkpoint = TextCheckpoint.read(model)
    language_model, metrics = checkpoint.load(), {}
    for done, multiple in enumerate(multiples, 1):
        length = int(multiple * checkpoint.context)
        trials = prompts(language_model.tokenizer, length, n_trials, seed)
        texts = [
            Prompt(tuple(map(int, language_model.tokenizer.encode(trial.text))), MAX_NEW_TOKENS)
            for trial in trials
        ]
        with at_length(language_model, length, None):
            answers = TextScorer(language_model, length).generate(texts)
        right = [
            100.0 * is_right(answer, trial.key)
            for answer, trial in zip(answers, trials, strict=True)
        ]
        metrics[f"acc@{multiple:g}x"] = Metric.mean(right)
        progress(done, len(multiples))
    return checkpoint.outcome(metrics)
