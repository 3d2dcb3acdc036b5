"""The flagship's cells: trainings, predictions and searches, computed in worker processes."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from lightning.pytorch.plugins.environments import LightningEnvironment
from torch.utils.data import DataLoader

from benchmarks import training
from benchmarks.newton import controls, exam
from benchmarks.newton.controls import Columns, Predictor
from benchmarks.training import CHECKPOINT, CURVES, device_name, torch_device, trained
from benchmarks.training_options import Job, Training, options
from orbits.protocols import Protocol
from orbits.runs.cell import Outcome, Progress
from orbits.runs.manifest import manifest
from orbits.systems import Systems
from symreg import measure, predictions
from worldmodel.data.orbits import OrbitData
from worldmodel.data.sequences import joined
from worldmodel.models.base import GPTModel
from worldmodel.models.load import load_model
from worldmodel.models.orbit import ForceModel, NextTokenModel
from worldmodel.models.predictions import save_predictions
from worldmodel.probes.motion import rollout
from worldmodel.training.trainer import quiet_trainer

PREDICTIONS, ERRORS = "predictions.npz", "errors.npz"

Plain = dict[str, Any]
World = Mapping[str, Any]
"""The full configuration of a protocol, which is part of a cell's address."""
Shifts = Mapping[str, Plain]
"""Shifts as plain data, by name."""


def world_model(job: Job, world: World, folder: Path, scratch: Path, progress: Progress) -> Outcome:
    """Train a world model on orbits; keep its checkpoint and curves."""
    checked_orbits(job["data"], world)
    training.train(job, folder, scratch, progress)
    metrics = {"val_nll": training.last_value(folder / CURVES, "val_loss")}
    return Outcome(metrics, files={"curves": CURVES}, device=training.device(job))


def next_point(data: Plain, world: World, training: Plain, pretrained: Path) -> Outcome:
    """Ask a world model for the next points of held-out sequences."""
    model = trained(pretrained, NextTokenModel)
    how = Training(**training)
    model.to(torch_device(how))
    metrics = rollout.next_point(model, *_held_out(data, world))
    return Outcome(metrics, device=device_name(how))


def next_point_references(data: Plain, world: World) -> Sequence[Outcome]:
    """Measure predictions of the next point without a model, one result each."""
    found = rollout.next_point_references(*_held_out(data, world))
    return [Outcome(metrics, variant=name) for name, metrics in found.items()]


def force(
    job: Job,
    world: World,
    folder: Path,
    scratch: Path,
    progress: Progress,
    pretrained: Path | None = None,
) -> Outcome:
    """Train a force head, on a pre-trained backbone or from scratch, and predict the test set."""
    data = checked_orbits(job["data"], world)
    checkpoint = None if pretrained is None else pretrained / CHECKPOINT
    model = training.train(job, folder, scratch, progress, checkpoint)
    assert isinstance(model, GPTModel)
    columns = _predictor(model, options(job))(data)
    return _forces(columns, data, folder, job["seed"], training.device(job))


def transfer(
    data: Plain, world: World, head: Path, folder: Path, training: Plain | None = None
) -> Outcome:
    """Evaluate a force head that was trained in another world on the forces of this one."""
    orbits, how = checked_orbits(data, world), Training(**(training or {}))
    columns = _predictor(load_model(head / CHECKPOINT), how)(orbits)
    return _forces(columns, orbits, folder, device=device_name(how))


def control(data: Plain, world: World, control: str, arguments: Plain, folder: Path) -> Outcome:
    """Measure a force prediction without a trained model, one of :data:`controls.CONTROLS`."""
    orbits = checked_orbits(data, world)
    columns = controls.CONTROLS[control](**arguments)(orbits)
    return _forces(columns, orbits, folder, arguments.get("seed"))


def causal_ceiling(data: Plain, world: World, shifts: Shifts, folder: Path) -> Outcome:
    """Fit orbits to the rows that a model has seen, in the training box and outside it."""
    errors = {
        name: exam.ceiling_errors(orbits)
        for name, orbits in asked_sequences(data, world, shifts).items()
    }
    exam.save(folder / ERRORS, errors, manifest(dict(data), seed=None))
    return Outcome(exam.ceiling_metrics(errors), files={"errors": ERRORS})


