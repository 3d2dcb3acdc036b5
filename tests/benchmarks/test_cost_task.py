"""The cost task: what is timed, and which published row it stands beside."""

from dataclasses import replace

import pytest

from benchmarks.speed import gpt2
from benchmarks.tasks import cost

SECONDS = {("softmax", "sdpa"): 1.0, ("softmax", "eager"): 2.0, ("zeros", "own"): 0.5}


def test_tables_show_ratios_to_plain_softmax_in_the_same_round(tmp_path, monkeypatch):
    asked = []

    def measure(setting, backend, variant, trained, device):
        asked.append((setting, backend, variant, trained, device))
        seconds = SECONDS[variant, backend] * (3 if trained else 1)
        kept = 10 if trained else 0  # as measured on a CPU: without gradients, nothing
        return {"seconds": seconds, "tokens_per_s": 1024 / seconds, "bytes": kept}

    monkeypatch.setattr(gpt2, "measure", measure)
    lines = []
    for cell in cost.TASK.cells(replace(cost.SMALL, variants=("softmax", "zeros"), rounds=(0,))):
        line = cost.TASK.step(dict(cell.config), tmp_path, {}, lambda *_: None)
        row = cell.config["row"]
        lines.append({"kind": "measurement", "status": "ok", "row": row, **line})
    expected = {
        ("small", backend, variant, trained, "cpu")
        for variant, backend in SECONDS
        for trained in (True, False)
    }
    assert set(asked) == expected
    assert len(asked) == len(expected)
    ratios, _ = cost.TASK.tables(lines)
    assert cost.TASK.draw(lines, tmp_path)
    one = "1.000 (1 seed)"
    assert ["small", "train", "own", "zeros", "0.250 (1 seed)", one] in ratios.cells
    assert ["small", "evaluation", "sdpa", "softmax", "0.500 (1 seed)", ""] in ratios.cells
    assert cost.TASK.ours(lines, "zeros_table_7") == {}, "a small block is not GPT-2"


def line(model, backend, setting):
    metrics = {"latency": 2.0, "throughput": 512.0, "memory": 2.0**30}
    row = {"setting": setting, "mode": "evaluation", "backend": backend, "model": model, "seed": 0}
    found = {name: {"value": value} for name, value in metrics.items()}
    return {"kind": "measurement", "status": "ok", "row": row, "metrics": found}


def test_rows_stand_beside_those_of_the_papers_in_their_units():
    pairs = [
        ("softmax", "sdpa"), ("softmax", "eager"), ("softmax", "triton"),
        ("lssar p=15", "eager"), ("lssar p=15", "triton"), ("zeros", "own"),
    ]  # fmt: skip
    lines = [line(*pair, setting) for pair in pairs for setting in ("lssar-a7", "zeros-7")]
    found = cost.TASK.ours(lines, "zeros_table_7")
    assert set(found) == {"softmax", "softmax_naive", "lssar p=15", "zeros"}
    assert found["zeros"][0] == {
        "latency@forward": 2.0, "throughput@forward": 512.0, "memory@forward": 1.0,
    }  # fmt: skip
    found = cost.TASK.ours(lines, "lssar_table_a7")
    assert set(found) == {"softmax", "lssar p=15", "zeros"}
    assert found["softmax"][0]["latency@eval"] == 2000.0
    assert found["softmax"][0]["memory@eval"] == 1024.0


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"variants": ()}, "variants must not be empty"),
        ({"variants": ("lssa",)}, "variants must name softmax"),
        ({"rounds": (-1,)}, "rounds must be at least 0, got -1"),
    ],
)
def test_bad_settings_are_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        replace(cost.SMALL, **changes)


def test_what_cannot_be_timed_is_refused_before_anything_is():
    with pytest.raises(ValueError, match="'alibi' has no plain implementation to time"):
        cost.TASK.cells(replace(cost.SMALL, variants=("softmax", "alibi")))
