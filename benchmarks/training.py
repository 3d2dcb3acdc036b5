"""Training of the model of a cell, in one process or in several, resumed after a kill.

The last checkpoint and the curves of a training lie in the cell's scratch folder, which survives
a kill, and at the end in the cell's own folder.

Lightning starts the processes of several devices by running the program again, which a worker of
a pool cannot be. So such a job is trained by ``python -m benchmarks.training JOB``.
"""

from __future__ import annotations

import contextlib
import csv
import json
import math
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any, TypeVar

import lightning
import torch
from lightning.pytorch.callbacks import Callback
from lightning.pytorch.loggers import CSVLogger
from lightning.pytorch.plugins.environments import LightningEnvironment
from lightning.pytorch.strategies import ModelParallelStrategy, Strategy

from benchmarks import learners
from benchmarks.training_options import Job, Training, options
from benchmarks.worker import prepare
from orbits.runs import artefact
from orbits.runs.cell import Progress
from worldmodel.models.checkpoint import read_checkpoint
from worldmodel.models.load import load_model
from worldmodel.models.orbit import ForceModel
from worldmodel.models.trained import TrainedModel
from worldmodel.training.callbacks import SharpenAfter, SharpenWhen, sharpened
from worldmodel.training.checkpoints import AtomicCheckpoints

CHECKPOINT, BEST, CURVES, DONE = "last.ckpt", "best.ckpt", "metrics.csv", "done"
ROOT = Path(__file__).parents[1]

Model = TypeVar("Model", bound=TrainedModel)


def check_devices(how: Training) -> None:
    """Refuse a training for which this machine has too few devices."""
    needed = how.devices if how.accelerator == "cuda" else 0
    available = torch.cuda.device_count()
    if available < needed:
        devices = "CUDA device" if needed == 1 else "CUDA devices"
        raise ValueError(
            f"accelerator cuda needs {needed} {devices}, found {available}; "
            "use --dry-run to see what a run would compute"
        )


def device(job: Job) -> str:
    """Return the device of a job, for a manifest."""
    return device_name(options(job))


def torch_device(how: Training) -> torch.device:
    """Return the device that options of training stand for on this machine."""
    on_gpu = torch.cuda.is_available() and how.accelerator != "cpu"
    return torch.device("cuda" if on_gpu else "cpu")


def device_name(how: Training) -> str:
    """Return the device's name, with the number of processes where there are several."""
    name = "cpu" if torch_device(how).type == "cpu" else torch.cuda.get_device_name()
    return f"{how.devices} x {name}" if how.devices > 1 else name


def train(
    job: Job, folder: Path, scratch: Path, progress: Progress, pretrained: Path | None = None
) -> TrainedModel:
    """Train the model of a job, resuming a killed run, and return it.

    Args:
        job: Job of the training.
        folder: Folder of the cell, for the checkpoint and the curves.
        scratch: The cell's scratch folder, or a folder in it for each of several trainings.
        progress: Told how far training is.
        pretrained: Checkpoint of the backbone to start from; None for random weights.

    Raises:
        RuntimeError: One of several processes failed.
    """
    scratch.mkdir(exist_ok=True)
    fit = _fit if options(job).devices == 1 else _fit_in_processes
    fit(job, scratch, progress, pretrained)
    for name in (CHECKPOINT, BEST) if job.get("keep_best") else (CHECKPOINT,):
        artefact.link(scratch / name, folder / name)
    _join_curves(scratch, folder / CURVES)
    return learners.load(job, folder / CHECKPOINT)


def trained(folder: Path, kind: type[Model]) -> Model:
    """Return the model of a training's folder, ready to be evaluated."""
    model = load_model(folder / CHECKPOINT)
    assert isinstance(model, kind)
    return model.eval()


def untrained(job: Job, kind: type[Model]) -> Model:
    """Return the model that the training of a job starts from, ready to be evaluated."""
    lightning.seed_everything(job["seed"], verbose=False)
    model = learners.build(job)
    assert isinstance(model, kind)
    return model.eval()


def trained_or_not(folder: Path | None, job: Job | None, kind: type[Model]) -> Model:
    """Return the model of a training's folder or, without one, the untrained one of its job."""
    if folder is not None:
        return trained(folder, kind)
    assert job is not None
    return untrained(job, kind)


def last_value(curves: Path, name: str) -> float:
    """Return the last value that training logged under a name."""
    with curves.open(newline="") as file:
        return [float(row[name]) for row in csv.DictReader(file) if row[name]][-1]


