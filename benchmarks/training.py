"""Training the model of a cell: in this process or in several, and resumed after a kill.

While a cell trains, its last checkpoint and its curves lie in ``OUT/cells/KEY.training``, beside
the cell's folder, because a cell that is computed again starts with that one empty.

Lightning starts the processes of several devices by running the program again, which a worker of
a pool cannot be. So such a cell is trained by ``python -m benchmarks.training JOB``.
"""

from __future__ import annotations

import contextlib
import csv
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import lightning
import torch
from lightning.pytorch.callbacks import Callback, ModelCheckpoint
from lightning.pytorch.loggers import CSVLogger
from lightning.pytorch.plugins.environments import LightningEnvironment
from lightning.pytorch.strategies import ModelParallelStrategy, Strategy

from benchmarks import learners
from benchmarks.presets import Training
from orbits import artefacts
from symreg.cells import Progress
from worldmodel.callbacks import SharpenAfter, SharpenWhen, sharpened
from worldmodel.checkpoint import AtomicCheckpoints, read_checkpoint
from worldmodel.data import OrbitData
from worldmodel.gpt_task import GPTTask
from worldmodel.quiet import quiet_trainer
from worldmodel.tasks import ForceTask

CHECKPOINT, CURVES, DONE = "last.ckpt", "metrics.csv", "done"
ROOT = Path(__file__).parents[1]


def check_devices(name: str, how: Training) -> None:
    """Refuse a preset that this machine has too few devices for.

    Args:
        name: The preset's name, for the message.
        how: How its cells are trained.

    Raises:
        ValueError: CUDA devices are missing.
    """
    needed = how.devices if how.accelerator == "cuda" else 0
    found = torch.cuda.device_count()
    if found < needed:
        devices = "CUDA device" if needed == 1 else "CUDA devices"
        raise ValueError(
            f"preset {name!r} needs {needed} {devices}, found {found}; "
            "use --dry-run to see what it would run"
        )


def settings(config: Mapping[str, Any]) -> Training:
    """Return how a cell is trained."""
    return Training(**config.get("training", {}))


def device(config: Mapping[str, Any]) -> str:
    """Return what a cell is trained on, for its manifest."""
    how = settings(config)
    on_gpu = torch.cuda.is_available() and how.accelerator != "cpu"
    name = torch.cuda.get_device_name() if on_gpu else "cpu"
    return f"{how.devices} x {name}" if how.devices > 1 else name


def build(config: Mapping[str, Any]) -> GPTTask:
    """Return the task of a cell."""
    return learners.build(config, settings(config).warmup_steps)


@contextlib.contextmanager
def trained(
    config: Mapping[str, Any],
    folder: Path,
    progress: Progress,
    *,
    seed: int,
    pretrained: Path | None = None,
) -> Iterator[GPTTask]:
    """Train the task of a cell, from where a killed run stood, and hand it over.

    Its checkpoint and curves are then in the cell's folder. What was kept for a resume goes when
    the block ends, so a failure in it does not cost the training.

    Args:
        config: The cell's configuration.
        folder: The cell's folder, ``OUT/cells/KEY``.
        progress: Told how far training is.
        seed: Seed of the initial weights.
        pretrained: Checkpoint of the backbone to start from; None for scratch.

    Raises:
        RuntimeError: One of several processes failed.
        ValueError: There is a link in what was kept for a resume.
    """
    kept = folder.with_name(f"{folder.name}.training")
    kept.mkdir(exist_ok=True)
    for path in (kept, *kept.rglob("*")):
        if path.is_symlink():  # a training would write through it
            raise ValueError(f"{path} is a link; delete {kept}")
    fit = _fit if settings(config).devices == 1 else _fit_in_processes
    fit(config, kept, progress, seed, pretrained)
    artefacts.link(kept / CHECKPOINT, folder / CHECKPOINT)
    _join_curves(kept, folder / CURVES)
    yield learners.load(config, folder / CHECKPOINT)
    shutil.rmtree(kept)


def last_value(curves: Path, name: str) -> float:
    """Return the last value that training logged under a name."""
    with curves.open(newline="") as file:
        return [float(row[name]) for row in csv.DictReader(file) if row[name]][-1]


def predict(config: Mapping[str, Any], task: ForceTask, data: OrbitData) -> dict[str, torch.Tensor]:
    """Return the columns of the prediction file of the test set: one device, full precision."""
    environment = LightningEnvironment()
    trainer = quiet_trainer(accelerator=settings(config).accelerator, plugins=[environment])
    batches = trainer.predict(task, dataloaders=data.test_dataloader())
    assert batches is not None
    return {name: torch.cat([b[name] for b in batches]) for name in batches[0]}


class _Report(Callback):
    """Tell how far training is."""

    def __init__(self, progress: Progress) -> None:
        self.progress = progress

    def on_train_batch_end(self, trainer: lightning.Trainer, *_: Any) -> None:
        if trainer.is_global_zero:
            self.progress(trainer.global_step, trainer.max_steps)


