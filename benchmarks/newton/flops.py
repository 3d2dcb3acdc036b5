"""Cost of a run, known before it starts: parameters, sequences, rows and FLOPs of training.

For each row of a sequence, forward and backward take 6 FLOPs per weight of a matrix (2 forward, 4
backward; Kaplan et al. 2020, arXiv:2001.08361, section 2.1), and 12 per layer and channel for
each row that it attends to: 4 forward, for QK and AV, and 8 backward (Chowdhery et al. 2022,
arXiv:2204.02311, appendix B). A causal mask leaves half of those rows, and every variant is
counted as full causal attention, linear mixers too, which cost less where rows are long. Muon adds
its orthogonalisation, once a step and device.

Left out are operations on single elements, and forward passes over some thousand sequences a
cell: validation, prediction, and the read-out of an untrained backbone.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Iterable
from dataclasses import astuple, dataclass

import torch
from torch import nn

from benchmarks import learners
from benchmarks.training_options import Job, options
from orbits import protocols
from orbits.runs.cell import Cell
from orbits.runs.table import Table
from worldmodel.models.orbit import NextTokenModel, OrbitModel

NEWTON_SCHULZ_STEPS = 5
"""Steps of the orthogonalisation in :class:`torch.optim.Muon`."""

MODEL = ("learner", "model", "lr", "steps", "direction_weight")
"""Parts of a job that determine its model."""
DATA = ("population", "exponents", "told")
"""Parts of its data that do."""


@dataclass(frozen=True)
class Cost:
    """The cost of training; costs add up.

    Attributes:
        models: Models trained.
        sequences: Sequences seen, each as often as it is.
        rows: Rows of these sequences: observed points, a token for x and one for y each.
        flops: Floating-point operations.
    """

    models: int = 0
    sequences: int = 0
    rows: int = 0
    flops: float = 0.0

    def __add__(self, other: Cost) -> Cost:
        return Cost(*(a + b for a, b in zip(astuple(self), astuple(other), strict=True)))


def of_cell(cell: Cell) -> Cost:
    """Return the cost of training one cell; no cost, if it trains nothing."""
    job = cell.arguments.get("job")
    if job is None:
        return Cost()
    model, data = _model(job), job["data"]
    rows = 1 + protocols.get(data["protocol"], data["protocol_args"]).n_points
    shares = job["steps"] * options(job).devices
    sequences = shares * job["data"]["batch_size"]
    flops = sequences * sequence_flops(model, rows) + shares * optimizer_flops(model)
    return Cost(1, sequences, sequences * rows, flops)


def sequence_flops(model: OrbitModel, rows: int) -> float:
    """Return the FLOPs of one sequence, forward and backward.

    The first row is not predicted, and a force is read at the planet's rows of the second half.
    """
    answered = rows - 1 if isinstance(model, NextTokenModel) else rows // 4
    inner = rows * (_weights(model.embedding) + _weights(model.gpt))
    attended = rows * (rows + 1) / 2
    attention = 12 * len(model.gpt.blocks) * model.gpt.width * attended
    return 6 * (inner + answered * _weights(model.get_submodule("head"))) + attention


def optimizer_flops(model: OrbitModel) -> float:
    """Return the FLOPs of one step of Muon, or 0.

    A matrix of m rows and n >= m columns takes, a step of Newton-Schulz: X X' and B X, 2 m m n
    each, and A A, 2 m m m (Jordan et al. 2024, kellerjordan.github.io/posts/muon).
    """
    if model.hparams["optimizer"] != "muon":
        return 0.0
    shapes = (sorted(layer.weight.shape) for layer in _matrices(model.gpt.blocks))
    return NEWTON_SCHULZ_STEPS * sum(4.0 * m * m * n + 2.0 * m**3 for m, n in shapes)


def table(grid: Iterable[Cell], tflops: float | None = None) -> str:
    """Return the cost of training the cells of a run, for printing.

    Args:
        grid: The cells; those that train nothing cost nothing.
        tflops: Assumed throughput of all devices together, in 10^12 FLOPs a second; with it, the
            table ends in an estimate of the time.
    """
    if tflops is not None and not tflops > 0:
        raise ValueError(f"the throughput must be positive, got {tflops}")
    parameters: dict[str, int] = {}
    costs: dict[str, Cost] = {}
    for cell in grid:
        if "job" in cell.arguments:
            weights = sum(p.numel() for p in _model(cell.arguments["job"]).parameters())
            name, arm = cell.case.variant, cell.case.arm
            parameters[name] = max(weights, parameters.get(name, 0))
            costs[arm] = costs.get(arm, Cost()) + of_cell(cell)
    total = sum(costs.values(), Cost())
    sizes = [(name, f"{number:,}") for name, number in parameters.items()]
    spent = [
        (arm, str(cost.models), *(f"{x:.3g}" for x in astuple(cost)[1:]))
        for arm, cost in [*costs.items(), ("all", total)]
    ]
    lines = [
        Table.of_text("", ("model", "parameters"), sizes).to_text(),
        Table.of_text("", ("arm", "models", "sequences", "rows", "FLOPs"), spent).to_text(),
        "A row is one observed point: a token for x and one for y.",
    ]
    if tflops is not None:
        hours = total.flops / (tflops * 1e12) / 3600
        lines += [f"At {tflops:g} TFLOP/s, training takes {hours:.3g} hours."]
    return "\n".join(lines)


def _model(job: Job) -> OrbitModel:
    # Jobs differ in seeds and budgets, which do not change the model.
    named = {name: job[name] for name in MODEL if name in job}  # type: ignore[literal-required]
    data = {name: job["data"][name] for name in DATA if name in job["data"]}
    return _built(json.dumps({**named, "seed": 0, "data": data}))


@functools.cache
def _built(job: str) -> OrbitModel:
    with torch.device("meta"):  # shapes alone
        model = learners.build(json.loads(job))
    assert isinstance(model, OrbitModel)
    return model


def _weights(module: nn.Module) -> int:
    return sum(layer.weight.numel() for layer in _matrices(module))


def _matrices(module: nn.Module) -> Iterable[nn.Linear]:
    return (layer for layer in module.modules() if isinstance(layer, nn.Linear))
