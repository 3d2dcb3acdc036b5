"""The power of distance that a world model's continuations obey: without labels or a head.

The whole question, with the prompts of other worlds, is the probe ``implied_law`` and the study
``implied``. Here each backbone is asked in its own world alone, by inference.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import lightning

from benchmarks.newton.cells import checked_orbits
from benchmarks.training import device_name, torch_device, trained
from benchmarks.training_options import Training
from orbits.runs.cell import Outcome
from worldmodel.models.orbit import NextTokenModel
from worldmodel.probes.implied import references
from worldmodel.probes.implied.asked import Prompts, own_prompts

Plain = Mapping[str, Any]


def ask(data: Plain, world: Plain, n: int, training: Plain, pretrained: Path) -> Outcome:
    """Ask a world model; arguments as for :func:`benchmarks.newton.cells.next_point`."""
    model = trained(pretrained, NextTokenModel)
    how = Training(**training)
    model.to(torch_device(how))
    prompts = _prompts(data, world, n)
    return Outcome(prompts.measured(prompts.continued(model)), device=device_name(how))


def ask_random_weights(data: Plain, world: Plain, n: int, model: Plain, seed: int) -> Outcome:
    """Ask a model with random weights."""
    lightning.seed_everything(seed, verbose=False)
    prompts = _prompts(data, world, n)
    return Outcome(prompts.measured(prompts.continued(NextTokenModel(**model).eval())))


def ask_references(data: Plain, world: Plain, n: int) -> list[Outcome]:
    """Measure the truth in bins, and continuations without a model or a law."""
    prompts = _prompts(data, world, n)
    test = prompts.test
    found = itertools.chain(
        [*references.truths(test)][1:],
        [(references.CUBIC, "control", references.cubic(test))],
        references.of_world(test, test.protocol),
    )
    return [Outcome(prompts.measured(points), variant=name) for name, _, points in found]


def _prompts(data: Plain, world: Plain, n: int) -> Prompts:
    orbits = checked_orbits(data, world)
    return own_prompts(orbits.protocol, orbits.protocol.law, orbits.hparams["seed"], n)
