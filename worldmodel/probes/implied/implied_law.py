"""The implied-law probe: which law do a world model's own continuations of orbits obey?

No label, no head and no search. A model continues prompts of several worlds by its likeliest bins,
and what is asked is not whether it follows the truth but which power of the distance its own orbits
obey, along each orbit alone (:mod:`orbits.implied`). In its own world it is also asked by single
steps: the kick behind the median of its next place, with the constant, the share of the kick that
is missed, and the ratio of action to reaction. Time steps are those of other worlds, too, so that
an answer cannot come from them; and orbits of its world that are closer or more eccentric than any
in its training ask whether the law goes further than the training did.

Two further questions have to be asked for. If ``--law`` names another world, single steps are asked
in all worlds of the prompts, beside an observer who believes the law of the training and fits all
that he saw: his kick holds the misfit of his orbit, and an exponent there may name nobody's law.
With ``--draws`` rows are drawn from the distribution, too, of continuations, and of true paths one
step at a time, which tell what the noise of a draw alone does.

A continuation that obeys a law is no proof that its maker holds the law. The nearest training
orbit, pasted to a prompt of another world, obeys the law of the training exactly: the exponent
alone does not tell a law from a table of orbits. The exponents of the masses tell nothing at all:
every extrapolator has them.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from orbits.arithmetic import Array
from orbits.implied.cells import implied_forces, path_forces
from orbits.implied.one_step import OneStep
from orbits.runs import artefact
from orbits.runs.cell import Outcome
from orbits.runs.manifest import manifest
from orbits.runs.page import Picture
from orbits.runs.result import Result
from orbits.runs.statistics import Interval
from worldmodel.models.orbit import NextTokenModel, OrbitModel
from worldmodel.probes.base import Pieces, Probe
from worldmodel.probes.checkpoint import Checkpoint
from worldmodel.probes.implied import asked, figures, further, references, words
from worldmodel.probes.implied.asked import Prompts, all_prompts
from worldmodel.probes.implied.names import DRAWS, GIVEN, ONE_STEP, SHIFT, STEPS_OF, TOKEN_OF
from worldmodel.probes.motion.held_out import HeldOutSystems, expectations, medians, spreads
from worldmodel.probes.settings import LEAST_CELLS, Settings

FITTED = 150
"""Sequences at most whose orbits are fitted for single steps, two dozen times each."""
PREDICTIONS = "forces-{}.npz"
"""Name of a prediction file, by whose forces it holds, and in which world if not that of the
training."""
KICKS, CHOSEN, PATHS = "implied", "chosen", "paths"
"""Arms of the leaderboard: forces behind single predicted steps, those of them that stand out of a
model's own spread, and those of continued paths."""


