"""Models that start as zoology's, and the sweep that asks for them."""

import math

import pytest
import torch
from torch import nn

from benchmarks import learners
from benchmarks.recall.mqar import Recall
from benchmarks.recall.published_start import DEVIATION, PublishedStart
from benchmarks.recall.sweep import Trial
from benchmarks.variants import Variant


def job(**changes):
    settings = Recall(vocab_size=64, n_layer=4, **changes)
    (exercise, *_) = settings.exercises()
    return settings.job(Trial(Variant("softmax"), False, 0, 1e-3, 0.1), exercise)


def test_weights_are_small_and_the_head_is_the_embedding():
    torch.manual_seed(0)
    model = learners.build(job(init="published", positions="learned"))
    assert isinstance(model, PublishedStart)
    assert model.head is None
    block = model.gpt.blocks[0].attention
    for weight, wanted in (
        (model.embedding.weight, DEVIATION),
        (model.positions.weight, DEVIATION),
        (block.query.weight, DEVIATION),
        (block.project.weight, DEVIATION / math.sqrt(8)),
    ):
        assert weight.std().item() == pytest.approx(wanted, rel=0.05)
    tokens = torch.arange(8)[None]
    row = model.embedded(tokens)[0, 3]
    torch.testing.assert_close(row, model.embedding.weight[3] + model.positions.weight[3])


def test_biases_are_0():
    job_of = Recall(vocab_size=64, init="published").job
    (exercise, *_) = Recall(vocab_size=64).exercises()
    model = learners.build(job_of(Trial(Variant("hawk"), False, 0, 1e-3, 0.1), exercise))
    biases = [x.bias for x in model.modules() if isinstance(x, nn.Linear) and x.bias is not None]
    assert biases
    assert not any(x.any() for x in biases)


def test_other_jobs_are_as_they_were():
    plain = job()
    assert plain["learner"] == "problem"
    assert plain["model"]["tied"] is False
    changed = job(init="published")
    assert changed["model"] == {**plain["model"], "tied": True}
    assert {**changed, "learner": "problem", "model": plain["model"]} == plain