class _StopWhen(Callback):
    """Stop when a validation metric has passed a threshold, with re-weighting on.

    Args:
        metric: A logged name.
        above: The threshold.
    """

    def __init__(self, metric: str, above: float) -> None:
        self.metric, self.above = metric, above

    def on_validation_end(
        self, trainer: lightning.Trainer, pl_module: lightning.LightningModule
    ) -> None:
        reached = float(trainer.callback_metrics[self.metric]) > self.above
        trainer.should_stop |= reached and sharpened(pl_module) == 1


class _AfterValidation(Callback):
    """Write a checkpoint again when its step has been validated.

    What the validation decided (a switch, a stop) is then part of it: Lightning's own callback
    saves before that.

    Args:
        path: The checkpoint.
        every: Steps between two.
    """

    def __init__(self, path: Path, every: int) -> None:
        self.path, self.every = path, every

    def on_validation_end(self, trainer: lightning.Trainer, *_: Any) -> None:
        if trainer.global_step % self.every == 0:
            trainer.save_checkpoint(self.path)


def _fit(
    config: Mapping[str, Any], kept: Path, progress: Progress, seed: int, pretrained: Path | None
) -> None:
    """Train in this process and, with several devices, in those that Lightning starts."""
    lightning.seed_everything(seed, verbose=False)
    task, training, steps = build(config), settings(config), config["steps"]
    checkpoint = kept / CHECKPOINT
    resumed = checkpoint.is_file()
    start = read_checkpoint(checkpoint)["global_step"] if resumed else 0
    if (kept / DONE).exists():
        return
    if pretrained and not resumed:
        assert isinstance(task, ForceTask)
        task.load_backbone(pretrained, any_law=config.get("any_law", False))
    more: list[Callback] = []
    if config.get("stop_when"):  # first: what it sees was measured as the switch stands now
        more.append(_StopWhen(**config["stop_when"]))
    if config.get("sharpen_after"):
        more.append(SharpenAfter(config["sharpen_after"]))
    if config.get("sharpen_when"):
        more.append(SharpenWhen(**config["sharpen_when"]))
    trainer = lightning.Trainer(
        accelerator=training.accelerator,
        devices=training.devices,
        strategy=_strategy(training),
        precision=training.precision,  # type: ignore[arg-type]
        max_steps=steps,
        val_check_interval=config.get("val_steps") or max(1, steps // 10),
        check_val_every_n_epoch=None,
        num_sanity_val_steps=0,
        gradient_clip_val=1.0,
        use_distributed_sampler=False,  # SequenceData gives every rank its own share
        log_every_n_steps=max(1, steps // 100),
        # Named by their first step: those of a resumed run do not replace the earlier ones.
        logger=CSVLogger(kept, "curves", f"{start:09d}", flush_logs_every_n_steps=1),
        callbacks=[
            ModelCheckpoint(
                kept,
                filename=checkpoint.stem,
                every_n_train_steps=training.checkpoint_steps,
                enable_version_counter=False,
            ),
            _Report(progress),
            *more,
            *([_AfterValidation(checkpoint, training.checkpoint_steps)] if more else []),
        ],
        plugins=[AtomicCheckpoints(), LightningEnvironment()],
        enable_progress_bar=False,
        enable_model_summary=False,
        deterministic="warn",
    )
    trainer.fit(
        task,
        datamodule=learners.data(config),
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
    """Write the curves of all runs as one, without the steps that a killed run did in vain."""
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


def _fit_in_processes(
    config: Mapping[str, Any], kept: Path, progress: Progress, seed: int, pretrained: Path | None
) -> None:
    """Run :func:`_fit` as a program of its own, which Lightning can run again for every device.

    Raises:
        RuntimeError: It failed; the message is that of the first process, if it has one.
    """
    job = {
        "config": config,
        "kept": str(kept.resolve()),
        "seed": seed,
        "pretrained": str(pretrained.resolve()) if pretrained else None,
    }
    path, log = kept.resolve() / "job.json", kept / "log.txt"
    path.write_text(json.dumps(job))
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
    from benchmarks.newton_cells import initialise

    if "LOCAL_RANK" not in os.environ:  # Lightning sets it for the processes that it starts
        threading.Thread(target=_end_with_parent, daemon=True).start()
    messages = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # whatever else is printed

    def say(**message: Any) -> None:
        print(json.dumps(message), file=messages, flush=True)

    initialise()
    job = json.loads(Path(sys.argv[1]).read_text())
    try:
        _fit(
            job["config"],
            Path(job["kept"]),
            lambda step, steps: say(step=step, steps=steps),
            job["seed"],
            Path(job["pretrained"]) if job["pretrained"] else None,
        )
    except Exception as problem:
        say(failure=f"{type(problem).__name__}: {problem}")
        raise


def _end_with_parent() -> None:
    os.read(0, 1)  # returns when the other end closes
    os.killpg(0, signal.SIGKILL)


if __name__ == "__main__":
    main()
