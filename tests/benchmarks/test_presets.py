"""What each preset asks for, and that it is refused where it cannot run."""

import dataclasses

import pytest
import torch

from benchmarks import cost, newton, presets, training
from benchmarks.__main__ import main
from benchmarks.presets import Training
from symreg import cells as runner


def cells(preset, protocol="identifiable", law="newton", **changes):
    size = dataclasses.replace(presets.get(preset), **changes)
    return newton.cells(newton.Options(protocol, size, law=law))


def trained(preset, *arguments, **changes):
    return [c.config for c in cells(preset, *arguments, **changes) if "steps" in c.config]


def test_gpu_has_six_variants_of_twenty_million_parameters_and_ten_minutes():
    preset = presets.get("gpu")
    grid = cells("gpu")
    configs = [c.config for c in grid if "steps" in c.config]
    assert {config["row"]["model"] for config in configs} == {
        "softmax",
        "lssa",
        "lssar p=3",
        "lssar p=15",
        "sigmoid",
        "lazy",
    }
    assert {config["row"]["seed"] for config in configs} == {0, 1, 2}
    for config in configs:
        assert (config["world"]["n_points"], config["world"]["n_bins"]) == (256, 1000)
        assert config["training"]["precision"] == "bf16-mixed"
        if config["data"]["population"] == "pretrain":
            with torch.device("meta"):
                model = training.build(config)
            assert 19e6 < sum(p.numel() for p in model.parameters()) < 21e6
    total = sum((cost.of_cell(config) for config in configs), cost.Cost())
    assert 540 < total.flops / (0.25 * 989e12) < 600, "seconds at 25% of an H200's bfloat16 peak"
    assert "not measured" in preset.about


def test_gpu_makes_batches_on_the_device_where_it_can():
    def made_on_device(*arguments):
        return {
            config["data"]["population"]: config["data"].get("device_batches")
            for config in trained("gpu", *arguments)
        }

    assert made_on_device() == {"pretrain": "float64", "force": None}
    assert made_on_device("fixed") == {"pretrain": "float64", "force": None}
    assert made_on_device("paper") == {"pretrain": None, "force": None}
    assert made_on_device("identifiable", "harmonic") == {"pretrain": None, "force": None}


def test_paper_is_the_published_recipe():
    preset = presets.get("paper")
    assert preset.protocol == "paper"
    configs = trained("paper", "paper")
    width, vocabulary, logits = 768, 7002, 2 * 7000
    blocks = 12 * (12 * width**2 + 2 * 2 * width)
    parameters = 2 * vocabulary * width + blocks + 2 * width + (width + 1) * logits
    for config in configs:
        arm = config["row"]["arm"]
        assert config["world"]["n_points"] == 999
        assert config["data"]["batch_size"] == 64
        assert (config["model"]["optimizer"], config["model"]["weight_decay"]) == ("adamw", 0.1)
        several = {"devices": 8, "strategy": "ddp"}
        asked = {name: config["training"].get(name) for name in several}
        assert asked == (several if arm != "pretrained" else dict.fromkeys(several))
        with torch.device("meta"):
            task = training.build(config)
        if arm == "pretraining":
            assert (config["steps"], config["lr"]) == (600_000, 6e-4)
            assert config["data"]["n_train"] == 10_000_000
            assert task.hparams["warmup_steps"] == 2000
            assert sum(p.numel() for p in task.parameters()) == parameters
            assert cost.of_cell(config).sequences == 600_000 * 8 * 64
        elif arm == "pretrained":
            assert (config["steps"], config["lr"]) == (10_000, 2e-4)
            assert task.hparams["warmup_steps"] == 1000, "at most a tenth of the steps"


@pytest.mark.parametrize("preset", ["gpu", "paper"])
@pytest.mark.skipif(torch.cuda.device_count() > 0, reason="refused for want of CUDA devices")
def test_a_preset_that_cannot_run_here_is_refused_before_any_work(
    tmp_path, capsys, monkeypatch, preset
):
    monkeypatch.setattr(runner, "run", lambda *_, **__: pytest.fail("it has begun to train"))
    out = tmp_path / "out"
    with pytest.raises(SystemExit) as refused:
        main(["run", "newton", "--preset", preset, "--out", str(out)])
    assert refused.value.code == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert f"needs {presets.get(preset).training.devices} CUDA device" in error
    assert "found 0" in error
    assert "--dry-run" in error
    assert not out.exists()


def test_a_dry_run_prints_the_cost_and_writes_nothing(tmp_path, capsys):
    out = tmp_path / "out"
    main(["run", "newton", "--preset", "paper", "--dry-run", "--tflops", "3200", "--out", str(out)])
    text = capsys.readouterr().out
    assert "106,494,128" in text
    assert "hours" in text
    assert not out.exists()


def test_exponents_make_rows_of_reweighted_variants_alone():
    rows = {config["row"]["model"] for config in trained("small", exponents=(3.0, 7.5))}
    assert rows == {"softmax", "lssar p=3", "lssar p=7.5"}
    arguments = {c["row"]["model"]: c["model"]["attention_args"] for c in trained("gpu")}
    assert arguments["lssar p=3"] == {"p": 3.0}
    assert arguments["softmax"] is None
    with pytest.raises(ValueError, match="positive number"):
        cells("small", exponents=(-1.0,))


def test_a_cell_says_only_what_is_not_usual():
    assert Training().changes() == {}
    changed = Training(devices=2, precision="bf16-mixed")
    assert changed.changes() == {"devices": 2, "precision": "bf16-mixed"}
    assert Training(**changed.changes()) == changed
