"""Steps of GPT-2: what is timed, in which order, and what of the memory counts."""

import json

import pytest
import torch

from benchmarks.speed import gpt2


def test_training_steps_of_a_gpt(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(gpt2, "VARIANTS", ("softmax", "lssar"))
    monkeypatch.setattr(gpt2, "MIXERS", ("zeros",))
    monkeypatch.setitem(gpt2.SMALL, "length", 64)
    out = tmp_path / "gpt2.jsonl"
    assert gpt2.main(["--out", str(out)]) == 0
    rows = [json.loads(line) for line in out.read_text().splitlines()]
    assert {row["mode"] for row in rows} == {"training", "evaluation"}
    assert {(row["variant"], row["backend"]) for row in rows} == {
        ("softmax", "sdpa"), ("softmax", "eager"), ("softmax", "triton"),
        ("lssar", "eager"), ("lssar", "triton"), ("zeros", "own"),
    }  # fmt: skip
    eager = {
        (x["setting"], x["mode"]): x
        for x in rows
        if (x["variant"], x["backend"]) == ("softmax", "eager")
    }
    for row in rows:
        if row["status"] == "skipped: needs a CUDA device":
            assert row["backend"] == "triton"
            continue
        assert row["seconds"] > 0
        if row["device"] == "cpu":
            assert (row["bytes"] > 0) is (row["mode"] == "training")
        if row["variant"] != "softmax":
            base = eager[row["setting"], row["mode"]]
            assert row["x_eager"] == row["seconds"] / base["seconds"]
            assert row["x_sdpa"] > 0
            if row["mode"] == "training":
                assert row["bytes_x_eager"] == row["bytes"] / base["bytes"]
    assert "x eager" in capsys.readouterr().out


def test_both_tables_train_before_either_is_evaluated():
    order = [(row["mode"], row["setting"]) for row, _ in gpt2.cases("cuda")]
    assert list(dict.fromkeys(order)) == [
        ("training", "lssar-a7"), ("training", "zeros-7"),
        ("evaluation", "lssar-a7"), ("evaluation", "zeros-7"),
    ]  # fmt: skip
    first = [row for row, _ in gpt2.cases("cuda")][:2]
    assert [(x["variant"], x["backend"]) for x in first] == [
        ("softmax", "sdpa"), ("softmax", "eager")
    ]  # fmt: skip


def test_parameters_are_not_what_a_step_keeps(monkeypatch):
    monkeypatch.setitem(gpt2.SMALL, "length", 16)
    kept = []
    for vocabulary in (257, 4 * 257):  # the tied embedding is the parameter that grows
        monkeypatch.setitem(gpt2.SMALL, "vocab_size", vocabulary)
        kept.append(gpt2.measure("small", "eager", "softmax", True, "cpu")["bytes"])
    logits = 4 * 16 * 3 * 257  # bytes more of them, kept by the loss as log-probabilities
    assert kept[1] - kept[0] == logits
    assert gpt2.measure("small", "eager", "softmax", False, "cpu")["bytes"] == 0


@pytest.mark.parametrize("name", [*gpt2.VARIANTS, *gpt2.MIXERS])
def test_a_model_is_made_where_it_is_asked_for(name):
    with torch.device("meta"):
        model = gpt2.Model(name, gpt2.backends(name)[-1], 1, 2, 257)
    assert {x.device.type for x in (*model.parameters(), *model.buffers())} == {"meta"}


def test_what_has_no_plain_implementation_is_not_timed():
    with pytest.raises(ValueError, match="'alibi' has no plain implementation to time; choose "):
        gpt2.backends("alibi")
