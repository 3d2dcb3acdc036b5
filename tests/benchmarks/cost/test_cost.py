"""Time and memory: the steps that are timed, and the published rows that they stand beside."""

from dataclasses import replace

import pytest

from benchmarks.cost import gpt2_step
from benchmarks.cost.cost import STUDY, Costs
from orbits.runs import study
from orbits.runs.result import Case, Metric, Result

SECONDS = {("softmax", "sdpa"): 1.0, ("softmax", "eager"): 2.0, ("zeros", "own"): 0.5}


@pytest.fixture
def timed(monkeypatch):
    """Let a step take the time that is written above; return what was timed."""
    calls = []

    def measure(setting, backend, variant, trained, device):
        calls.append((setting, backend, variant, trained, device))
        seconds = SECONDS[variant, backend] * (3 if trained else 1)
        kept = 10 if trained else 0  # as measured on a CPU: without gradients, nothing
        quantiles = {"seconds_20": seconds, "seconds_80": seconds}
        return {"seconds": seconds, **quantiles, "tokens_per_s": 1024 / seconds, "bytes": kept}

    monkeypatch.setattr(gpt2_step, "timings", measure)
    return calls


def test_tables_show_ratios_to_plain_softmax_in_the_same_round(timed, tmp_path):
    settings = STUDY.settings(attention=["softmax", "zeros"], rounds=[0])
    results = [
        result
        for result in study.run(STUDY, settings, tmp_path / "out", STUDY.execution)
        if result.ok
    ]
    expected = {
        ("small", backend, variant, trained, "cpu")
        for variant, backend in SECONDS
        for trained in (True, False)
    }
    assert set(timed) == expected
    assert len(timed) == len(expected)
    ratios, by_sdpa, _ = STUDY.tables(results)
    assert STUDY.figures(results, tmp_path)
    rows = [[value.text for value in row] for row in ratios.rows]
    assert ["small", "train", "own", "zeros", "0.250", "1.000"] in rows
    assert ["small", "evaluation", "sdpa", "softmax", "0.500", ""] in rows
    rows = [[value.text for value in row] for row in by_sdpa.rows]
    assert ["small", "train", "own", "zeros", "0.500", "1.000"] in rows
    assert ["small", "train", "eager", "softmax", "2.000", "1.000"] in rows
    assert ["small", "evaluation", "own", "zeros", "0.500", ""] in rows, "no memory, no ratio"
    assert STUDY.sentences(results) == [
        "A training step at size small, in units of fused softmax's (SDPA), one round: plain "
        "PyTorch: softmax 2.00; its own form: zeros 0.50."
    ]
    again = [replace(x, case=replace(x.case, seed=1)) for x in results]
    assert STUDY.sentences([*results, *again]) == [], "two rounds are neither one nor three"
    assert STUDY.ours(results, "zeros_table_7") == {}, "a small block is not GPT-2"


def result(variant, backend, setting, memory=2**30):
    metrics = {"latency": 2.0, "throughput": 512.0, "memory": float(memory)}
    place = {"setting": setting, "mode": "evaluation", "backend": backend}
    case = Case("cost", "measurement", variant, seed=0, setting=place)
    return Result(case, metrics={name: Metric(value) for name, value in metrics.items()})


def test_rows_stand_beside_those_of_the_papers_in_their_units():
    pairs = [
        ("softmax", "sdpa"), ("softmax", "eager"), ("softmax", "triton"),
        ("lssar p=15", "eager"), ("lssar p=15", "triton"), ("zeros", "own"),
    ]  # fmt: skip
    results = [result(*pair, setting) for pair in pairs for setting in ("lssar-a7", "zeros-7")]
    found = STUDY.ours(results, "zeros_table_7")
    assert set(found) == {"softmax", "softmax_naive", "lssar p=15", "zeros"}
    assert found["zeros"][0] == {
        "latency@forward": 2.0, "throughput@forward": 512.0, "memory@forward": 1.0,
    }  # fmt: skip
    found = STUDY.ours(results, "lssar_table_a7")
    assert set(found) == {"softmax", "lssar p=15", "zeros"}
    assert found["softmax"][0]["latency@eval"] == 2000.0
    assert found["softmax"][0]["memory@eval"] == 1024.0


def test_kilobytes_of_memory_are_no_difference_to_a_table_of_gigabytes():
    found = STUDY.ours([result("linear", "own", "zeros-7", 2**30 - 6000)], "zeros_table_7")
    assert found["linear"][0]["memory@forward"] == 1.0


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"attention": ()}, "attention must not be empty"),
        ({"attention": ("lssa",)}, "attention must name softmax"),
        ({"rounds": (-1,)}, "rounds must be at least 0, got -1"),
    ],
)
def test_bad_settings_are_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        replace(Costs(), **changes)


def test_a_variant_that_cannot_be_timed_is_refused_before_anything_is():
    with pytest.raises(ValueError, match="'alibi' has no plain implementation to time"):
        list(STUDY.cells(Costs(attention=("softmax", "alibi"))))


def test_steps_run_one_after_the_other():
    assert STUDY.timed
    assert STUDY.execution.slots == 1
