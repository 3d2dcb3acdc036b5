"""The functions of the cells: trainings, and what models, controls and the ceiling are asked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from benchmarks import training
from benchmarks.training import CURVES
from benchmarks.training_options import Job
from benchmarks.worlds.asked import AHEAD, Asked, Continue, load_truths, mean, save_truths
from benchmarks.worlds.families import FAMILIES
from benchmarks.worlds.names import FILTER, HALF, MEMORIES, NEAREST_MEAN, PIECES, PLACES, TABLE
from benchmarks.worlds.readout import most_telling, scores
from benchmarks.worlds.steps import observed
from orbits.arithmetic import Array
from orbits.law_posterior import law_posterior
from orbits.mixture import Mixture
from orbits.runs.cell import Outcome, Progress
from worldmodel.controls.linear_autoregression import LinearAutoregression
from worldmodel.controls.orbit_pieces import STEPS, OrbitPieces
from worldmodel.controls.orbit_table import OrbitTable
from worldmodel.data.mixture import tell
from worldmodel.models.gpt_world import layer_names, layers
from worldmodel.models.mixture import MixtureModel
from worldmodel.probes.motion.held_out import (
    HeldOutSystems,
    batches,
    next_points,
    rolled_out,
    tensors,
)

SCORED = 4
"""Steps after a prompt whose next points are scored, from the true points before each."""
DATA_SEED = 0
NEAREST = {TABLE: 1, NEAREST_MEAN: 3}
"""Orbits of which a table takes the mean. Of 1, 3, 5, 10 and 20 three end nearest to the truth on
1,000 validation sequences of the mixture of ``small``, after twelve steps of prompt."""
Plain = Mapping[str, Any]
Worlds = Sequence[Plain]
States = dict[str, Array]
"""States of sequences by layer, [N, d]."""


def world_model(job: Job, world: Plain, folder: Path, scratch: Path, progress: Progress) -> Outcome:
    """Train a world model on a mixture; keep its checkpoint and curves."""
    training.train(job, folder, scratch, progress)
    metrics = {"val_nll": training.last_value(folder / CURVES, "val_loss")}
    return Outcome(metrics, files={"curves": CURVES}, device=training.device(job))


def truths(
    world: Plain, tested: Worlds, prompts: Sequence[int], n_test: int, folder: Path
) -> list[Outcome]:
    """Measure the exponents of true orbits in bins, in units of which S is."""
    asked = Asked.of(world, tested, prompts, n_test)
    found = [asked.own_path(x, lambda test, rows: test.observed) for x in asked.settings]
    save_truths(folder, [exponents for exponents, _ in found])
    return [
        Outcome(asked.measured(each, each[0]), setting=setting)
        for setting, each in zip(asked.settings, found, strict=True)
    ]


def ask_model(
    world: Plain,
    tested: Worlds,
    prompts: Sequence[int],
    n_test: int,
    mixture: Sequence[float],
    span: Sequence[float],
    n_read: int,
    pretrained: Path,
    truths: Path,
) -> list[Outcome]:
    """Ask a trained world model."""
    model = training.trained(pretrained, MixtureModel)
    asked = Asked.of(world, tested, prompts, n_test)
    return _asked_model(model, asked, mixture, span, n_read, truths)


def ask_random_weights(
    world: Plain,
    tested: Worlds,
    prompts: Sequence[int],
    n_test: int,
    mixture: Sequence[float],
    span: Sequence[float],
    n_read: int,
    job: Job,
    truths: Path,
) -> list[Outcome]:
    """Ask a model with random weights, those that a training of its job starts from."""
    model = training.untrained(job, MixtureModel)
    asked = Asked.of(world, tested, prompts, n_test)
    return _asked_model(model, asked, mixture, span, n_read, truths)


def ask_control(
    world: Plain,
    tested: Worlds,
    prompts: Sequence[int],
    n_test: int,
    mixture: Sequence[float],
    span: Sequence[float],
    n_read: int,
    n_table: int,
    control: str,
    truths: Path,
) -> list[Outcome]:
    """Ask what has no world model: a table or a linear filter of the mixture, or a read-out."""
    asked = Asked.of(world, tested, prompts, n_test)
    worlds = Mixture(asked.protocol, tuple(mixture))
    if control in (*MEMORIES, FILTER):
        continued = _without_model(control, worlds, prompts, n_table)
        return _own_paths(asked, continued, truths, STEPS if control == PIECES else 0)
    read, unseen = _reading(worlds, n_read, n_test)
    decode = asked.protocol.tokens.decode
    outcomes = []
    for steps in prompts:
        rows = slice(1, 1 + 2 * steps)
        known = [{PLACES: _places(decode(x["tokens"][:, rows]))} for x in (read, unseen)]
        places = [{PLACES: _places(test.observed[:, rows])} for test in asked.worlds]
        exponents = read["exponent"], unseen["exponent"]
        metrics = _read_out(asked, known, exponents, places, span)
        outcomes.append(Outcome(metrics, setting={"prompt": steps}))
    return outcomes


def ask_family(
    world: Plain,
    tested: Worlds,
    prompts: Sequence[int],
    n_test: int,
    truths: Path,
    pretrained: Path | None = None,
    job: Job | None = None,
) -> list[Outcome]:
    """Ask a model for worlds of another family; one of random weights where there is a job."""
    model = training.trained_or_not(pretrained, job, MixtureModel)

    def continued(test: HeldOutSystems, rows: int) -> Array:
        seen = {name: test.batch[name] for name in ("tokens", "coordinates")}
        return continuation(model, test, seen, rows)

    return _own_paths(Asked.of(world, tested, prompts, n_test), continued, truths)


def ask_family_control(
    world: Plain,
    tested: Worlds,
    prompts: Sequence[int],
    n_test: int,
    mixture: Sequence[float],
    further: Sequence[str],
    n_table: int,
    control: str,
    truths: Path,
) -> list[Outcome]:
    """Ask what has no world model for worlds of another family."""
    asked = Asked.of(world, tested, prompts, n_test)
    worlds = Mixture(asked.protocol, tuple(mixture), tuple(further))
    return _own_paths(asked, _without_model(control, worlds, prompts, n_table), truths)


def ask_ceiling(
    world: Plain,
    tested: Worlds,
    prompts: Sequence[int],
    n_test: int,
    n_fitted: int,
    fitted: Sequence[float],
    truths: Path,
    progress: Progress,
    family: str | None = None,
) -> list[Outcome]:
    """Ask the observer who fits orbits under each law and weighs laws by their evidence.

    Of a family with a parameter he knows the family; what is fitted are powers of ten of it.
    """
    few = Asked.of(world, tested, prompts, n_fitted)
    outcomes, done = [], 0
    known = load_truths(truths)
    for number, steps in enumerate(prompts):
        found = {}
        for test, value in zip(few.worlds, few.values, strict=True):
            asked = test.protocol, test.world, 2 * steps, tuple(fitted)
            found[test.protocol.law] = (
                law_posterior(*asked)
                if family is None
                else law_posterior(*asked, FAMILIES[family].name, np.log10(value))
            )
            done += 1
            progress(done, len(prompts) * len(few.worlds))

        def continued(test: HeldOutSystems, rows: int, found: Any = found) -> Array:
            points = test.observed.copy()
            points[:, rows:] = found[test.protocol.law].points[:, rows - 1 :]
            return points

        each = list(found.values())
        grid = each[0].exponents
        metrics: dict[str, Any] = {
            **few.measured(few.own_path({"prompt": steps}, continued), known[number])
        }
        if family is None:
            metrics |= _scored(few, grid, [x.density for x in each])
            covered = [
                scores(grid, x.density, exponent)["coverage"]
                for x, exponent in zip(each, few.values, strict=True)
            ]
            metrics["coverage"] = mean(np.concatenate(covered))
        outcomes.append(Outcome(metrics, setting={"prompt": steps}))
    return outcomes


def _asked_model(
    model: MixtureModel,
    asked: Asked,
    mixture: Sequence[float],
    span: Sequence[float],
    n_read: int,
    truths: Path,
) -> list[Outcome]:
    """Return own paths, nats of next points and the law read-out.

    A model that is told the law is the read-out's positive control: there it must find the law.
    """
    told = bool(model.hparams["told"])

    def continued(test: HeldOutSystems, rows: int) -> Array:
        return continuation(model, test, observed(asked, test, told), rows)

    outcomes = _own_paths(asked, continued, truths)
    prompts = sorted({outcome.setting["prompt"] for outcome in outcomes})
    found = [_in_parts(model, observed(asked, test, told), prompts) for test in asked.worlds]
    read, unseen = _reading(Mixture(asked.protocol, tuple(mixture)), n_read, asked.n_test)
    if told:
        for each in (read, unseen):
            tell(each["coordinates"], each["exponent"])
    known = [_in_parts(model, each, prompts, nll=False)[1] for each in (read, unseen)]
    exponents = read["exponent"], unseen["exponent"]
    complete = []
    for outcome in outcomes:
        if outcome.setting.get("time step") == HALF:
            complete.append(outcome)
            continue
        steps = outcome.setting["prompt"]
        rows = slice(1 + 2 * steps, 1 + 2 * (steps + SCORED))
        nats = [nll[:, rows].mean(axis=1) for nll, _ in found]
        metrics = {**outcome.metrics, **asked.both_kinds("nll", nats)}
        states = [each[steps] for _, each in found]
        metrics |= _read_out(asked, [each[steps] for each in known], exponents, states, span)
        complete.append(Outcome(metrics, setting=outcome.setting))
    return complete


def continuation(
    model: MixtureModel, test: HeldOutSystems, batch: Mapping[str, npt.NDArray], n_prompt: int
) -> Array:
    """Return observed rows and a model's continuation of them by likeliest bins.

    Args:
        model: The model.
        test: The systems.
        batch: What it sees of them.
        n_prompt: Rows that are shown, with row 0; as many steps are continued as the longest
            prompt has.

    Returns:
        Places in AU, [N, n_prompt + 2 AHEAD, 2]; zero in row 0.
    """
    end = n_prompt + 2 * AHEAD
    parts = [
        rolled_out(model, {k: v[each, :end] for k, v in batch.items()}, n_prompt)
        for each in batches(test)
    ]
    return np.concatenate(parts)


def _without_model(control: str, worlds: Mixture, prompts: Sequence[int], n_table: int) -> Continue:
    """Return what continues prompts by orbits or a linear filter of a mixture."""
    if control == PIECES:
        table = OrbitTable(worlds, DATA_SEED, n_table, max(prompts))
        pieces = OrbitPieces(worlds.protocol, DATA_SEED, table.orbits)
        return lambda test, rows: pieces.rollout(test.observed, rows)
    makers: dict[int, Any] = {
        steps: LinearAutoregression(worlds, DATA_SEED, steps)
        if control == FILTER
        else OrbitTable(worlds, DATA_SEED, n_table, steps, NEAREST[control])
        for steps in prompts
    }
    return lambda test, rows: makers[rows // 2].rollout(test.observed, rows)


def _own_paths(asked: Asked, continued: Continue, truths: Path, shortest: int = 0) -> list[Outcome]:
    """Return the exponents of continuations in each setting, beside those of true orbits.

    Prompts of fewer steps than ``shortest`` are left out.
    """
    return [
        Outcome(asked.measured(asked.own_path(setting, continued), truth), setting=setting)
        for setting, truth in zip(asked.settings, load_truths(truths), strict=True)
        if setting["prompt"] >= shortest
    ]


@torch.no_grad()
def _in_parts(
    model: MixtureModel,
    batch: Mapping[str, npt.NDArray],
    prompts: Sequence[int],
    nll: bool = True,
) -> tuple[Array, dict[int, States]]:
    """Return nats of rows [N, T], zeros unless asked for, and states at the end of each prompt."""
    nats: list[Array] = []
    names = layer_names(model)
    states: dict[int, dict[str, list[Array]]] = {x: {name: [] for name in names} for x in prompts}
    for start in range(0, len(batch["tokens"]), 250):
        some = {k: batch[k][start : start + 250] for k in ("tokens", "coordinates")}
        for name, layer in zip(names, layers(model, tensors(model, some)), strict=True):
            for steps in prompts:
                states[steps][name].append(layer[:, 2 * steps].float().cpu().numpy())
        nats.append(next_points(model, some)["nll"] if nll else np.zeros(some["tokens"].shape[:2]))
    joined = {
        steps: {name: np.concatenate(parts) for name, parts in each.items()}
        for steps, each in states.items()
    }
    return np.concatenate(nats), joined


def _reading(
    worlds: Mixture, n_read: int, n_test: int
) -> tuple[dict[str, npt.NDArray], dict[str, npt.NDArray]]:
    """Return sequences of the mixture that no training sees: for fitting, and for testing."""
    return (
        worlds.streamed(DATA_SEED, "val", range(n_read)),
        worlds.streamed(DATA_SEED, "test", range(n_test)),
    )


def _places(points: Array) -> Array:
    """Return what a prompt [N, P, 2] shows of an orbit's shape, [N, P - 1].

    Planet - star at each step over that of the first, as complex numbers, so that neither the size
    of an orbit nor its direction counts; and the logarithm of the first distance.
    """
    bodies = (points[..., 0] + 1j * points[..., 1]).reshape(len(points), -1, 2)
    relative = bodies[:, :, 0] - bodies[:, :, 1]
    first = np.where(np.abs(relative[:, :1]) > 0, relative[:, :1], 1.0)
    shape = relative[:, 1:] / first
    return np.hstack([shape.real, shape.imag, np.log(np.abs(first))])


def _read_out(
    asked: Asked,
    known: Sequence[States],
    exponents: Sequence[Array],
    tested: Sequence[States],
    span: Sequence[float],
) -> dict[str, Any]:
    """Return the scores of a read-out in the test worlds, and its coverage in the mixture.

    A posterior covers what it should where laws are drawn as its prior has them, not in one world.

    Args:
        asked: The test worlds.
        known: States of sequences of the mixture: those that read-outs are fitted to, and others.
        exponents: Their exponents.
        tested: States of each test world.
        span: Least and largest exponent that is held possible.
    """
    layer, fitted, explained = most_telling(known[0], exponents[0], *span)
    covered = scores(fitted.grid, fitted.density(known[1][layer]), exponents[1])["coverage"]
    found = _scored(asked, fitted.grid, [fitted.density(states[layer]) for states in tested])
    shares = {f"explained@{name}": share for name, share in explained.items()}
    return {**found, "coverage": mean(covered), **shares}


def _scored(asked: Asked, grid: Array, densities: Sequence[Array]) -> dict[str, Any]:
    """Return the scores of law posteriors, over worlds of the training and those held out."""
    each = [scores(grid, d, x) for d, x in zip(densities, asked.values, strict=True)]
    found: dict[str, Any] = {}
    for name in ("log_score", "crps"):
        found |= asked.both_kinds(name, [one[name] for one in each])
    return found