class ImpliedLaw(Probe):
    """The implied-law probe."""

    name = "implied_law"
    about = (
        "Which power of the distance its own continuations obey, along each orbit alone (rollout), "
        "and the kicks behind its next places (one step). Exponents of masses are no evidence."
    )
    uses = ("n_sequences", "seeds", "data_seed", "cells")
    options = ("draws", "least_signal")
    asks = ("predict_next",)
    of = ("NextTokenModel",)

    def refusal(self, checkpoint: Checkpoint, settings: Settings) -> str | None:
        """Return why a checkpoint cannot be asked, or None."""
        if settings.draws and not isinstance(checkpoint.model, NextTokenModel):
            return "it has no distribution to draw from; take a NextTokenModel or draws 0"
        worlds = (checkpoint.trained_on, checkpoint.protocol)
        reasons = (asked.refusal(dataclasses.replace(x, label_leak=0)) for x in worlds)
        return next(filter(None, reasons), None)

    def version(self, checkpoint: Checkpoint) -> int:
        """Return 4, or 5 in another world, where version 1 asked single steps of the own one alone.

        The version before has no shorter extrapolations and no tails of errors.
        """
        return 4 if checkpoint.law == checkpoint.trained_on.law else 5

    def measure(self, checkpoint: Checkpoint, settings: Settings, pieces: Pieces) -> list[Outcome]:
        """Return the laws of the model's paths and steps, of its twin's and of the references'."""
        others = (checkpoint.trained_on.law, checkpoint.law)
        n, seed = settings.n_sequences, settings.data_seed
        twins = checkpoint.twins(settings.seeds[0])
        outcomes: list[Outcome] = []
        shown: dict[str, npt.NDArray] = {}
        prompts = list(all_prompts(checkpoint.trained_on, others, seed, n))
        for each in pieces.progress(prompts):
            rolled = each.continued(checkpoint.model)
            if each.is_own:
                shown |= each.shown(rolled)
            outcomes += _asked(each, checkpoint, rolled, twins, settings, pieces.folder)
            if each.is_own and settings.draws:
                outcomes += _drawn(each, checkpoint.model, settings)
        artefact.save_arrays(pieces.folder / "orbits.npz", shown, {})
        own = {each.law: each.test for each in prompts if each.is_own}
        home = checkpoint.trained_on.law
        for law in (home,) if checkpoint.law == home else dict.fromkeys((home, *own)):
            outcomes += _one_step(own[law], checkpoint, twins, settings, pieces)
        return outcomes

    def parts(self, results: Sequence[Result]) -> dict[str, list[Result]]:
        """Return the results of each table by its title."""
        own = [result for result in results if words.is_own(result)]
        steps = [result for result in results if result.case.setting["asked"] == ONE_STEP]
        moved = [x for x in results if {STEPS_OF, TOKEN_OF} & set(x.case.setting)]
        home = [x for x in steps if words.is_home(x)]
        drawn = [x for x in results if DRAWS in x.case.setting]
        return {
            "Continued orbits: the law of the path": own,
            "The same outside the training box": [x for x in results if SHIFT in x.case.setting],
            "The same at time steps of other worlds": moved,
            "Drawn from the predicted distribution": drawn,
            "One predicted step in the world of the training": home,
            "One predicted step in another world": [x for x in steps if not words.is_home(x)],
        }

    def answers(self, results: Sequence[Result]) -> list[str]:
        """Return by which law each model continues orbits, and what a table of orbits does."""
        return [*words.answers(results), *further.answers(results)]

    def draw(self, results: Sequence[Result], out: Path) -> list[Picture]:
        """Draw exponents by prompt, and prompts as they are continued."""
        return figures.draw_all(results, out)


def _asked(
    prompts: Prompts,
    checkpoint: Checkpoint,
    rolled: Array,
    twins: Mapping[str, OrbitModel],
    settings: Settings,
    folder: Path,
) -> list[Outcome]:
    """Return the exponents of rollouts, and leave the forces of those at home if asked.

    References are asked with their own time steps.
    """
    at_home = prompts.is_own and prompts.law == checkpoint.trained_on.law

    def outcome(points: Array, name: str | None = None, arm: str | None = None) -> Outcome:
        found = prompts.measured(points)
        if prompts.is_own:
            found |= prompts.otherwise(points)
        files = {"orbits": "orbits.npz"} if prompts.is_own and arm is None else {}
        if at_home and settings.cells:
            world = prompts.test.world
            masses = world.planet_mass[:, 0], world.star_mass
            forces = path_forces(prompts.pulls(points), *masses, settings.cells)
            row = _row(PATHS, name, arm, prompts.law)
            if np.sum(forces["force_predicted"] > 0) >= LEAST_CELLS:  # else there is no attraction
                kept = _keep(forces, checkpoint, row, settings, folder)
                files["predictions of paths"] = kept.name
        return Outcome(found, variant=name, arm=arm, files=files, setting=prompts.setting)

    outcomes = [outcome(rolled)]
    others = list(references.truths(prompts.test))
    if prompts.is_own or prompts.shift:
        others += references.continuations(prompts.test, checkpoint.trained_on)
        outcomes += [outcome(prompts.continued(twin), arm=arm) for arm, twin in twins.items()]
    elif prompts.steps == prompts.law:
        others = []  # the places are those of the prompt that is told its own step
    return outcomes + [outcome(points, name, arm) for name, arm, points in others]


def _drawn(prompts: Prompts, model: OrbitModel, settings: Settings) -> list[Outcome]:
    """Return the exponents of draws: of the model's own paths, and of true ones with its errors."""
    asked = settings.draws, settings.data_seed
    setting = {**prompts.setting, DRAWS: settings.draws}
    own, given = prompts.drawn(model, *asked), prompts.drawn_next(model, *asked)
    return [
        Outcome(prompts.measured_together(own), setting=setting),
        Outcome(prompts.measured_together(given), setting={**setting, GIVEN: "true places"}),
    ]


