"""Learned offsets: what is compared between layers, who is asked, and the smallest run."""

import statistics

import numpy as np
import pytest
import torch

from attention.layer import Attention
from attention.positions import alibi_slopes
from benchmarks.coverage.entries import load
from benchmarks.coverage.judge import claim_outcomes
from benchmarks.language import learned_offsets_cells as cells
from benchmarks.language.learned_offsets import STUDY
from benchmarks.language.learned_offsets_figure import figures
from orbits.runs import study
from orbits.runs.executors import Execution
from orbits.runs.result import Case, Result
from tests.benchmarks.runs import finished
from worldmodel.models import optim

CONTEXT, HEADS = 64, 4


@pytest.mark.parametrize(
    ("n_layer", "middle", "upper"),
    [(3, [1], [2]), (4, [1], [2, 3]), (5, [1, 2], [3, 4]), (24, [*range(1, 12)], [*range(12, 24)])],
)
def test_layers_fall_into_the_papers_groups(n_layer, middle, upper):
    found = {name: list(members) for name, members in cells.groups(n_layer).items()}
    assert found == {
        "first layer": [0],
        "middle layers": middle,
        "upper layers": upper,
        "all layers": list(range(n_layer)),
    }


def test_a_summary_is_what_its_names_say():
    draw = np.random.default_rng(0)
    tau, bias = draw.normal(size=HEADS), draw.normal(size=(HEADS, CONTEXT))
    found = {name: metric.value for name, metric in cells.summary(tau, bias).items()}
    assert found["tau"] == pytest.approx(statistics.fmean(tau))
    assert found["tau_spread"] == pytest.approx(statistics.pstdev(tau))
    slopes = [np.polyfit(range(CONTEXT), head, 1)[0] for head in bias]
    assert found["slope"] == pytest.approx(63 * statistics.fmean(slopes))
    dips = [statistics.fmean(head[2:11]) - statistics.fmean(head[11:]) for head in bias]
    assert found["dip"] == pytest.approx(statistics.fmean(dips))
    near, far = (
        statistics.fmean(np.polyfit(range(len(part[0])), head, 1)[0] for head in part)
        for part in (bias[:, :20], bias[:, 20:])
    )
    assert found["bend"] == pytest.approx(20 * (near - far))


def test_what_is_beyond_twenty_tokens_is_read_where_there_are_a_hundred():
    assert "far" not in cells.summary(bias=np.zeros((HEADS, 100)))
    rising = np.minimum(np.arange(128), 60) * 0.5  # flat from 60 on
    assert cells.summary(bias=rising[None, :20].repeat(2, 0)).keys() == {"slope", "dip"}
    far = cells.summary(bias=rising[None])["far"].value
    assert far == pytest.approx(80 * np.polyfit(range(81), rising[20:101], 1)[0])


def test_alibi_has_its_slopes_and_a_level_changes_nothing():
    slopes = np.asarray(alibi_slopes(HEADS)).reshape(HEADS, 1)
    alibi = slopes * np.arange(CONTEXT)
    found, moved = (cells.summary(bias=x) for x in (alibi, alibi + 7 * slopes))
    assert found["slope"].value == pytest.approx(63 * slopes.mean())
    assert found["dip"].value < 0  # near ones are penalised less
    assert found["bend"].value == pytest.approx(0, abs=1e-12)  # as of any straight line
    for name, metric in found.items():
        assert moved[name].value == pytest.approx(metric.value, abs=1e-12)


def test_the_start_is_that_of_a_new_layer():
    layer = Attention("lazy", HEADS, 8)
    numbers = cells._numbers(layer, CONTEXT)
    assert numbers["bias"].shape == (HEADS, CONTEXT)
    assert cells._started(layer, CONTEXT) == cells.summary(**numbers)
    assert set(cells._started(Attention("elastic", HEADS, 8), CONTEXT)) == {"tau", "tau_spread"}


def test_the_reach_is_the_sum_of_the_schedules_rates(monkeypatch, tmp_path):
    known = {"lr": 0.1, "warmup_steps": 3, "min_lr_ratio": 0.2}
    monkeypatch.setattr(cells, "read_checkpoint", lambda path: {"global_step": 7})
    found = cells._reach(cells.TextCheckpoint(tmp_path, known, {"seq_len": 8}))
    module = torch.nn.Linear(2, 2)
    optimizer, schedule = optim.configure(
        module, "adamw", lr=0.1, weight_decay=0.0, warmup_steps=3, total_steps=7, min_lr_ratio=0.2
    )
    rates = []
    for _ in range(7):
        rates.append(schedule.get_last_lr()[0])
        optimizer.step()
        schedule.step()
    assert found == pytest.approx(sum(rates))


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"attention": ["softmax"]}, "softmax learns neither an offset nor a distance bias"),
        ({"attention": ["zeros"]}, "zeros learns neither an offset nor a distance bias"),
        ({"n_layer": 2}, "n_layer must be at least 3"),
        ({"seq_len": 11}, "lazy has a context of 11; distances up to 10 are compared"),
    ],
)
def test_what_cannot_be_read_is_refused_before_training(changes, words):
    with pytest.raises(ValueError, match=words):
        STUDY.cells(STUDY.settings("tiny", **changes))


def group(name, seed, **values):
    setting = {"layer": None, "of": "lazy"}
    case = Case("learned_offsets", "measurement", f"lazy, {name}", seed=seed, setting=setting)
    return Result(case, metrics=cells.summary() | {n: cells.Metric(v) for n, v in values.items()})


@pytest.mark.parametrize(("first", "outcome"), [(1.5, "same direction"), (0.5, "contradicted")])
def test_the_papers_first_layer_is_judged(first, outcome):
    results = [
        group(name, seed, tau=tau + 0.01 * seed**2 * tau)
        for seed in range(3)
        for name, tau in (("first layer", first), ("middle layers", 1.0))
    ]
    claims = load()["Lazy Attention, Figure 5"].claims
    (claim,) = (x for x in claims if x.metric == "tau")
    assert set(claim_outcomes(claim, results).values()) == {outcome}


@pytest.mark.full
def test_the_smallest_run_ends_in_a_report(tmp_path):
    settings = STUDY.settings("tiny", attention=["lazy", "elastic"])
    study.run(STUDY, settings, tmp_path / "out", Execution("here"), preset="tiny")
    results = finished(tmp_path / "out")
    kept = [x for x in results if x.case.variant == "lazy" and x.case.get("layer") == 3]
    assert [np.shape(x.details["bias"]) for x in kept] == [(2, 16)]
    assert [np.shape(x.details["tau"]) for x in kept] == [(2,)]
    assert "report:" in study.report(STUDY, tmp_path / "out")
    text = (tmp_path / "out" / "report.md").read_text()
    assert "lazy, middle layers" in text
    assert "elastic, as started" in text
    drawn = {path.name for each in figures(results, tmp_path) for path in each.images}
    assert drawn == {"offsets_lazy.png", "biases_lazy.png", "offsets_elastic.png"}
