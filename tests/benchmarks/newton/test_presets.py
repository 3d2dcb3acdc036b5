"""What each preset asks for, and that it is refused where it cannot run."""

import pytest
import torch

from benchmarks import learners
from benchmarks.__main__ import main
from benchmarks.newton import flops
from benchmarks.newton.newton import STUDY
from benchmarks.training_options import Training
from orbits.runs import presets, study
from tests.benchmarks.newton.small import cells, jobs, settings


@pytest.mark.full
def test_gpu_has_six_variants_of_twenty_million_parameters_and_a_quarter_of_an_hour():
    trained = jobs("gpu")
    assert {cell.case.variant for cell, _ in trained} == {
        "softmax",
        "lssa",
        "lssar p=3",
        "lssar p=15",
        "sigmoid",
        "lazy",
    }
    assert {cell.case.seed for cell, _ in trained} == {0, 1, 2}
    for cell, job in trained:
        world = cell.arguments["world"]
        assert (world["n_points"], world["n_bins"]) == (256, 1000)
        assert job["training"]["precision"] == "bf16-mixed"
        if job["data"]["population"] == "pretrain":
            with torch.device("meta"):
                model = learners.build(job)
            assert 19e6 < sum(p.numel() for p in model.parameters()) < 21e6
    total = sum((flops.of_cell(cell) for cell, _ in trained), flops.Cost())
    assert 840 < total.flops / (0.16 * 989e12) < 940, "seconds at 16% of an H200's bfloat16 peak"
    assert "not run whole" in presets.get(STUDY, "gpu").about
    assert [presets.get(STUDY, name).workers for name in ("small", "gpu", "paper")] == [
        None,
        8,
        1,
    ]


@pytest.mark.full
def test_gpu_makes_batches_on_the_device_where_it_can():
    def made_on_device(**changes):
        data = [job["data"] for _, job in jobs("gpu", **changes)]
        return {each["population"]: each.get("device_batches") for each in data}

    assert made_on_device() == {"pretrain": "float64", "force": None}
    assert made_on_device(protocol="fixed") == {"pretrain": "float64", "force": None}
    assert made_on_device(protocol="paper") == {"pretrain": None, "force": None}
    assert made_on_device(law="harmonic") == {"pretrain": None, "force": None}


@pytest.mark.full
def test_paper_is_the_published_recipe():
    assert settings("paper").protocol == "paper"
    width, vocabulary, logits = 768, 7002, 2 * 7000
    blocks = 12 * (12 * width**2 + 2 * 2 * width)
    parameters = 2 * vocabulary * width + blocks + 2 * width + (width + 1) * logits
    for cell, job in jobs("paper"):
        arm = cell.case.arm
        assert cell.arguments["world"]["n_points"] == 999
        assert job["data"]["batch_size"] == 64
        assert (job["model"]["optimizer"], job["model"]["weight_decay"]) == ("adamw", 0.1)
        several = {"devices": 8, "strategy": "ddp"}
        given = {name: job["training"].get(name) for name in several}
        assert given == (several if arm != "pretrained" else dict.fromkeys(several))
        with torch.device("meta"):
            model = learners.build(job)
        if arm == "pretraining":
            assert (job["steps"], job["lr"]) == (600_000, 6e-4)
            assert job["data"]["n_train"] == 10_000_000
            assert model.hparams["warmup_steps"] == 2000
            assert sum(p.numel() for p in model.parameters()) == parameters
            assert flops.of_cell(cell).sequences == 600_000 * 8 * 64
        elif arm == "pretrained":
            assert (job["steps"], job["lr"]) == (10_000, 2e-4)
            assert model.hparams["warmup_steps"] == 1000, "at most a tenth of the steps"


@pytest.mark.parametrize("preset", ["gpu", "paper"])
@pytest.mark.usefixtures("without_a_gpu")
def test_a_preset_that_cannot_run_here_is_refused_before_any_work(refused_run, monkeypatch, preset):
    monkeypatch.setattr(study, "run_cells", lambda *_: pytest.fail("it has begun to train"))
    error = refused_run("newton", "--preset", preset)
    assert f"needs {settings(preset).training.devices} CUDA device" in error
    assert "found 0" in error
    assert "--dry-run" in error


def test_a_dry_run_prints_the_cost_and_writes_nothing(tmp_path, capsys):
    out = tmp_path / "out"
    main(["run", "newton", "--preset", "paper", "--dry-run", "--tflops", "3200", "--out", str(out)])
    text = capsys.readouterr().out
    assert "106,494,128" in text
    assert "hours" in text
    assert not out.exists()


def test_exponents_make_rows_of_reweighted_variants_alone():
    rows = {cell.case.variant for cell, _ in jobs("small", exponents=(3.0, 7.5))}
    assert rows == {"softmax", "lssar p=3", "lssar p=7.5"}
    arguments = {cell.case.variant: job["model"]["attention_args"] for cell, job in jobs("gpu")}
    assert arguments["lssar p=3"] == {"p": 3.0}
    assert arguments["softmax"] is None
    with pytest.raises(ValueError, match="positive number"):
        cells("small", exponents=(-1.0,))


def test_a_cell_says_only_what_is_not_usual():
    assert Training().changes() == {}
    changed = Training(devices=2, precision="bf16-mixed")
    assert changed.changes() == {"devices": 2, "precision": "bf16-mixed"}
    assert Training(**changed.changes()) == changed
