"""The cost of a run, against PyTorch's own count and against sums by hand."""

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from benchmarks.newton import flops
from benchmarks.training_options import Training
from tests.benchmarks.newton.small import cells, jobs
from worldmodel.data.orbits import OrbitData
from worldmodel.models import optim
from worldmodel.models.orbit import ForceModel, NextTokenModel

ARGS = {"n_points": 32, "n_bins": 64}
# The plain implementation of a re-weighted variant is made of products that PyTorch counts.
SHAPE = {
    "protocol_args": ARGS,
    "attention": "lssar",
    "attention_args": {"backend": "reference"},
    "n_layer": 3,
    "n_head": 2,
    "head_dim": 16,
}


def counted(operation):
    with FlopCounterMode(display=False) as counter:
        operation()
    return counter.get_total_flops()


@pytest.mark.parametrize("task_class", [NextTokenModel, ForceModel])
@pytest.mark.parametrize("kind", ["bin_centres", "tokens"])
def test_a_sequence_takes_the_flops_that_pytorch_counts(task_class, kind):
    population = "pretrain" if task_class is NextTokenModel else "force"
    data = OrbitData(protocol_args=ARGS, population=population, batch_size=4)
    batch = next(iter(data.train_dataloader()))
    task, rows = task_class(input=kind, **SHAPE), batch["tokens"].shape[1]
    measured = counted(lambda: task._loss(batch).backward()) / 4
    # It computes all rows x rows products; the estimate leaves out what the mask hides.
    hidden = 12 * 3 * 32 * rows * (rows - 1) / 2
    assert hidden > 0.05 * measured
    assert flops.sequence_flops(task, rows) + hidden == pytest.approx(measured, rel=0.02)


@pytest.mark.parametrize("optimizer", ["muon", "adamw"])
def test_a_step_of_the_optimizer_takes_the_flops_that_pytorch_counts(optimizer):
    task = NextTokenModel(optimizer=optimizer, **SHAPE)
    for parameter in task.parameters():
        parameter.grad = torch.randn_like(parameter)
    stepper, _ = optim.configure(
        task, optimizer, lr=1e-3, weight_decay=0.0, warmup_steps=1, total_steps=2
    )
    assert flops.optimizer_flops(task) == counted(stepper.step)


def test_a_run_costs_the_sum_of_its_trainings():
    costs = {}
    for cell in cells(pretrain_steps=700, finetune_steps=1000):
        if "job" in cell.arguments:
            arm = cell.case.arm
            costs[arm] = costs.get(arm, flops.Cost()) + flops.of_cell(cell)
        else:
            assert flops.of_cell(cell) == flops.Cost()
    sequences = {arm: total.sequences for arm, total in costs.items()}
    assert sequences == {
        "pretraining": 2 * 64 * 700,
        "pretrained": 2 * 2 * 64 * 1000,
        "scratch": 2 * 2 * 64 * (700 + 1000),
    }
    assert all(total.rows == 49 * total.sequences for total in costs.values())
    # 6 FLOPs a weight and row, attention and Muon aside.
    least = 6 * 2 * 12 * 64**2 * costs["pretraining"].rows
    assert least < costs["pretraining"].flops < 2 * least


def test_the_table_adds_up_and_estimates_the_time_on_request():
    grid = cells()
    total = sum(map(flops.of_cell, grid), flops.Cost())
    lines = flops.table(grid).splitlines()
    summary = next(line for line in lines if line.startswith("all"))
    assert summary.split()[1] == "10"
    assert float(summary.split()[-1]) == pytest.approx(total.flops, rel=0.01)
    assert not any("hours" in line for line in lines)
    assert f"{total.flops / 3.6e15:.3g} hours" in flops.table(grid, tflops=1)
    with pytest.raises(ValueError, match="positive, got 0"):
        flops.table(grid, tflops=0)


def test_every_device_takes_a_whole_batch():
    two = Training(devices=2, strategy="ddp")
    (one, _), (both, _) = jobs()[0], jobs(training=two)[0]
    assert flops.of_cell(both).flops == 2 * flops.of_cell(one).flops
    assert flops.of_cell(both).sequences == 2 * flops.of_cell(one).sequences
