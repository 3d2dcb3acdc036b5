"""Settings of a process that trains or evaluates models."""

from __future__ import annotations

import logging
import os
import warnings
from typing import Any

import torch

from orbits.runs.study import Study
from worldmodel.training.allocator import keep_freed_memory


def prepare() -> None:
    """Prepare a worker: one thread, as cells run side by side, and no messages of libraries."""
    torch.set_num_threads(1)
    keep_freed_memory()
    os.environ.setdefault("PYTHONWARNINGS", "ignore")
    warnings.filterwarnings("ignore")
    logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)


def at_once() -> int | None:
    """Return the number of parallel cells of a machine: 1 on a GPU; None for one a core."""
    return 1 if torch.cuda.is_available() else None


def workers(study: Study, settings: Any) -> int | None:
    """Return the number of parallel cells of a study that trains, see :meth:`Study.workers`."""
    return at_once()
