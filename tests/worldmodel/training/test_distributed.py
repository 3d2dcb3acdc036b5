"""Two processes train what one does: cells and the command line, on CPUs."""

import dataclasses
import os
import signal
import subprocess
import sys
from pathlib import Path

import lightning
import pytest
import torch

from benchmarks import training
from benchmarks.training_options import Training
from tests import training_cells
from tests.training_cells import compute
from tests.waiting import wait_until
from worldmodel.data.orbits import OrbitData
from worldmodel.models.load import load_model

ROOT = Path(__file__).parents[3]
BATCH, STEPS = 16, 12
TWO = Training(accelerator="cpu", devices=2, strategy="ddp", warmup_steps=2, checkpoint_steps=4)

pytestmark = pytest.mark.full


def cell(kind, how=TWO, **changes):
    """Return the cell that trains a world model, or a force head from scratch."""
    size = {"steps": STEPS, "batch_size": BATCH, "optimizer": "adamw", "lr": 1e-3} | changes
    return training_cells.cell(training_cells.job(kind, how.changes(), **size))


def checkpoint(which, out):
    return torch.load(which.folder(out) / training.CHECKPOINT, weights_only=True)


def largest_difference(one, other):
    assert one["state_dict"].keys() == other["state_dict"].keys()
    pairs = ((one["state_dict"][name], value) for name, value in other["state_dict"].items())
    return max((a - b).abs().max().item() for a, b in pairs)


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    """Return what one process ends with, by kind of cell and batch size."""
    out = tmp_path_factory.mktemp("alone")
    one = dataclasses.replace(TWO, devices=1, strategy="auto")
    found = {}
    for kind, batch_size in (("pretrain", 2 * BATCH), ("force", 2 * BATCH), ("force", BATCH)):
        which = cell(kind, one, batch_size=batch_size)
        assert compute(which, out).ok
        found[kind, batch_size] = checkpoint(which, out)
    return found


@pytest.mark.parametrize("strategy", ["ddp", "fsdp2"])
def test_two_processes_end_where_one_with_twice_the_batch_does(tmp_path, alone, strategy):
    """A force head; a world model is killed on its way and ends there, too, in the next test."""
    which, steps = cell("force", dataclasses.replace(TWO, strategy=strategy)), []
    result = compute(which, tmp_path, lambda step, total: steps.append((step, total)))
    assert result.error is None
    assert steps == [(step, STEPS) for step in range(1, STEPS + 1)]
    assert result.manifest["device"] == "2 x cpu"
    trained = checkpoint(which, tmp_path)
    assert trained["global_step"] == STEPS
    assert largest_difference(trained, alone["force", 2 * BATCH]) < 1e-5
    assert largest_difference(trained, alone["force", BATCH]) > 1e-3, "a half of the batch differs"


@pytest.mark.parametrize("strategy", [pytest.param("ddp", marks=pytest.mark.slow), "fsdp2"])
def test_a_killed_training_of_two_processes_continues(tmp_path, alone, strategy):
    which = cell("pretrain", dataclasses.replace(TWO, strategy=strategy))

    def killed(step, total):
        if step == 7:
            raise RuntimeError("killed")

    assert compute(which, tmp_path, killed).error == "RuntimeError: killed"
    assert not processes_of(tmp_path)
    steps = []
    assert compute(which, tmp_path, lambda step, _: steps.append(step)).error is None
    # The program may be a step or two past what it was last heard to have done.
    assert steps in (list(range(5, STEPS + 1)), list(range(9, STEPS + 1)))
    assert largest_difference(checkpoint(which, tmp_path), alone["pretrain", 2 * BATCH]) < 1e-5


def test_the_processes_end_with_a_worker_that_is_killed(tmp_path):
    program = f"""
import sys
from pathlib import Path
sys.path[:0] = [{str(ROOT)!r}, {str(Path(__file__).parent)!r}]
import test_distributed
which = test_distributed.cell("pretrain", steps=100_000)
test_distributed.compute(which, Path({str(tmp_path)!r}), lambda *_: print("started", flush=True))
"""
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE) as worker:
        assert worker.stdout.readline().strip() == b"started"
        assert len(processes_of(tmp_path)) == 2
        worker.send_signal(signal.SIGKILL)
    wait_until(lambda: not processes_of(tmp_path), "the processes of the training end")


def processes_of(out):
    """Return the ids of the training processes whose job lies below a folder."""
    found = []
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            arguments = entry.read_bytes().decode().split("\0")
        except OSError:  # it has just ended
            continue
        if "benchmarks.training" in arguments and str(out) in arguments[-2]:
            found.append(int(entry.parent.name))
    return [process for process in found if process != os.getpid()]


def test_what_goes_wrong_in_a_process_is_the_error_of_the_cell(tmp_path):
    error = compute(cell("pretrain", lr=1e30), tmp_path).error
    assert "NonFiniteLoss" in error
    assert "log.txt" in error
    fsdp2 = dataclasses.replace(TWO, strategy="fsdp2")
    error = compute(cell("pretrain", fsdp2, optimizer="muon"), tmp_path).error
    assert "FSDP2 cannot save the state of Muon" in error


def fit(out, strategy, **options):
    """Train on two processes by the command line."""
    command = [sys.executable, "-m", "worldmodel", "fit", "-c", "worldmodel/configs/pretrain.yaml"]
    size = {"max_steps": 4, "val_check_interval": 2, "accelerator": "cpu", "devices": 2}
    size |= {"enable_progress_bar": "false", "logger.init_args.save_dir": str(out)}
    trainer = [f"--trainer.{key}={value}" for key, value in size.items()]
    model = ["--model.optimizer=adamw", "--model.n_layer=1", "--model.head_dim=8"]
    data = ["--data.protocol_args={n_points: 16, n_bins: 32}", "--data.n_val=8"]
    return subprocess.run([*command, *trainer, *strategy, *model, *data], cwd=ROOT, **options)


def test_tensors_are_not_made_parallel_in_silence(tmp_path):
    defaults = [
        "--trainer.strategy=ModelParallelStrategy",
        "--trainer.strategy.save_distributed_checkpoint=false",
    ]
    said = fit(tmp_path, defaults, capture_output=True, text=True, timeout=1200)
    assert said.returncode != 0
    assert "set trainer.strategy.data_parallel_size=2" in said.stderr


@pytest.mark.parametrize(
    "strategy",
    [
        pytest.param(["--trainer.strategy=ddp"], marks=pytest.mark.slow),
        [
            "--trainer.strategy=ModelParallelStrategy",
            "--trainer.strategy.data_parallel_size=2",
            "--trainer.strategy.tensor_parallel_size=1",
            "--trainer.strategy.save_distributed_checkpoint=false",
        ],
    ],
    ids=["ddp", "fsdp2"],
)
def test_the_command_line_trains_on_two_processes(tmp_path, strategy):
    fit(tmp_path, strategy, check=True)
    folder = tmp_path / "pretrain" / "version_0"
    last = folder / "checkpoints" / "last.ckpt"
    assert torch.load(last, weights_only=True)["global_step"] == 4
    data = OrbitData(protocol_args={"n_points": 16, "n_bins": 32}, n_val=8)
    quiet = {"logger": False, "enable_progress_bar": False, "enable_model_summary": False}
    trainer = lightning.Trainer(accelerator="cpu", devices=1, enable_checkpointing=False, **quiet)
    (alone,) = trainer.validate(load_model(last), datamodule=data, verbose=False)
    logged = training.last_value(folder / "metrics.csv", "val_loss")
    assert logged == pytest.approx(alone["val_loss"], rel=1e-5), "of both processes' sequences"
