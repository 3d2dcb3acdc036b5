"""Cells of the study: models, their untrained twins, controls, the truth; prompts of all worlds."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import lightning
import numpy as np
import numpy.typing as npt

from benchmarks.implied.names import FITTED, MIDDLE
from benchmarks.training import trained
from orbits import protocols
from orbits.arithmetic import Array
from orbits.implied.pulls import Pulls
from orbits.implied.within import within
from orbits.runs import artefact
from orbits.runs.cell import Outcome, Progress
from orbits.runs.statistics import Interval
from worldmodel.controls.names import BELIEVER
from worldmodel.models.orbit import NextTokenModel
from worldmodel.probes.implied import references
from worldmodel.probes.implied.asked import Prompts, own_prompts, shifted_prompts
from worldmodel.probes.motion.held_out import HeldOutSystems, mean_of

FITS, ORBITS = "fits.npz", "orbits.npz"

Plain = dict[str, Any]


def ask(
    question: Plain, worlds: Plain, pretrained: Path, fits: Path, folder: Path, progress: Progress
) -> list[Outcome]:
    """Ask a world model with the prompts of all worlds."""
    model = trained(pretrained, NextTokenModel)
    believed = artefact.load_arrays(fits / FITS)[0]
    outcomes, shown = [], dict[str, npt.NDArray]()
    prompts = list(_prompts(question, worlds))
    for number, each in enumerate(prompts):
        progress(number, len(prompts))
        rolled = each.continued(model)
        if each.is_own:
            shown |= each.shown(rolled)
        metrics = measured(each, rolled, believed[_name(each)])
        files = {"orbits": ORBITS} if each.is_own else {}
        outcomes.append(Outcome(metrics, files=files, setting=each.setting))
    artefact.save_arrays(folder / ORBITS, shown, {})
    return outcomes


def untrained(question: Plain, worlds: Plain, model: Plain, seed: int) -> list[Outcome]:
    """Test a model with random weights, which belong to no world."""
    lightning.seed_everything(seed, verbose=False)
    twin = NextTokenModel(**model).eval()
    return [
        Outcome(measured(each, each.continued(twin)), setting=each.setting)
        for each in _prompts(question, worlds)
    ]


def controls(question: Plain, worlds: Plain, law: str, folder: Path) -> list[Outcome]:
    """Test controls that learn from a world, and an observer who believes its law.

    The observer fits the orbit of that law to each prompt, whatever world the prompt is of. The
    places at the ends of these orbits are kept: how near to them does a model of this world end?
    """
    own = protocols.get(question["protocol"], question["protocol_args"][law])
    outcomes, fits = [], {}
    for each in _prompts(question, worlds):
        found = [
            Outcome(measured(each, points), variant=name, arm=arm, setting=each.setting)
            for name, arm, points in references.of_world(each.test, own)
        ]
        some = _first(each, FITTED)
        fitted = references.orbit_fit(some.test, believed=law)
        metrics = measured(some, fitted)
        believer = Outcome(metrics, variant=BELIEVER, arm="control", setting=each.setting)
        outcomes += [believer, *found]
        fits[_name(each)] = fitted
    artefact.save_arrays(folder / FITS, fits, {})
    return outcomes


def truths(question: Plain, worlds: Plain) -> list[Outcome]:
    """Measure the truth, the truth to within a bin, and extrapolations that know no world."""
    return [
        Outcome(measured(each, points), variant=name, arm=arm, setting=each.setting)
        for each in _prompts(question, worlds)
        for name, arm, points in itertools.chain(
            references.truths(each.test),
            [(references.CUBIC, "control", references.cubic(each.test))],
        )
    ]


def measured(prompts: Prompts, points: Array, fitted: Array | None = None) -> dict[str, Interval]:
    """Return the law of continuations [N, T, 2] in AU, and their errors.

    Returns:
        As :meth:`Prompts.measured`; ``exponent_near`` and ``exponent_far`` where there are two such
        sequences: a law that is no power of the distance has one exponent near and another far;
        with ``fitted`` also ``own_law_error``.
    """
    found = prompts.measured(points)
    pulls, near = prompts.pulls(points), _is_near(prompts)
    for name, chosen in (("near", near), ("far", ~near)):
        if chosen.sum() > 1:
            some = Pulls(*(column[chosen] for column in pulls))
            found[f"exponent_{name}"] = within(some)
    if fitted is not None:
        last = slice(fitted.shape[1] - 2, fitted.shape[1])
        away = np.linalg.norm(points[: len(fitted), last] - fitted[:, last], axis=-1)
        found["own_law_error"] = mean_of(away)
    return found


def _is_near(prompts: Prompts) -> npt.NDArray[np.bool_]:
    """Return which orbits are near the star in the prompt, [N]."""
    seen = prompts.test.observed[:, 1 : prompts.test.n_prompt]
    distance = np.linalg.norm(seen[:, ::2] - seen[:, 1::2], axis=-1)
    return np.asarray(np.median(distance, axis=1) < MIDDLE)


def _first(prompts: Prompts, n: int) -> Prompts:
    """Return the first of some prompts."""
    test, rows = prompts.test, np.arange(min(n, len(prompts.told)))
    some = HeldOutSystems(test.protocol, test.world.rows(rows))
    return Prompts(
        prompts.law, prompts.steps, prompts.token, some, prompts.told[rows], prompts.shift
    )


def _prompts(question: Mapping[str, Any], worlds: Mapping[str, Any]) -> Iterator[Prompts]:
    """Yield the prompts of every law, then those outside the training box."""
    n, overrides = question["n_sequences"], question["protocol_args"]
    known = {law: protocols.get(question["protocol"], overrides[law]) for law in overrides}
    for law, protocol in known.items():
        protocol.unchanged(worlds[law])
    for law, protocol in known.items():
        yield own_prompts(protocol, law, 0, n)
    outside: Sequence[str] = question["outside"]
    for law, shift in itertools.product(outside, question["shifts"]):
        yield shifted_prompts(known[law], shift, 0, n)


def _name(prompts: Prompts) -> str:
    """Return the name of the fits to some prompts."""
    return prompts.law if prompts.shift is None else f"{prompts.law} {prompts.shift}"
