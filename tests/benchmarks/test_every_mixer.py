"""Every mixer, ablation and layer trains in a study of recall, mixers in the flagship too."""

import math

import pytest

from attention import linear
from benchmarks.__main__ import packages
from benchmarks.attention_names import NAMED
from benchmarks.variants import variants
from benchmarks.worker import prepare
from orbits.runs import cell as runner
from orbits.runs import studies, study
from orbits.runs.executors import Execution
from tests.benchmarks.newton.small import cells

pytestmark = pytest.mark.full

NAMES = (*linear.names(), "softmax_tpa", "lssar_tpa", "softmax_dsa8", "lssar_dsa8")


@pytest.mark.parametrize("name", dict.fromkeys((*NAMES, *NAMED)))
def test_mqar_trains_it(name, tmp_path):
    mqar = studies.get(packages(), "mqar")
    few = {"steps": 10, "val_steps": 5, "lrs": [0.003], "warm_up": 0.0}
    settings = mqar.settings("tiny", attention=[name], **few)
    (result,) = study.run(mqar, settings, tmp_path / "out", Execution("here"), preset="tiny")
    (row,) = variants([name])
    assert (result.case.variant, result.status) == (row.label, "ok"), result.error
    # In percent.
    accuracies = [x.value for metric, x in result.metrics.items() if metric.startswith("acc")]
    assert accuracies
    assert all(0 <= accuracy <= 100 for accuracy in accuracies)


@pytest.mark.parametrize("name", NAMES)
def test_the_flagship_trains_it_and_gives_it_a_head(name, tmp_path):
    prepare()
    (tmp_path / "cells").mkdir()
    few = {"pretrain_steps": 2, "finetune_steps": 2, "n_test": 60}
    grid = cells("tiny", attention=(name,), **few)
    asked = ("forces", variants([name])[0].label, "pretrained")
    head = next(c for c in grid if (c.case.kind, c.case.variant, c.case.arm) == asked)
    for cell in (*head.needs.values(), head):
        runner.compute(cell, tmp_path)
        for result in cell.results(tmp_path):
            assert result.status == "ok", result.error
            assert all(math.isfinite(x.value) for x in result.metrics.values())
