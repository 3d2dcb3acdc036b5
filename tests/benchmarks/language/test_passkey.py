"""Passkey retrieval: right answers, and the lengths of prompts."""

import re

import torch

from benchmarks.language import passkey_cells
from benchmarks.language.checkpoints import TextCheckpoint
from benchmarks.language.passkey_prompts import MAX_NEW_TOKENS
from benchmarks.language.scorer import TextScorer
from worldmodel.models.text import TextModel


def test_language_models_continue_prompts_of_exact_lengths(tmp_path, monkeypatch):
    torch.manual_seed(0)
    task = TextModel(n_layer=1, n_head=1, head_dim=4).eval()
    given = []

    def reader(scorer, prompts):
        """Find the key in every second prompt of 512 tokens, and in none that is longer."""
        given.extend(prompts)
        texts = [bytes(prompt.tokens).decode() for prompt in prompts]
        keys = [re.search(r"The pass key is (\d+)\.", text).group(1) for text in texts]
        knows = len(texts[0]) == 512
        return [f" {key}." if knows and n % 2 else " 0." for n, key in enumerate(keys)]

    found = TextCheckpoint(tmp_path, {}, {"seq_len": 512})
    monkeypatch.setattr(TextCheckpoint, "read", lambda path: found)
    monkeypatch.setattr(TextCheckpoint, "load", lambda checkpoint: task)
    monkeypatch.setattr(TextScorer, "generate", reader)
    outcome = passkey_cells.retrieve([1.0, 1.5], 10, 0, tmp_path, lambda done, n: None)
    values = {name: metric.value for name, metric in outcome.metrics.items()}
    assert values == {"acc@1x": 50, "acc@1.5x": 0}
    assert [len(prompt.tokens) for prompt in given] == [512] * 10 + [768] * 10
    assert {prompt.max_new_tokens for prompt in given} == {MAX_NEW_TOKENS}
