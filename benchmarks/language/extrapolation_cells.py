"""The cells of length extrapolation: trainings, and the losses of each model at every length."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.language import texts
from benchmarks.language.checkpoints import TextCheckpoint
from benchmarks.language.extrapolation import Extrapolation, ExtrapolationStudy
from benchmarks.language.models import check_text, models_of, training_cells
from orbits.runs import artefact
from orbits.runs.cell import Cell, Outcome, Progress
from orbits.runs.manifest import manifest
from orbits.runs.result import Metric
from worldmodel import extrapolate

POSITIONS = "positions.npz"


def cells(study: ExtrapolationStudy, settings: Extrapolation) -> list[Cell]:
    """Return trainings, then an evaluation of each with dynamic NTK off and, if any, on."""
    models, longest = models_of(settings), max(settings.multiples)
    arguments: dict[str, Any] = {
        "multiples": list(settings.multiples),
        "tail": settings.tail,
        "eval_tokens": settings.eval_tokens,
    }
    if text := settings.eval_text():
        arguments["text"] = text
    evaluations = []
    for model in models:
        settings.check_lengths(model.context)
        model.check_length(longest * model.context)
        for ntk in study.ntk if model.stretches else (False,):
            setting = {"ntk": ntk, "context": model.context}
            how = {**arguments, "ntk": ntk}
            evaluations.append(model.evaluation(study, evaluate_lengths, setting, how))
    check_text(models, longest, settings.eval_tokens, text)
    return [*training_cells(models), *evaluations]


def evaluate_lengths(
    multiples: Sequence[int],
    tail: int,
    eval_tokens: int,
    ntk: bool,
    model: Path,
    folder: Path,
    progress: Progress,
    text: Mapping[str, Any] | None = None,
) -> Outcome:
    """Evaluate a language model at several lengths.

    Args:
        multiples: Lengths as multiples of the training length.
        tail: Last tokens of a window that ``tail`` is the mean of.
        eval_tokens: Tokens of held-out text.
        ntk: Whether rotary positions are stretched by dynamic NTK.
        model: A checkpoint, or the folder of the cell that trained it.
        folder: Folder for the losses by position.
        progress: Told how many lengths are done.
        text: Another text than the model's own, with its checksum.
    """
    checkpoint = TextCheckpoint.read(model)
    language_model, context, scored = checkpoint.load(), checkpoint.context, None
    metrics: dict[str, Metric] = {}
    positions: dict[str, Any] = {}
    short: Any = None
    with texts.skipping():
        if text is not None:
            stream, scored = texts.stream_of_test(language_model.tokenizer, **text)
        for done, multiple in enumerate(multiples, 1):
            length = multiple * context
            if text is None:
                windows = checkpoint.held_out(length, eval_tokens)
            else:
                windows = texts.cut(stream, length, eval_tokens)
            with extrapolate.at_length(language_model, length, context if ntk else None):
                losses = extrapolate.losses(language_model, windows).double().numpy()
            tails = losses[:, -tail:].mean(axis=1)
            metrics[f"loss@{multiple}x"] = loss = Metric.mean(losses.mean(axis=1))
            metrics[f"ppl@{multiple}x"] = loss.exp()
            metrics[f"tail@{multiple}x"] = Metric.mean(tails)
            positions[f"x{multiple}"] = losses.mean(axis=0).astype(np.float32)
            if multiple == 1:
                short = tails
            elif short is not None:
                rise = loss.value - metrics["loss@1x"].value
                metrics[f"rise@{multiple}x"] = Metric(rise, n=loss.n)
                # The same tokens, at the end of a training length: text is not equally hard.
                same = short[multiple - 1 :: multiple][: len(tails)]
                metrics[f"tail_rise@{multiple}x"] = Metric.mean(tails - same)
            progress(done, len(multiples))
    about = manifest({"multiples": list(multiples), "ntk": ntk}, seed=None)
    artefact.save_arrays(folder / POSITIONS, positions, about)
    return checkpoint.outcome(metrics, scored, files={"positions": POSITIONS})