def validated(model: TrainedModel, job: Job, folder: Path, name: str) -> float:
    """Return a value that the trained weights have on validation examples.

    Training logged it, unless its last step lies behind its last validation.
    """
    step = read_checkpoint(folder / CHECKPOINT)["global_step"]
    if step % job["val_steps"] == 0:
        return last_value(folder / CURVES, name)
    trainer = lightning.Trainer(
        accelerator=options(job).accelerator,
        devices=1,
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    (found,) = trainer.validate(model, datamodule=learners.data(job), verbose=False)
    return found[name]


class _Report(Callback):
    """Callback that reports the progress of training."""

    def __init__(self, progress: Progress) -> None:
        self.progress = progress

    def on_train_batch_end(self, trainer: lightning.Trainer, *_: Any) -> None:
        if trainer.is_global_zero:
            self.progress(trainer.global_step, trainer.max_steps)


class _StopWhen(Callback):
    """Callback that stops once a validation metric passes a threshold with re-weighting on."""

    def __init__(self, metric: str, above: float) -> None:
        self.metric, self.above = metric, above

    def on_validation_end(
        self, trainer: lightning.Trainer, pl_module: lightning.LightningModule
    ) -> None:
        reached = float(trainer.callback_metrics[self.metric]) > self.above
        trainer.should_stop |= reached and sharpened(pl_module) == 1


class _KeepBest(Callback):
    """Callback that keeps the checkpoint of the lowest validation loss.

    Lightning's own callback remembers its best by a path, which no resumed run takes from a file.
    """

    def __init__(self, path: Path) -> None:
        self.path, self.lowest = path, math.inf

    def state_dict(self) -> dict[str, Any]:
        return {"lowest": self.lowest}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self.lowest = float(state_dict["lowest"])

    def on_validation_end(self, trainer: lightning.Trainer, *_: Any) -> None:
        loss = float(trainer.callback_metrics["val_loss"])
        if loss < self.lowest:
            self.lowest = loss
            trainer.save_checkpoint(self.path)


class _Checkpoints(Callback):
    """Callback that writes a checkpoint every so many steps, behind the validation of its step.

    What validation measured and decided (a switch, a stop, the best) is then part of it, and no
    killed run comes back between a step and its validation, which would be left out.
    """

    def __init__(self, path: Path, every: int, val_every: int) -> None:
        self.path, self.every, self.val_every = path, every, val_every

    def on_train_batch_end(self, trainer: lightning.Trainer, *_: Any) -> None:
        if trainer.global_step % self.val_every:
            self._write(trainer)

    def on_validation_end(self, trainer: lightning.Trainer, *_: Any) -> None:
        self._write(trainer)

    def _write(self, trainer: lightning.Trainer) -> None:
        if trainer.global_step % self.every == 0:
            trainer.save_checkpoint(self.path)


class _RandomNumbers(Callback):
    """Callback that has a resumed run draw (dropout, crops) what the killed one would have drawn.

    Of several devices all go on from the state of the first.
    """

    def __init__(self) -> None:
        self.found: dict[str, Any] = {}

    def state_dict(self) -> dict[str, Any]:
        cuda = torch.cuda.get_rng_state_all() if torch.cuda.is_available() else []
        return {"cpu": torch.get_rng_state(), "cuda": cuda}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self.found = dict(state_dict)

    def on_train_batch_start(self, *_: Any) -> None:  # behind all that a start draws
        if found := self.found:
            torch.set_rng_state(found["cpu"].cpu())
            for device, state in enumerate(found["cuda"][: torch.cuda.device_count()]):
                torch.cuda.set_rng_state(state.cpu(), device)
            self.found = {}


def _fit(job: Job, kept: Path, progress: Progress, pretrained: Path | None) -> None:
    """Train in this process and, with several devices, in those that Lightning starts."""
    lightning.seed_everything(job["seed"], verbose=False)
    model, training, steps = learners.build(job), options(job), job["steps"]
    checkpoint = kept / CHECKPOINT
    resumed = checkpoint.is_file()
    start = read_checkpoint(checkpoint)["global_step"] if resumed else 0
    if (kept / DONE).exists():
        return
    if pretrained and not resumed:
        assert isinstance(model, ForceModel)
        model.load_backbone(pretrained, any_law=job.get("any_law", False))
    more: list[Callback] = []
    if stop := job.get("stop_when"):  # first: its metric was measured as the switch stands now
        more.append(_StopWhen(**stop))
    after, ramp = job.get("sharpen_after", 0), job.get("sharpen_ramp", 0)
    if after or ramp:
        more.append(SharpenAfter(after, ramp))
    if when := job.get("sharpen_when"):
        more.append(SharpenWhen(**when))
    if job.get("keep_best"):
        more.append(_KeepBest(kept / BEST))
    val_every = job.get("val_steps") or max(1, steps // 10)
    trainer = lightning.Trainer(
        accelerator=training.accelerator,
        devices=training.devices,
        strategy=_strategy(training),
        precision=training.precision,  # type: ignore[arg-type]
        max_steps=steps,
        val_check_interval=val_every,
        check_val_every_n_epoch=None,
        num_sanity_val_steps=0,
        gradient_clip_val=1.0,
        use_distributed_sampler=False,  # SequenceData gives every rank its own share
        log_every_n_steps=max(1, steps // 100),
        # Named by their first step: those of a resumed run do not replace the earlier ones.
        logger=CSVLogger(kept, "curves", f"{start:09d}", flush_logs_every_n_steps=1),
        callbacks=[
            _Report(progress),
            *more,
            _RandomNumbers(),
            _Checkpoints(checkpoint, training.checkpoint_steps, val_every),
        ],
        enable_checkpointing=False,  # Lightning's own saves before a validation
        plugins=[AtomicCheckpoints(), LightningEnvironment()],
        enable_progress_bar=False,
        enable_model_summary=False,
        deterministic="warn",
    )
    trainer.fit(
        model,
        datamodule=learners.data(job),
        ckpt_path=checkpoint if resumed else None,
        weights_only=True,
    )
    trainer.save_checkpoint(checkpoint)
    if trainer.is_global_zero:
        (kept / DONE).touch()


def _strategy(training: Training) -> str | Strategy:
    if training.strategy != "fsdp2":
        return training.strategy
    return ModelParallelStrategy(
        data_parallel_size=training.devices,
        tensor_parallel_size=1,
        save_distributed_checkpoint=False,  # one file, that any number of devices reads
    )


def _join_curves(kept: Path, curves: Path) -> None:
    """Write the curves of all runs as one, without the lost steps of killed runs."""
    rows: list[dict[str, str]] = []
    for part in sorted((kept / "curves").iterdir()):
        if not (part / CURVES).is_file():  # killed before it logged anything
            continue
        rows = [row for row in rows if int(row["step"]) < int(part.name)]
        with (part / CURVES).open(newline="") as file:
            rows += csv.DictReader(file)
    with curves.open("w", newline="") as file:
        writer = csv.DictWriter(file, sorted({name for row in rows for name in row}))
        writer.writeheader()
        writer.writerows(rows)


def _fit_in_processes(job: Job, kept: Path, progress: Progress, pretrained: Path | None) -> None:
    """Run :func:`_fit` as a program of its own, which Lightning can run again for every device."""
    order = {
        "job": job,
        "kept": str(kept.resolve()),
        "pretrained": str(pretrained.resolve()) if pretrained else None,
    }
    path, log = kept.resolve() / "job.json", kept / "log.txt"
    path.write_text(json.dumps(order))
    failure = None
    with (
        log.open("ab") as errors,
        subprocess.Popen(
            [sys.executable, "-m", "benchmarks.training", str(path)],
            cwd=ROOT,
            stdin=subprocess.PIPE,  # closes with this process, which ends that one
            stdout=subprocess.PIPE,
            stderr=errors,
            start_new_session=True,
        ) as program,
    ):
        assert program.stdout is not None
        try:
            for line in program.stdout:
                message = json.loads(line)
                failure = message.get("failure")
                if failure is None:
                    progress(message["step"], message["steps"])
            code = program.wait()
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(program.pid, signal.SIGKILL)  # with the processes that it started
    if code:
        failure = failure or f"the processes of a training ended with exit code {code}"
        raise RuntimeError(f"{failure}; see {log}")


def main() -> None:
    """Train the job of a file; progress goes to standard output, one JSON record a line."""
    if "LOCAL_RANK" not in os.environ:  # Lightning sets it for the processes that it starts
        threading.Thread(target=_end_with_parent, daemon=True).start()
    messages = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # whatever else is printed

    def say(**message: Any) -> None:
        print(json.dumps(message), file=messages, flush=True)

    prepare()
    order = json.loads(Path(sys.argv[1]).read_text())
    try:
        _fit(
            order["job"],
            Path(order["kept"]),
            lambda step, steps: say(step=step, steps=steps),
            Path(order["pretrained"]) if order["pretrained"] else None,
        )
    except Exception as problem:
        say(failure=f"{type(problem).__name__}: {problem}")
        raise


def _end_with_parent() -> None:
    os.read(0, 1)  # returns when the other end closes
    os.killpg(0, signal.SIGKILL)


if __name__ == "__main__":
    main()
