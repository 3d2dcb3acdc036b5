"""Cells that tell what a training costs, by formula, without making it."""

from __future__ import annotations

import torch

from benchmarks import learners
from benchmarks.newton import flops
from benchmarks.scaling import cells
from orbits.runs.cell import Cell
from orbits.runs.result import Case


def counted(training: Cell, case: Case) -> Cell:
    """Return the cell, under ``case``, of another's FLOPs and weights."""
    with torch.device("meta"):  # shapes alone
        model = learners.build(training.arguments["job"])
    arguments = {
        "flops": flops.of_cell(training).flops,
        "parameters": sum(p.numel() for p in model.parameters()),
    }
    return Cell(cells.planned, case, arguments)
