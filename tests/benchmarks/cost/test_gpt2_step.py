"""Steps of GPT-2: what is timed, in which order, and what of the memory counts."""

import dataclasses

import pytest
import torch

from benchmarks.cost import gpt2_step
from benchmarks.cost.cost import STUDY, Costs
from orbits.runs import study


@pytest.mark.full
def test_steps_of_a_small_gpt(tmp_path):
    settings = STUDY.settings("tiny", attention=["softmax", "lssar", "zeros"])
    results = study.run(STUDY, settings, tmp_path, STUDY.execution, preset="tiny")
    cases = {(x.case.variant, x.case.get("backend"), x.case.get("mode")): x for x in results}
    names = [
        ("softmax", "sdpa"), ("softmax", "eager"), ("softmax", "triton"),
        ("lssar p=15", "eager"), ("lssar p=15", "blocked"), ("lssar p=15", "triton"),
        ("zeros", "own"),
    ]  # fmt: skip
    assert set(cases) == {(*name, mode) for name in names for mode in gpt2_step.MODES}
    for (variant, backend, mode), result in cases.items():
        if backend == "triton":
            assert (result.status, result.error) == ("skipped", "needs a CUDA device")
            continue
        assert result.ok, (variant, result.error)
        low, median, high = (result.value(f"latency{q}") for q in ("_20", "", "_80"))
        assert 0 < low <= median <= high
        assert result.value("throughput") == pytest.approx(64 / median)
        assert ("memory" in result.metrics) is (mode == "train")
        assert result.metrics["latency"].unit == "s"
        assert result.manifest["threads"] == torch.get_num_threads()
    assert study.summary(results, tmp_path)[1] == 0
    text = study.report(STUDY, tmp_path)
    assert "softmax by SDPA" in text
    assert "and 3 more: needs a CUDA device" in text


def test_both_tables_train_before_either_is_evaluated():
    cases = [cell.case for cell in STUDY.cells(STUDY.settings("gpu", rounds=[0]))]
    order = [(case.get("mode"), case.get("setting")) for case in cases]
    assert list(dict.fromkeys(order)) == [
        ("train", "lssar-a7"), ("train", "zeros-7"),
        ("evaluation", "lssar-a7"), ("evaluation", "zeros-7"),
    ]  # fmt: skip
    assert [(x.variant, x.get("backend")) for x in cases[:2]] == [
        ("softmax", "sdpa"), ("softmax", "eager")
    ]  # fmt: skip


def test_parameters_are_not_what_a_step_keeps(monkeypatch):
    kept = []
    for vocabulary in (257, 4 * 257):  # the tied embedding is the parameter that grows
        size = dataclasses.replace(gpt2_step.SIZES["tiny"], length=16, vocabulary=vocabulary)
        monkeypatch.setitem(gpt2_step.SIZES, "tiny", size)
        kept.append(gpt2_step.timings("tiny", "eager", "softmax", True, "cpu")["bytes"])
    logits = 4 * 16 * 3 * 257  # bytes more of them, kept by the loss as log-probabilities
    assert kept[1] - kept[0] == logits
    assert gpt2_step.timings("tiny", "eager", "softmax", False, "cpu")["bytes"] == 0


@pytest.mark.parametrize("name", Costs().attention)
def test_a_model_is_made_where_it_is_asked_for(name):
    with torch.device("meta"):
        model = gpt2_step.Model(name, gpt2_step.backends(name)[-1], 1, 2, 257)
    assert {x.device.type for x in (*model.parameters(), *model.buffers())} == {"meta"}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"sizes": ["gpt3"]},
            "unknown size 'gpt3'; choose from lssar-a7, zeros-7, small, small-256, tiny",
        ),
        ({"device": "tpu"}, "device must be cpu | cuda, got 'tpu'"),
    ],
)
def test_bad_settings_are_refused_before_anything_is_timed(changes, message, tmp_path):
    settings = STUDY.settings("tiny", **changes)
    with pytest.raises(ValueError, match=message.replace("|", r"\|")):
        study.run(STUDY, settings, tmp_path / "out", STUDY.execution)
    assert not (tmp_path / "out").exists()


@pytest.mark.full
@pytest.mark.usefixtures("without_a_gpu")
@pytest.mark.parametrize("name", ["cost", "kernels"])
def test_a_gpu_preset_without_a_gpu_is_one_line(name, refused_run):
    assert "needs 1 CUDA device, found 0" in refused_run(name, "--preset", "gpu")
