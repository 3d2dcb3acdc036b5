"""SummScreen: summarise the transcript of a television episode, scored by ROUGE-1.

The data are the validation episodes of SCROLLS (Shaham et al. 2022; its test summaries are
secret). The prompt, the end at a line break, the best of several references and ROUGE without
stemming are those of ``scrolls_summscreenfd`` in lm-evaluation-harness, whose own task runs a
metric script from the hub. Unlike there, a transcript is cut to fit instead of left to overflow.
"""

from __future__ import annotations

import dataclasses
import json
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.language.scorer import Prompt, TextScorer
from benchmarks.language.zero_shot.catalogue import Scores
from orbits.runs.deferred import deferred
from orbits.runs.result import Metric

hf_hub_download = deferred("huggingface_hub:hf_hub_download")
RougeScorer = deferred("rouge_score.rouge_scorer:RougeScorer")
VERSION = 1
REPOSITORY, ARCHIVE = "tau/scrolls", "summ_screen_fd.zip"
MEMBER = "summ_screen_fd/validation.jsonl"
COLUMNS = ("id", "pid", "input", "output")
QUESTION = "\n\nQuestion: What is a summary of the preceding text?\nAnswer:"
MAX_LENGTH = 2048
"""Most tokens of a prompt and its summary (LSSAR, Sect. 3.3: up to 2K tokens)."""

MAX_NEW_TOKENS = 256


@dataclass(frozen=True)
class Episode:
    """A transcript and its reference summaries."""

    transcript: str
    summaries: tuple[str, ...]


@dataclass(frozen=True)
class Summaries:
    """The scores of a model's summaries of some episodes.

    Attributes:
        rouge1: ROUGE-1 F1 of each episode, a share.
        truncated: Number of transcripts that were cut.
        max_length: Most tokens of a prompt and its summary.
    """

    rouge1: list[float]
    truncated: int
    max_length: int


def read_episodes(path: str | Path | None = None) -> list[Episode]:
    """Return the validation episodes, those with the same id as one.

    Args:
        path: A ``.jsonl`` file with the columns id, pid, input and output; None for the hub's.
    """
    if path is not None:
        return _episodes(Path(path).read_text(encoding="utf-8"), str(path))
    try:
        archive = hf_hub_download(REPOSITORY, ARCHIVE, repo_type="dataset")
    except OSError as error:
        raise ConnectionError(
            f"Couldn't reach {REPOSITORY!r} on the Hub ({type(error).__name__}); give a "
            "validation.jsonl of summ_screen_fd"
        ) from None
    with zipfile.ZipFile(archive) as files:
        return _episodes(files.read(MEMBER).decode(), ARCHIVE)


def rouge1(prediction: str, references: Sequence[str]) -> float:
    """Return the F1 of shared words with the best reference, a share."""
    scorer = RougeScorer(["rouge1"], use_stemmer=False)
    return max(float(scorer.score(known, prediction)["rouge1"].fmeasure) for known in references)


def summarise(scorer: TextScorer, episodes: Sequence[Episode]) -> Summaries:
    """Return the scores of a model's summaries of episodes.

    Args:
        scorer: The model. It reads up to ``MAX_LENGTH`` tokens, or its learned positions if they
            are fewer, whatever its ``max_length``.
        episodes: From :func:`read_episodes`.
    """
    max_length = min(MAX_LENGTH, scorer.n_positions or MAX_LENGTH)
    question = scorer.tokenizer.encode(QUESTION)
    room = max_length - len(question) - MAX_NEW_TOKENS
    if room < 1:
        raise ValueError(
            f"{scorer.n_positions} learned positions leave no room for a transcript beside "
            f"{len(question)} tokens of the question and {MAX_NEW_TOKENS} new ones"
        )
    transcripts = [scorer.tokenizer.encode(episode.transcript) for episode in episodes]
    prompts = [
        Prompt(tuple(np.concatenate([ids[:room], question]).tolist()), MAX_NEW_TOKENS, ("\n",))
        for ids in transcripts
    ]
    scores = [
        rouge1(summary, episode.summaries)
        for summary, episode in zip(scorer.generate(prompts), episodes, strict=True)
    ]
    return Summaries(scores, sum(len(ids) > room for ids in transcripts), max_length)


def evaluate(scorer: TextScorer, episodes: Sequence[Episode]) -> Scores:
    """Return the ROUGE-1 of a model's summaries as that of a zero-shot task."""
    summaries = summarise(scorer, episodes)
    rouge = dataclasses.replace(Metric.mean(summaries.rouge1), direction="higher")
    return Scores(str(VERSION), {"rouge1": rouge}, len(summaries.rouge1), summaries.truncated)


def _episodes(text: str, source: str) -> list[Episode]:
    transcripts: dict[str, str] = {}
    summaries: dict[str, list[str]] = {}
    # Not splitlines, which would break a row at characters that JSON leaves as they are.
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
            identity, _, transcript, summary = (row[column] for column in COLUMNS)
        except (json.JSONDecodeError, KeyError, TypeError):
            raise ValueError(
                f"{source}, line {number}: not a JSON object with {', '.join(COLUMNS)}"
            ) from None
        if not (isinstance(transcript, str) and isinstance(summary, str)):
            raise ValueError(f"{source}, line {number}: input and output must be texts")
        transcripts.setdefault(identity, transcript)
        summaries.setdefault(identity, []).append(summary)
    if not transcripts:
        raise ValueError(f"{source}: has no episode")
    return [Episode(transcripts[i], tuple(summaries[i])) for i in transcripts]