def examine(
    data: Plain,
    world: World,
    shifts: Shifts,
    ceiling: Path,
    head: Path | None = None,
    control: str = "",
    arguments: Plain | None = None,
    training: Plain | None = None,
) -> Outcome:
    """Examine a force head, or a control, outside the training box.

    Args:
        data: The test sequences of the box.
        world: World of the test sequences.
        shifts: The shifts, by name, as plain data.
        ceiling: The folder of :func:`causal_ceiling`.
        head: The folder of the head's training; None for a control.
        control: A name of :data:`controls.CONTROLS`.
        arguments: Arguments of the control.
        training: Options of the head's training, for the device that it answers on.
    """
    asked, device = asked_sequences(data, world, shifts), "cpu"
    if head is None:
        predict = controls.CONTROLS[control](**(arguments or {}))
    else:
        how = Training(**(training or {}))
        predict, device = _predictor(load_model(head / CHECKPOINT), how), device_name(how)
    columns = {name: predict(orbits) for name, orbits in asked.items()}
    subjects = {name: shift.get("exponent") for name, shift in shifts.items()}
    measured = exam.measure(columns, exam.load(ceiling / ERRORS), subjects)
    return Outcome(measured, device=device)


def search(predictor: Path, law: str, engine: str, seed: int, config: Plain) -> Outcome:
    """Search a formula for some points of a row's predictions and score it against the law."""
    if _plain(measure.search_config(law, engine)) != _plain(config):
        raise ValueError(f"engine {engine} is not that of the cell's address")
    data = predictions.read(predictor / PREDICTIONS, law)
    return measure.search(data, law=law, engine=engine, seed=seed)


def checked_orbits(data: World, world: World) -> OrbitData:
    """Return the sequences of a cell."""
    orbits = OrbitData(**data)
    orbits.protocol.unchanged(world)
    return orbits


def asked_sequences(data: Plain, world: World, shifts: Shifts) -> dict[str, OrbitData]:
    """Return the test sequences of the training box and of each shift."""
    box = {exam.BOX: checked_orbits(data, world)}
    arguments = data["protocol_args"] or {}
    moved = {
        name: OrbitData(**{**data, "protocol_args": {**arguments, "shift": shift}})
        for name, shift in shifts.items()
    }
    return box | moved


def _plain(config: Mapping[str, Any]) -> Any:
    """Return a configuration as it is written to a file."""
    return json.loads(json.dumps(config))


def _held_out(data: Plain, world: World) -> tuple[Protocol, Systems]:
    orbits = checked_orbits(data, world)
    indices = np.arange(orbits.hparams["n_test"])
    return orbits.protocol, orbits.protocol.systems(orbits.hparams["seed"], "test", indices)


def _predictor(model: GPTModel, how: Training) -> Predictor:
    """Return a force head as a predictor of test sequences."""
    assert isinstance(model, ForceModel)
    return lambda data: predicted_forces(model, data.test_dataloader(), how)


def predicted_forces(model: GPTModel, loader: DataLoader, how: Training) -> Columns:
    """Return the columns of a prediction file: one device, full precision."""
    trainer = quiet_trainer(accelerator=how.accelerator, plugins=[LightningEnvironment()])
    batches: Any = trainer.predict(model, dataloaders=loader)
    return joined(batches)


def _forces(
    columns: Columns, data: OrbitData, folder: Path, seed: int | None = None, device: str = "cpu"
) -> Outcome:
    """Write the prediction file and measure it."""
    law = data.protocol.law
    record = manifest(dict(data.hparams), seed=seed, device=device)
    save_predictions(folder / PREDICTIONS, columns, record)
    found = measure.forces(predictions.read(folder / PREDICTIONS, law), law)
    files = {"predictions": PREDICTIONS, "curves": CURVES}
    there = {role: name for role, name in files.items() if (folder / name).is_file()}
    return dataclasses.replace(found, files=there, device=device)
