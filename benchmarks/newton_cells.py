"""How each kind of the flagship's cells is computed; runs in worker processes."""

from __future__ import annotations

import logging
import os
import warnings
from pathlib import Path
from typing import Any

import lightning
import numpy as np
import torch
from torch import Tensor

from benchmarks import training
from benchmarks.newton_options import FORCE_SEED_OFFSET
from benchmarks.observers import OBSERVERS, observed_force
from benchmarks.training import CHECKPOINT, CURVES
from orbits import artefacts, laws
from orbits.best_observer import best_observer
from orbits.manifest import manifest
from orbits.protocols import Protocol
from orbits.systems import Systems
from symreg import predictions
from symreg.cells import Progress
from symreg.exponents import fit_exponents
from symreg.measure import predictor_metrics, search_line
from worldmodel.allocator import keep_freed_memory
from worldmodel.callbacks import save_predictions
from worldmodel.controls.knn_oracle import knn_oracle
from worldmodel.controls.ridge import ridge_readout
from worldmodel.data import OrbitData
from worldmodel.probes import rollout
from worldmodel.tasks import ForceTask, NextTokenTask, central_columns, load_task

PREDICTIONS = "predictions.npz"


def initialise() -> None:
    """Prepare a worker: one thread, since cells run side by side, its own pages, and no chatter."""
    torch.set_num_threads(1)
    keep_freed_memory()
    os.environ.setdefault("PYTHONWARNINGS", "ignore")
    warnings.filterwarnings("ignore")
    logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)


def pretrain(
    config: dict[str, Any], folder: Path, needs: dict[str, Path], progress: Progress
) -> dict[str, Any]:
    """Train a world model on orbits; keep its checkpoint and curves."""
    with training.trained(config, folder, progress, seed=config["seed"]):
        metrics = {"val_nll": training.last_value(folder / CURVES, "val_loss")}
        return {"metrics": metrics, "manifest": _manifest(config), "files": _files(folder)}


def next_point(
    config: dict[str, Any], folder: Path, needs: dict[str, Path], progress: Progress
) -> dict[str, Any]:
    """Ask a world model for the next points of held-out sequences."""
    checkpoint = needs["pretrained"] / CHECKPOINT
    task = load_task(checkpoint)
    assert isinstance(task, NextTokenTask)
    if training.settings(config).accelerator != "cpu" and torch.cuda.is_available():
        task.cuda()
    metrics = rollout.next_point(task, *_held_out(config))
    record = _manifest(config, {"pretrained": artefacts.sha256(checkpoint)})
    return {"metrics": metrics, "manifest": record}


def next_point_references(
    config: dict[str, Any], folder: Path, needs: dict[str, Path], progress: Progress
) -> dict[str, Any]:
    """Measure what answers for the next point without a model."""
    found = rollout.next_point_references(*_held_out(config))
    metrics = {f"{who}: {name}": value for who, x in found.items() for name, value in x.items()}
    return {"metrics": metrics, "manifest": manifest(config, seed=None)}


def force(
    config: dict[str, Any], folder: Path, needs: dict[str, Path], progress: Progress
) -> dict[str, Any]:
    """Train a force head, on a pre-trained backbone or from scratch, and predict the test set."""
    checkpoint, inputs = None, {}
    if "pretrained" in needs:
        checkpoint = needs["pretrained"] / CHECKPOINT
        inputs["pretrained"] = artefacts.sha256(checkpoint)
    seed = config["seed"] + FORCE_SEED_OFFSET
    with training.trained(config, folder, progress, seed=seed, pretrained=checkpoint) as task:
        assert isinstance(task, ForceTask)
        columns = training.predict(config, task, OrbitData(**config["data"]))
        return _predictor_line(config, folder, columns, inputs)


def transfer(
    config: dict[str, Any], folder: Path, needs: dict[str, Path], progress: Progress
) -> dict[str, Any]:
    """Ask a force head that was trained in another world for the forces of this one."""
    checkpoint = needs["head"] / CHECKPOINT
    task = load_task(checkpoint)
    assert isinstance(task, ForceTask)
    columns = training.predict(config, task, OrbitData(**config["data"]))
    return _predictor_line(config, folder, columns, {"head": artefacts.sha256(checkpoint)})


def ridge(
    config: dict[str, Any], folder: Path, needs: dict[str, Path], progress: Progress
) -> dict[str, Any]:
    """Read an untrained backbone by ridge regression."""
    lightning.seed_everything(config["seed"] + FORCE_SEED_OFFSET, verbose=False)
    task = ForceTask(**config["model"])
    data = OrbitData(**config["data"])
    columns = ridge_readout(task, data.labelled_dataloader(), data.test_dataloader())
    return _predictor_line(config, folder, columns)


