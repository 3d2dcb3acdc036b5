"""The cells of few_labels: the entropy of a backbone, and a whole run at a tiny size."""

import pytest
import torch

from attention import metrics
from benchmarks.__main__ import main
from benchmarks.few_labels.cells import row_entropies
from benchmarks.training import BEST, CHECKPOINT
from tests.benchmarks.runs import finished
from worldmodel.data.orbits import OrbitData
from worldmodel.maps import weights_on
from worldmodel.models.load import load_model
from worldmodel.models.orbit import NextTokenModel
from worldmodel.training.callbacks import sharpened

FLAGS = (
    *("--seeds", "0", "--attention", "lssar", "--reweighting", "with,without"),
    *("--baselines", "log-linear filter"),
)


def test_entropies_are_those_of_the_rows_that_are_asked():
    model = NextTokenModel(attention="lssar", attention_args={"p": 15.0}, head_dim=8).eval()
    batch = next(iter(OrbitData(population="force", n_val=3).val_dataloader()))
    found = row_entropies(model, batch)
    assert list(found) == ["block 1", "block 1, star", "block 2", "block 2, star"]
    asked = torch.arange(25, 49, 2)  # the planet's rows of the second half
    for number, rows in ((0, asked), (1, asked), (0, asked + 1)):
        each = [
            metrics.row_entropy(weights_on(model, number, one)[..., rows, :]).mean()
            for one in ({name: x[i : i + 1] for name, x in batch.items()} for i in range(3))
        ]
        name = f"block {number + 1}{', star' if rows[0] != 25 else ''}"
        assert found[name] == pytest.approx(float(torch.stack(each).mean()), rel=1e-5)


@pytest.fixture
def tiny(tiny_run):
    return tiny_run("few_labels", *FLAGS, "--label-sets", "0,3")


@pytest.mark.full
def test_a_model_is_asked_where_validation_was_best_and_at_the_end(tiny):
    results = finished(tiny)
    tuned = [x for x in results if x.case.kind == "forces" and x.case.arm != "control"]
    assert len(tuned) == 2 * 2 * 2
    for result in tuned:
        last = result.case.get("asked") == "last"
        path = tiny / "cells" / result.cell / (CHECKPOINT if last else BEST)
        assert result.value("step") == (20 if last else torch.load(path)["global_step"])
        assert {"r2_log", "r2_log_train", "rms_log_error", "times_ceiling"} <= set(result.metrics)
        assert sharpened(load_model(path)) == (result.case.arm == "with")


@pytest.mark.full
def test_a_run_ends_in_a_report_and_lends_its_backbone(tiny, tiny_run, capsys):
    main(["report", str(tiny)])
    text = (tiny / "report.md").read_text()
    assert "lssar p=15, rate 0.003, 20 steps: 1 of 1 backbones fail" in text
    assert "log-linear filter" in text
    assert (tiny / "figures" / "backbones.png").is_file()
    capsys.readouterr()
    tiny_run("few_labels", *FLAGS, "--lrs", "0.001", "--label-sets", "0", "--reuse", str(tiny))
    # The backbone, its entropy, the ceiling and a baseline; the two fine-tunings are new.
    assert "4 of 6 cells are taken" in capsys.readouterr().out
