"""Studies of several models compare those that were trained apart, and no controls, all at once."""

import importlib

import pytest

from benchmarks.recall.sweep import AFTER
from orbits.runs.result import Case, Metric, Result

TRAINED = ("softmax", "lssa", "zeros", "gla")

STUDIES = {
    "images.images": ("images", {"task": "digits", "lr": 0.1}, "top1"),
    "forecasting.forecasting": ("forecasting", {"series": "a", "horizon": 3, "lr": 0.1}, "mse"),
    "recall.mqar": ("mqar", {"load": "32/4", "width": 64, "lr": 0.1}, "accuracy@32/4"),
    "recall.mad": ("mad", {"problem": "compression", "changed": "baseline"}, "acc@compression"),
    "recall.regbench": ("regbench", {"lr": 0.1}, "dfa_accuracy"),
    "recall.backcopy": ("backcopy", {"triggers": 4, "marker": 0, "chain": 0}, "sink"),
    "language.sink": ("sink", {"text": "natural", "mask_at": None}, "sink"),
    "language.ablations": ("ablations", {"ntk": False}, "loss@1x"),
}
LEFT_OUT = {
    "images.images": ("1-NN", "best possible"),
    "forecasting.forecasting": ("dlinear", "patchtst", "last value", "true law"),
    "recall.mqar": (f"lssar p=15, {AFTER}",),
    "recall.regbench": ("3-gram",),
    "language.sink": ("lssar p=15, off to step 150", "sliding_window"),
}
"""Controls without seeds, other networks, and models that share a training with another."""
WITHOUT_SEED = ("1-NN", "best possible", "last value", "true law", "3-gram")


def results(name, n_seeds=3):
    study, setting, metric = STUDIES[name]
    rows = (*TRAINED, *LEFT_OUT.get(name, ()))
    return [
        Result(
            Case(study, "measurement", row, seed=seed, setting=setting),
            metrics={metric: Metric(10.0 * number + (seed or 0) * (1 + number % 2))},
        )
        for number, row in enumerate(rows)
        for seed in ((None,) if row in WITHOUT_SEED else range(n_seeds))
    ]


@pytest.mark.parametrize("name", STUDIES)
def test_models_are_compared_and_controls_are_not(name):
    study = importlib.import_module(f"benchmarks.{name}").STUDY
    table, (claim,) = study.all_at_once(results(name))
    assert [row[1].text for row in table.rows] == [str(len(TRAINED))]
    assert ": all 4 at once differ (p 0.00" in claim  # (1 / 4!)^2: one order in all seeds
    assert study.all_at_once(results(name, n_seeds=2))[0].rows == []
