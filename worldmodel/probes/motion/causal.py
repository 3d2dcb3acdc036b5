"""The causal probe: how predictions change when one mass is changed in the simulator.

The same system is observed twice, as it is and with another mass of the planet (m1) or of the
star (m2), and the model is given each world's own history. It has to be: a mass is no input, and
shows in nothing but how the bodies have moved, so that the factual history with another mass in
mind cannot be given. Compared are the difference of the two predictions and the difference of the
two truths, over a grid of masses:

* of a force head, the log-ratio of the forces, and the change of the force vector;
* of a next-token model, the change of the expected next place, and of its ``bend``: what is left
  of that change after a straight line through the body's last two true points. The histories of
  two worlds lie apart already, so to copy the last point gets much of the first change right; the
  second is about the acceleration.

The agreement is 1 - SSE / SST about zero: 1 for the true physics, 0 for a model that does not
notice, or of the bend for one that goes straight on; below zero is worse than that. The slope is
that of the predicted against the true change, through zero. ``tokens_changed`` is the share of
sequences in which the intervention changed what is observed at all. Of the references, ``true
orbit in bins`` is the truth to within a bin, ``orbit fit`` the ceiling of what the history in bins
allows (left out for forces where the planet's mass hardly shows: no single fit is the best
prediction then), and ``places alone`` the force from where the bodies are in the changed world and
from the masses they had before.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

import numpy as np

from orbits.arithmetic import Array
from orbits.runs import artefact
from orbits.runs.cell import Outcome
from orbits.runs.page import Picture
from orbits.runs.result import Result
from orbits.runs.statistics import bootstrap
from worldmodel.controls.names import FIT
from worldmodel.models.orbit import OrbitModel
from worldmodel.probes.base import Pieces, Probe
from worldmodel.probes.checkpoint import Checkpoint
from worldmodel.probes.motion import scatter
from worldmodel.probes.motion.held_out import HeldOutSystems, batches, joined, mean_of
from worldmodel.probes.motion.interventions import Intervention, interventions
from worldmodel.probes.motion.quantities import (
    AT_REST,
    IN_BINS,
    Changes,
    Force,
    Motion,
    Name,
    Predictions,
)
from worldmodel.probes.motion.twins import twins
from worldmodel.probes.settings import Settings

TRUTH: Name = ("true physics", "oracle")
DRAWN = 1500
"""Points that a panel draws, a sample; the numbers are of all points."""


class Causal(Probe):
    """The causal probe."""

    name = "causal"
    about = "Whether predicted motion and force change as they should when a mass is changed."
    uses = ("n_sequences", "seeds", "data_seed")
    options = ("labels",)
    asks = ("predict_next", "force")
    of = ("NextTokenModel", "ForceModel")

    def refusal(self, checkpoint: Checkpoint, settings: Settings) -> str | None:
        """Return why the probe cannot be used on a checkpoint, or None."""
        if checkpoint.leaks:
            return checkpoint.leaks
        protocol = checkpoint.protocol
        if protocol.interacting:
            return (
                f"planets of protocol {protocol.name!r} pull on each other and were sampled to "
                "keep their distance at their own masses; take fixed or identifiable"
            )
        if not protocol.is_two_body:
            return (
                f"bodies of protocol {protocol.name!r} are moved by more than their attraction, "
                "which alone is changed here; take identifiable"
            )
        least = 4 * (protocol.max_planets + 1)
        if protocol.n_points < least:
            return (
                f"with n_points={protocol.n_points} the first half may not show every body "
                f"twice; train with {least} or more"
            )
        return None

    def version(self, checkpoint: Checkpoint) -> int:
        """Return 2 of force heads, whose twin had a head that answers nothing."""
        return 1 if checkpoint.can("predict_next") else 2

    def measure(self, checkpoint: Checkpoint, settings: Settings, pieces: Pieces) -> list[Outcome]:
        """Return agreements of the model, of its untrained twin and of the references."""
        quantity = Motion() if checkpoint.can("predict_next") else Force()
        indices, protocol = np.arange(settings.n_sequences), checkpoint.protocol
        systems = protocol.systems(settings.data_seed, "test", indices, quantity.population)
        factual = HeldOutSystems(protocol, systems, quantity.labelled)
        models: dict[Name, OrbitModel] = {
            (checkpoint.variant, checkpoint.arm): checkpoint.model,
            **{(checkpoint.variant, arm): x for arm, x in twins(checkpoint, settings).items()},
        }
        own = next(iter(models))
        predictors = _Predictors(models, quantity, factual, pieces)
        before, tally = predictors.predict(factual, {}), _Tally()
        for what in pieces.progress(list(interventions(protocol, systems))):
            changed = HeldOutSystems(protocol, what.world, quantity.labelled)
            tally.observe(what, factual, changed)
            after = predictors.predict(changed, {"changed": what.changed, "mass": what.mass})
            for name, prediction in after.items():
                pairs = quantity.changes(before[name], prediction, factual, changed)
                tally.add(what, name, pairs, drawn=name == own)
        artefact.save_arrays(pieces.folder / "changes.npz", tally.sample(), {})
        return tally.outcomes(own, {"changes": "changes.npz"})

    def draw(self, results: Sequence[Result], out: Path) -> list[Picture]:
        """Draw predicted against true changes."""
        return scatter.draw_all(results, out)


class _Predictors:
    """Predictions of all models and references of a quantity; slow ones are kept in the pieces."""

    def __init__(
        self,
        models: Mapping[Name, OrbitModel],
        quantity: Force | Motion,
        factual: HeldOutSystems,
        pieces: Pieces,
    ) -> None:
        self.models, self.quantity, self.factual, self.pieces = models, quantity, factual, pieces
        self.has_fit = quantity.has_fit(factual.protocol)

    def predict(
        self, test: HeldOutSystems, world: Mapping[str, str | float]
    ) -> dict[Name, Predictions]:
        """Return all predictions on a world, which is named by plain data."""
        predictions: dict[Name, Predictions] = {}
        for name, model in self.models.items():

            def compute(model: OrbitModel = model) -> dict[str, Array]:
                predict = partial(self.quantity.model, model, test, factual=self.factual)
                return joined([predict(rows) for rows in batches(test)])

            predictions[name] = self.pieces.arrays({**world, "name": list(name)}, compute)
        if self.has_fit:
            name = (FIT, "ceiling")
            predictions[name] = self.pieces.arrays(
                {**world, "name": list(name)}, lambda: self.quantity.fitted(test, self.factual)
            )
        predictions[TRUTH] = self.quantity.truth(test)
        predictions["no change", "control"] = self.quantity.truth(self.factual)
        return {**predictions, **self.quantity.references(test, self.factual)}


class _Tally:
    """Sums over all interventions, sequence by sequence."""

    def __init__(self) -> None:
        self.sums: dict[tuple[Name, str, str], Array] = {}
        self.noticed: dict[str, list[Array]] = {}
        self.drawn: dict[str, list[Array]] = {}

    def observe(self, what: Intervention, factual: HeldOutSystems, changed: HeldOutSystems) -> None:
        """Note which sequences an intervention leaves as they were, token for token."""
        differs = np.any(factual.batch["tokens"] != changed.batch["tokens"], axis=(1, 2))
        self.noticed.setdefault(what.changed, []).append(np.where(what.counts, differs, np.nan))

    def add(self, what: Intervention, name: Name, pairs: Changes, drawn: bool) -> None:
        """Add the predicted and true changes of one intervention, and keep those to be drawn."""
        for of, (predicted, true) in pairs.items():
            products = ((predicted - true) ** 2, true**2, predicted * true)
            by_sequence = [np.sum(p, axis=tuple(range(1, p.ndim))) for p in products]
            key = (name, what.changed, of)
            table = np.stack(by_sequence, axis=-1) * what.counts[:, None]
            self.sums[key] = self.sums.get(key, 0) + table
            if drawn:
                both = np.stack([predicted, true])[:, what.counts].reshape(2, -1)
                there = both[:, np.any(both != 0, axis=0)]
                self.drawn.setdefault(f"{what.changed} {of}", []).append(there)

    def sample(self) -> dict[str, Array]:
        """Return some of the drawn points, [2, n] predicted and true, by mass and quantity."""
        samples = {}
        for name, parts in self.drawn.items():
            points = np.concatenate(parts, axis=1)
            order = np.random.default_rng(0).permutation(points.shape[1])
            samples[name] = points[:, order[:DRAWN]]
        return samples

    def outcomes(self, own: Name, files: Mapping[str, str]) -> list[Outcome]:
        """Return one outcome for each name, changed mass and quantity.

        Where the truth itself, once it is in bins, agrees with the true change less than no change
        at all, nothing can be measured: the oracle's outcomes alone remain and say so.
        """
        outcomes: list[Outcome] = []
        for (name, changed, of), table in self.sums.items():
            rounded = self.sums.get((IN_BINS, changed, of))
            visible = rounded is None or _agreement(rounded.sum(axis=0)) > 0
            variant, arm = name
            if (not visible and arm != "oracle") or ("bend" in of and name in AT_REST):
                continue
            metrics = {
                "agreement": bootstrap(table, _agreement),
                "slope": bootstrap(table, lambda s: s[..., 2] / s[..., 1]),
            }
            if name == TRUTH:
                metrics["tokens_changed"] = mean_of(np.stack(self.noticed[changed], axis=1))
            setting = {"changed": changed, "of": of}
            own_files = files if name == own else {}
            outcomes.append(
                Outcome(metrics, files=own_files, variant=variant, arm=arm, setting=setting)
            )
        return outcomes


def _agreement(sums: Array) -> Array:
    return 1 - sums[..., 0] / sums[..., 1]


PROBE = Causal()
