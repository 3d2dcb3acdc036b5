"""Cells of the curve: measurements of a world model, and references that need no training."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.scaling.curves import FITTED
from benchmarks.training import device_name, torch_device, trained
from benchmarks.training_options import Training
from orbits import protocols, shifts
from orbits.implied.one_step import OneStep
from orbits.protocols import Protocol
from orbits.runs.cell import Outcome
from orbits.runs.statistics import Interval
from worldmodel.models.orbit import NextTokenModel
from worldmodel.probes.implied import references
from worldmodel.probes.implied.asked import Prompts, own_prompts, shifted_prompts
from worldmodel.probes.motion.held_out import HeldOutSystems, medians
from worldmodel.probes.motion.rollout import next_point

CLOSER = "closer"

Plain = Mapping[str, Any]


def measure(
    question: Plain, world: Plain, flops: float, pretrained: Path, training: Plain | None = None
) -> Outcome:
    """Measure a world model one step ahead and by its own continuations."""
    model, how = trained(pretrained, NextTokenModel), Training(**(training or {}))
    model.to(torch_device(how))
    box, closer = _prompts(question, world)
    steps, test = OneStep(box.test.protocol, box.test.world, box.first), box.test
    inside = box.measured(box.continued(model))
    outside = closer.measured(closer.continued(model))
    metrics: dict[str, float | Interval] = {
        "missed": steps.measured(medians(model, test), test.batch["coordinates"])["missed"],
        "nll": next_point(model, test.protocol, test.world)["nll"],
        "exponent_within": inside["exponent_within"],
        "exponent_closer": outside["exponent_within"],
        "flops": flops,
        "parameters": float(sum(p.numel() for p in model.parameters())),
    }
    return Outcome(metrics, device=device_name(how))


def controls(question: Plain, world: Plain) -> list[Outcome]:
    """Measure an orbit fit, and continuations without a law."""
    box, closer = _prompts(question, world)
    test, found = box.test, []
    true = test.batch["coordinates"]
    some = HeldOutSystems(test.protocol, test.world.rows(np.arange(min(FITTED, len(true)))))
    outside = {
        name: closer.measured(points)["exponent_within"]
        for name, _, points in references.continuations(closer.test, test.protocol)
    }
    inside = {
        name: box.measured(points)["exponent_within"]
        for name, _, points in references.continuations(test, test.protocol)
    }
    for name, arm, points in references.next_points(test, some):
        n = len(points)
        asked = OneStep(test.protocol, test.world.rows(np.arange(n)), box.first)
        metrics = {"missed": asked.measured(points, true[:n])["missed"]}
        if name in inside:  # else it takes single steps alone
            metrics |= {"exponent_within": inside[name], "exponent_closer": outside[name]}
        found.append(Outcome(metrics, variant=name, arm=arm))
    return found


def planned(flops: float, parameters: int) -> Outcome:
    """Return the cost of a training that is not made here, by formula."""
    return Outcome({"flops": flops, "parameters": parameters})


def _prompts(question: Plain, world: Plain) -> tuple[Prompts, Prompts]:
    """Return the prompts of the test sequences, of the training box and closer."""
    protocol = protocols.get(question["protocol"], question["protocol_args"]).unchanged(world)
    seed, n = question["seed"], question["n_test"]
    return own_prompts(protocol, protocol.law, seed, n), shifted_prompts(protocol, CLOSER, seed, n)


def check(protocol: Protocol) -> None:
    """Refuse a protocol whose orbits cannot be closer."""
    protocols.get(protocol.name, {"shift": shifts.get(CLOSER).as_plain()})