def _one_step(
    test: HeldOutSystems,
    checkpoint: Checkpoint,
    twins: Mapping[str, OrbitModel],
    settings: Settings,
    pieces: Pieces,
) -> list[Outcome]:
    """Return the laws of single steps, and leave the implied forces if asked."""
    home = checkpoint.trained_on.law
    setting = {"asked": ONE_STEP, "prompt": test.protocol.law}
    steps = OneStep(test.protocol, test.world, (test.n_prompt - 1) // 2)
    true = test.batch["coordinates"]

    def outcome(
        asked: OneStep,
        points: Array,
        name: str | None,
        arm: str | None,
        mean: Array | None = None,
        spread: Array | None = None,
    ) -> Outcome:
        files = {}
        if settings.cells:
            law = test.protocol.law
            row = _row(KICKS, name, arm, law)
            found = implied_forces(asked, points, settings.cells)
            if np.sum(found["force_predicted"] > 0) >= LEAST_CELLS:  # else there is no attraction
                path = _keep(found, checkpoint, row, settings, pieces.folder)
                files = {"predictions" if law == home else f"predictions {law}": path.name}
            if spread is not None and law == home:
                found = implied_forces(asked, points, spread.size, spread, settings.least_signal)
                if np.sum(found["force_predicted"] > 0) >= LEAST_CELLS:
                    row = _row(CHOSEN, name, arm, law)
                    path = _keep(found, checkpoint, row, settings, pieces.folder)
                    files["predictions of chosen points"] = path.name
        metrics: dict[str, float | Interval] = {**asked.measured(points, true[: len(points)])}
        metrics["exponent_least_squares"] = asked.exponent_least_squares(points)
        if mean is not None:
            metrics["exponent_expected"] = asked.exponent(mean)
            metrics["exponent_expected_least_squares"] = asked.exponent_least_squares(mean)
            metrics["tail_error"] = asked.tail(points, true)
            metrics["tail_error_expected"] = asked.tail(mean, true)
        return Outcome(metrics, variant=name, arm=arm, files=files, setting=setting)

    def own_spread(some: OrbitModel) -> Array | None:
        if not settings.least_signal:
            return None
        found = spreads(some, test)
        return found if found.any() else None  # else it predicts a single place

    model = checkpoint.model
    outcomes = [
        outcome(
            steps, medians(model, test), None, None, expectations(model, test), own_spread(model)
        ),
        *(
            outcome(steps, medians(twin, test), None, arm, spread=own_spread(twin))
            for arm, twin in twins.items()
        ),
    ]
    fitted = HeldOutSystems(test.protocol, test.world.rows(np.arange(FITTED)[: len(true)]))
    some = OneStep(test.protocol, fitted.world, steps.first)
    others = (
        *references.truths(test),
        *references.next_points(test, fitted, checkpoint.trained_on),
        *references.shorter_extrapolations(test),
    )
    for name, arm, points in others:
        outcomes.append(outcome(steps if len(points) == len(true) else some, points, name, arm))
    return outcomes


def _row(how: str, name: str | None, arm: str | None, law: str) -> dict[str, str]:
    """Return how a row of the leaderboard is told from others; no head was trained."""
    row = {"arm": f"{how}, {arm}" if arm else how}
    return {**row, **({"model": name} if name else {}), "law": law}


def _keep(
    forces: Mapping[str, Array],
    checkpoint: Checkpoint,
    row: Mapping[str, str],
    settings: Settings,
    folder: Path,
) -> Path:
    """Write implied forces as a prediction file of the leaderboard, and return its path."""
    config = {
        "probe": ImpliedLaw.name, "row": {**checkpoint.row, **row}, "cells": settings.cells,
    }  # fmt: skip
    if settings.least_signal:
        config["least_signal"] = settings.least_signal
    proof = manifest(config, seed=settings.data_seed, inputs={"checkpoint": checkpoint.sha256})
    at_home = row["law"] == checkpoint.trained_on.law
    told = [value for key, value in row.items() if key != "law" or not at_home]
    whose = re.sub(r"[^\w.]+", "-", "-".join(told))  # names have blanks, one an apostrophe
    path = folder / PREDICTIONS.format(whose)
    columns = {"sequence_id": np.arange(len(forces["r"])), **forces}
    artefact.save_arrays(path, columns, proof)
    return path


PROBE = ImpliedLaw()
