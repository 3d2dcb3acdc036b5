"""Answers to the first examples of a split, and batches that are cut behind what is asked."""

import json

import numpy as np
import pytest
import torch

from benchmarks.__main__ import main
from benchmarks.recall.data import ProblemData
from benchmarks.recall.measures import IGNORE, micro_accuracy
from benchmarks.recall.regbench import RegBench
from benchmarks.recall.solve import answers, distributions
from benchmarks.variants import Variant
from tests.benchmarks.runs import finished
from worldmodel.models.load import load_model
from worldmodel.models.text import TokenModel


class Echo(torch.nn.Module):
    """Answer with the token itself; remember the shapes of the batches."""

    device = torch.device("cpu")

    def __init__(self, vocab_size):
        super().__init__()
        self.vocab_size, self.shapes = vocab_size, []

    def forward(self, batch):
        self.shapes.append(tuple(batch["tokens"].shape))
        return torch.nn.functional.one_hot(batch["tokens"], self.vocab_size).float()


@pytest.mark.parametrize("split", ["val", "test"])
def test_answers_are_of_the_first_examples_in_order(split):
    settings = {"vocab_size": 16, "seq_len": 12, "n_pairs": 2}
    data, model = ProblemData("mqar", settings, eval_batch_size=4, seed=3), Echo(16)
    given = answers(model, data, 10, split)
    assert model.shapes == [(4, 12), (4, 12), (2, 12)]
    expected = data.problem.examples(split, 3, np.arange(10))
    assert np.array_equal(given, expected.tokens), "the likeliest token"


def test_a_batch_of_strings_is_as_long_as_its_longest_row():
    data, model = ProblemData("regbench", eval_batch_size=4), Echo(20)
    given = answers(model, data, 12)
    whole = data.problem.examples("test", 0, np.arange(12))
    lengths = [1 + np.flatnonzero(row != IGNORE)[-1] for row in whole.targets]
    assert [length for _, length in model.shapes] == [max(lengths[i : i + 4]) for i in (0, 4, 8)]
    assert all(length < data.problem.seq_len for _, length in model.shapes)
    for row, length in enumerate(lengths):
        assert np.array_equal(given[row, :length], whole.tokens[row, :length])


def test_distributions_are_those_of_the_answers():
    data = ProblemData("regbench", eval_batch_size=4)
    shares = distributions(Echo(20), data, 6)
    assert shares.shape == (6, data.problem.seq_len, 20)
    given = answers(Echo(20), data, 6)
    asked = data.problem.examples("test", 0, np.arange(6)).targets != IGNORE
    assert np.array_equal(shares.argmax(axis=-1)[asked], given[asked])
    np.testing.assert_allclose(shares[asked].sum(axis=-1), 1)
    np.testing.assert_allclose(shares[asked].max(axis=-1), np.e / (np.e + 19))


@pytest.mark.parametrize(
    "attention", ["softmax", "lssar", "sigmoid_rowlen", "elastic_seqlen", "zeros", "mamba2"]
)
def test_the_cut_changes_neither_losses_nor_accuracies(attention, monkeypatch):
    torch.manual_seed(0)
    problem = {"max_strings": 12, "max_length": 9}
    data = ProblemData("regbench", problem, n_test=6, eval_batch_size=3)
    arguments = Variant(attention).arguments(data.problem.seq_len)
    size = {"n_layer": 2, "n_head": 2, "head_dim": 8}
    model = TokenModel(20, attention=attention, attention_args=arguments, **size).double().eval()

    def evaluate():
        losses = [model._loss(batch) for batch in data.test_dataloader()]
        measured = data.problem.measure(answers(model, data, 6), "test", 0, "")
        return torch.stack(losses), {name: metric.value for name, metric in measured.items()}

    with torch.no_grad():
        losses, accuracies = evaluate()
        monkeypatch.setattr(RegBench, "padded", False)
        padded, same = evaluate()
    assert next(iter(data.test_dataloader()))["tokens"].shape[1] == data.problem.seq_len
    torch.testing.assert_close(losses, padded, rtol=1e-12, atol=1e-12)
    assert accuracies == same


@pytest.mark.full
@pytest.mark.parametrize("steps", [40, 50])
def test_validation_is_of_the_weights_that_are_tested(tmp_path, steps):
    out = tmp_path / "out"
    sizes = ["--steps", str(steps), "--val-steps", "20", "--lrs", "0.01"]
    main(["run", "mqar", "--preset", "tiny", "--out", str(out), "--executor", "here", *sizes])
    (found,) = finished(out)
    (path,) = out.glob("cells/*/last.ckpt")
    job = json.loads((out / "results.jsonl").read_text())["manifest"]["config"]["job"]
    data = ProblemData(**job["data"])
    given = answers(load_model(path).eval(), data, job["data"]["n_val"], "val")
    rows = data.problem.examples("val", job["data"].get("seed", 0), np.arange(len(given)))
    right = 100 * micro_accuracy(given, rows.targets)
    assert found.value("val_accuracy") == pytest.approx(right, abs=1e-3)