def control(
    config: dict[str, Any], folder: Path, needs: dict[str, Path], progress: Progress
) -> dict[str, Any]:
    """Answer without a model: the truth, the ceiling, the k-NN oracle, a power law, an observer."""
    data = OrbitData(**config["data"])
    if "believed" in config:
        columns = _observed(config, data)
    elif "taught" in config:  # by labels of another world
        columns = _nearest(OrbitData(**config["taught"]), data)
    else:
        columns = {
            "true force": _truth,
            "ceiling": _ceiling,
            "k-NN oracle": lambda data: _nearest(data, data),
            "power law": _power_law,
        }[config["row"]["model"]](data)
    return _predictor_line(config, folder, columns)


def law(
    config: dict[str, Any], folder: Path, needs: dict[str, Path], progress: Progress
) -> dict[str, Any]:
    """Search a formula for one subset of a predictor's answers and score it against the law."""
    source = needs["predictor"] / PREDICTIONS
    line = search_line(
        predictions.read(source, config["task"]),
        law=config["task"],
        engine=config["engine"],
        seed=config["seed"],
    )
    inputs = {"predictions": artefacts.sha256(source)}
    return {**line, "manifest": manifest(config, seed=config["seed"], inputs=inputs)}


COMPUTE = {
    "pretrain": pretrain,
    "next_point": next_point,
    "next_point_references": next_point_references,
    "force": force,
    "transfer": transfer,
    "ridge": ridge,
    "control": control,
    "law": law,
}


def _held_out(config: dict[str, Any]) -> tuple[Protocol, Systems]:
    data = OrbitData(**config["data"])
    indices = np.arange(data.hparams["n_test"])
    return data.protocol, data.protocol.systems(data.hparams["seed"], "test", indices)


def _truth(data: OrbitData) -> dict[str, Tensor]:
    return _from_batches(data, lambda batch: batch["force"].norm(dim=-1))


def _nearest(labelled: OrbitData, asked: OrbitData) -> dict[str, Tensor]:
    return knn_oracle(labelled.labelled_dataloader(), asked.test_dataloader())


def _observed(config: dict[str, Any], data: OrbitData) -> dict[str, Tensor]:
    law, believed = (laws.get(name) for name in (data.protocol.law, config["believed"]))
    past = OBSERVERS[config["control"]]
    return _from_batches(data, lambda batch: observed_force(batch, law, believed, past))


def _ceiling(data: OrbitData) -> dict[str, Tensor]:
    def best_fit(batch: dict[str, Tensor]) -> Tensor:
        indices = batch["sequence_id"].numpy()
        answer = best_observer(data.protocol, data.hparams["seed"], "test", indices)
        return torch.from_numpy(answer.force)

    return _from_batches(data, best_fit)


def _power_law(data: OrbitData) -> dict[str, Tensor]:
    labelled = [
        central_columns(batch, batch["force"].norm(dim=-1)) for batch in data.labelled_dataloader()
    ]
    known = {name: torch.cat([c[name] for c in labelled]).numpy() for name in ("r", "m1", "m2")}
    target = torch.cat([c["force"] for c in labelled]).numpy()
    fitted = fit_exponents(
        np.stack([known[n] for n in ("r", "m1", "m2")], axis=1),
        target,
        np.arange(len(target)),
        n_boot=2,
    )

    def predict(batch: dict[str, Tensor]) -> Tensor:
        state = batch["state"]
        r = state[..., :2].norm(dim=-1)
        exponents = {name: interval[0] for name, interval in fitted.exponents.items()}
        return (
            fitted.constant[0]
            * r ** exponents["r"]
            * state[..., 4] ** exponents["m1"]
            * state[..., 5] ** exponents["m2"]
        )

    return _from_batches(data, predict)


def _from_batches(data: OrbitData, magnitude: Any) -> dict[str, Tensor]:
    columns = [central_columns(batch, magnitude(batch)) for batch in data.test_dataloader()]
    return {name: torch.cat([column[name] for column in columns]) for name in columns[0]}


def _predictor_line(
    config: dict[str, Any],
    folder: Path,
    columns: dict[str, Tensor],
    inputs: dict[str, str] | None = None,
) -> dict[str, Any]:
    """Write the prediction file and measure it."""
    model = "steps" in config or inputs  # else nothing ran on a device
    record = _manifest(config, inputs) if model else manifest(config, seed=config["seed"])
    save_predictions(folder / PREDICTIONS, columns, record)
    metrics = predictor_metrics(
        predictions.read(folder / PREDICTIONS, config["task"]), config["task"]
    )
    return {"metrics": metrics, "manifest": record, "files": _files(folder)}


def _files(folder: Path) -> dict[str, str]:
    found = {"predictions": PREDICTIONS, "curves": CURVES}
    return {
        role: f"cells/{folder.name}/{name}"
        for role, name in found.items()
        if (folder / name).is_file()
    }


def _manifest(config: dict[str, Any], inputs: dict[str, str] | None = None) -> dict[str, Any]:
    return manifest(config, seed=config["seed"], device=training.device(config), inputs=inputs)
