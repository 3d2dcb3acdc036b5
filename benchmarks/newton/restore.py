"""Kept models as cells of a later run: checkpoints are written again from exported weights.

Kept results have no files. A later run that reads the checkpoint of a training, for a head with
other labels or an exam in another world, gets the same numbers from the weights that
:mod:`benchmarks.newton.export` put beside the results. Predictions are not kept: a further search
of formulas needs the training again.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import torch

from benchmarks import learners
from benchmarks.newton import cells
from benchmarks.newton.sentences import HEAD
from benchmarks.training import CHECKPOINT
from orbits.runs.cell import Adopted, Cell
from orbits.runs.reuse import Kept
from worldmodel.models.base import EARLIER, GPTModel
from worldmodel.models.export import read_export, write_checkpoint
from worldmodel.models.exported import PRECISION, read_config
from worldmodel.models.orbit import ForceModel, NextTokenModel
from worldmodel.models.restored import restored

MODELS = "models"
"""The folder of exported models beside kept results."""
KINDS: Mapping[Any, type[GPTModel]] = {
    cells.world_model: NextTokenModel,
    cells.force: ForceModel,
}
READERS = frozenset(("pretrained", "head"))
"""Parameters of the functions that read a checkpoint and nothing else of its cell."""


def restore(cell: Cell, kept: Kept, kinds: Mapping[Any, type[GPTModel]] = KINDS) -> Adopted | None:
    """Return a training with its checkpoint; see :meth:`orbits.runs.study.Study.restore`.

    Args:
        cell: Cell of a run.
        kept: Kept results.
        kinds: Classes of models by the function of the cells that train them.
    """
    if cell.function not in kinds:
        return None
    models = _models(kept.folder / MODELS)
    for known in (cell, *_at_home(cell)):
        if known.key in models and known.key in kept.results:
            model, config = models[known.key]
            _check(model, config, known, kinds[cell.function])
            results = [
                dataclasses.replace(result, case=cell.case, cell=cell.key)
                for result in kept.results[known.key]
            ]
            origin = config["provenance"].get("checkpoint")
            return Adopted(
                results,
                serves=READERS,
                write=partial(_write, model),
                origins={CHECKPOINT: origin} if isinstance(origin, str) else {},
            )
    return None


def _write(model: Path, folder: Path) -> None:
    write_checkpoint(model, folder / CHECKPOINT)


def _models(place: Path) -> dict[str, tuple[Path, dict[str, Any]]]:
    """Return each exported model with its configuration, by the address of its cell.

    Rounded weights are left out: they do not give the numbers of their training.
    """
    found: dict[str, tuple[Path, dict[str, Any]]] = {}
    for path in sorted(path for path in place.glob("*") if path.is_dir()):
        config = read_config(path)
        if PRECISION in config:
            continue
        key = str(config["provenance"].get("cell"))
        if key in found:
            raise ValueError(f"{path}: of the same cell as {found[key][0].name}; delete one")
        found[key] = path, config
    return found


def _at_home(cell: Cell) -> Iterable[Cell]:
    """Yield the cell by which a run in a head's own world calls the same training.

    Where another law rules, the head is ``head, LAW``; at home, it is ``pretrained``.
    """
    if cell.case.arm == f"{HEAD}{cell.case.law}":
        case = dataclasses.replace(cell.case, arm="pretrained")
        yield dataclasses.replace(cell, case=case)


def _check(model: Path, config: Mapping[str, Any], cell: Cell, kind: type[GPTModel]) -> None:
    """Refuse a model that is not of the cell that it names."""
    if config["provenance"].get("case") != cell.case.to_json():
        raise ValueError(f"{model}: its case is not that of its cell {cell.key}; export it again")
    restored(kind, read_export(model), model)
    with torch.device("meta"):
        made = learners.build(cell.arguments["job"])
    # Exported models lack the path of their backbone, and those of earlier versions some settings.
    settings = {"pretrained": None, **EARLIER, **config["settings"]}
    for name, value in json.loads(json.dumps(dict(made.hparams))).items():
        if name not in settings or settings[name] != value:
            raise ValueError(
                f"{model}: {name} is {settings.get(name)!r:.60}, that of its cell {cell.key} is "
                f"{value!r}; export it again"
            )
