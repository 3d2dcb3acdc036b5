import json

import pytest
import torch

from attention import get, reference
from benchmarks.speed import eager, gpt2, kernels, skippable


@pytest.mark.parametrize("name", eager.NAMES)
def test_the_plain_operations_are_the_variant(name):
    generator = torch.Generator().manual_seed(0)
    q, k, v = (torch.randn(2, 3, 17, 8, generator=generator, dtype=torch.float64) for _ in range(3))
    tau = torch.tensor([0.5, 1.0, 1.3], dtype=torch.float64)
    parameters = {"tau": tau} if name == "elastic" else {}
    found = eager.attend(q, k, v, get(name), parameters.get("tau"))
    torch.testing.assert_close(found, reference.attend(q, k, v, get(name), parameters))


def test_without_a_gpu_eager_is_compared_and_the_rest_skipped(tmp_path, capsys):
    if torch.cuda.is_available():
        pytest.skip("there is a GPU")
    out, figure = tmp_path / "kernels.jsonl", tmp_path / "kernels.png"
    kernels.main(["--lengths", "64", "256", "--out", str(out), "--figure", str(figure)])
    rows = [json.loads(line) for line in out.read_text().splitlines()]
    measured = [row for row in rows if row["status"] == "measured"]
    assert {row["peer"] for row in measured} == {"sdpa", "eager"}
    assert {row["variant"] for row in measured} == set(kernels.VARIANTS)
    assert {row["length"] for row in measured} == {64, 256}
    skipped = {row["peer"]: row["status"] for row in rows if row["status"] != "measured"}
    assert skipped["triton"] == "skipped: needs a CUDA device"
    for row in measured:
        assert row["manifest"]["device"] == "cpu"
        assert row["seconds_20"] <= row["seconds"] <= row["seconds_80"]
        trained = row["mode"] == "training"
        assert (row["bytes"] > 0) is trained
    kept = {
        (row["variant"], row["length"]): row["bytes"]
        for row in measured
        if row["peer"] == "eager" and row["mode"] == "training"
    }
    assert kept["lssar", 256] > kept["lssa", 256] > kept["softmax", 256]
    assert kept["lssar", 256] > 8 * kept["lssar", 64]  # O(L^2)
    assert figure.stat().st_size > 1000
    assert "needs a CUDA device" in capsys.readouterr().out


def test_ratios_are_to_the_floor_of_the_same_shape():
    shape = {"length": 64, "head_dim": 64, "mode": "forward"}
    floor = {"peer": "sdpa flash", "seconds": 2.0, **shape}
    other = {"peer": "sdpa flash", "seconds": 5.0, **shape, "length": 128}
    row = {"peer": "triton", "seconds": 3.0, **shape}
    assert kernels.ratio(row, [other, floor, row], "sdpa flash") == 1.5
    assert kernels.ratio(row, [other, row], "sdpa flash") is None


def test_nothing_starts_after_the_deadline(capsys):
    kernels.main(["--lengths", "32", "--minutes", "1e-9"])
    assert "skipped: the time was up" in capsys.readouterr().out


@pytest.mark.parametrize("benchmark", [kernels, gpt2])
def test_an_existing_result_is_not_overwritten(benchmark, tmp_path, capsys):
    out = tmp_path / "kept.jsonl"
    out.write_text("kept")
    with pytest.raises(SystemExit) as stop:
        benchmark.main(["--out", str(out)])
    assert stop.value.code == 2
    assert "exists" in capsys.readouterr().err
    assert out.read_text() == "kept"


def test_training_steps_of_a_gpt(tmp_path, monkeypatch):
    monkeypatch.setattr(gpt2, "VARIANTS", ("softmax", "lssar"))
    monkeypatch.setattr(gpt2, "MIXERS", ("zeros",))
    monkeypatch.setitem(gpt2.SMALL, "length", 64)
    out = tmp_path / "gpt2.jsonl"
    gpt2.main(["--out", str(out)])
    rows = [json.loads(line) for line in out.read_text().splitlines()]
    assert {row["mode"] for row in rows} == {"training", "evaluation"}
    assert {(row["variant"], row["backend"]) for row in rows} == {
        ("softmax", "sdpa"), ("softmax", "eager"), ("softmax", "triton"),
        ("lssar", "eager"), ("lssar", "triton"), ("zeros", "own"),
    }  # fmt: skip
    for row in rows:
        if row["backend"] != "triton":
            assert row["seconds"] > 0


def test_what_has_no_plain_implementation_is_not_timed():
    with pytest.raises(ValueError, match="'alibi' has no plain implementation to time; choose "):
        gpt2.backends("alibi")


def test_a_tile_counts_only_if_every_row_could_skip_it(monkeypatch):
    monkeypatch.setattr(skippable, "TILE", (2, 2))
    weights = torch.zeros(1, 5, 5)
    weights[0, :, 0] = 1.0  # the first key takes all: 3 of 6 causal tiles hold it
    assert skippable.skippable(weights, [0.0, 0.5]) == [0.5, 0.5]
    weights[0, 3, 2] = 0.1
    assert skippable.skippable(weights, [0.0, 0.5]) == pytest.approx([1 / 3, 0.5])
    weights[0, 3] *= 1e-3  # relative to the row's own largest
    assert skippable.skippable(weights, [0.0, 0.5]) == pytest.approx([1 / 3, 0.5])
