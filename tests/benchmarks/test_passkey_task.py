"""The asked form of the pass-key task: what counts as an answer, and how long prompts are."""

import re

import torch

from benchmarks.problems.passkey import MAX_NEW_TOKENS
from benchmarks.tasks import passkey
from benchmarks.tasks._asked import Model
from benchmarks.text_scorer import TextScorer
from worldmodel.text_task import TextTask


def test_language_models_are_asked_at_exact_lengths(tmp_path, monkeypatch):
    torch.manual_seed(0)
    task = TextTask(n_layer=1, n_head=1, head_dim=4).eval()
    asked = []

    def reader(scorer, prompts):
        """Find the key in every second prompt of 512 tokens, and in none that is longer."""
        asked.extend(prompts)
        texts = [bytes(prompt.tokens).decode() for prompt in prompts]
        keys = [re.search(r"The pass key is (\d+)\.", text).group(1) for text in texts]
        knows = len(texts[0]) == 512
        return [f" {key}." if knows and n % 2 else " 0." for n, key in enumerate(keys)]

    monkeypatch.setattr(
        Model, "needed", lambda needs, config: Model(tmp_path, {}, {"seq_len": 512})
    )
    monkeypatch.setattr(Model, "load", lambda model: task)
    monkeypatch.setattr(Model, "line", lambda model, task, config, metrics: metrics)
    monkeypatch.setattr(TextScorer, "generate", reader)
    config = {"multiples": [1.0, 1.5], "n_trials": 10, "seed": 0}
    found = passkey.TASK.asked(config, tmp_path, {"model": tmp_path}, lambda done, n: None)
    assert {name: value.value for name, value in found.items()} == {"acc@1x": 50, "acc@1.5x": 0}
    assert [len(prompt.tokens) for prompt in asked] == [512] * 10 + [768] * 10
    assert {prompt.max_new_tokens for prompt in asked} == {MAX_NEW_TOKENS}
