"""What changes in a model's answers when one mass is changed in the simulator.

The same system is observed twice, as it is and with another mass of the planet (m1) or of the
star (m2), and the model is given each world's own history. It has to be: a mass is no input, and
shows in nothing but how the bodies have moved, so that the factual history with another mass in
mind is a question that cannot be put. Compared are the difference of the two answers and the
difference of the two truths, over a grid of masses:

* of a force head, the log-ratio of the forces, and the change of the force vector;
* of a next-token model, the change of the expected next place, and of its ``bend``: what is left
  of that change after a straight line through the body's last two true points. The histories of
  two worlds lie apart already, so to copy the last point answers much of the first question; the
  second is about the acceleration.

The agreement is 1 - SSE / SST about zero: 1 for the true physics, 0 for a model that does not
notice, or of the bend for one that goes straight on; below zero is worse than that. The slope is
that of the predicted against the true change, through zero. ``tokens_changed`` is the share of
sequences in which the intervention changed what is observed at all. Of the references, ``true
orbit in bins`` is the truth as exactly as an answer in bins can say it, ``orbit fit`` the ceiling
of what the history in bins allows (left out for forces where the planet's mass hardly shows: no
single fit is the best answer then), and ``places alone`` the force from where the bodies are in the
changed world and from the masses they had before.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from orbits import artefacts
from orbits.arithmetic import Array
from orbits.manifest import manifest
from worldmodel.intervals import bootstrap
from worldmodel.probes import Line, _motion_scatter
from worldmodel.probes._motion_held import Held, batches, mean_of
from worldmodel.probes._motion_interventions import Intervention, interventions
from worldmodel.probes._motion_questions import (
    AT_REST,
    IN_BINS,
    Answers,
    Changes,
    Force,
    Motion,
    Who,
)
from worldmodel.probing import Settings, Store, Subject
from worldmodel.tasks import ForceTask, NextTokenTask

TRUTH: Who = ("true physics", "oracle")
DRAWN = 1500
"""Points of a panel: a figure shows a sample, the numbers are of all."""


class Causal:
    """The probe; see the module."""

    name = "causal"
    about = "Whether predicted motion and force change as they should when a mass is changed."
    uses = ("n_sequences", "seeds", "data_seed")
    trains = False
    captions: Mapping[str, str] = _motion_scatter.CAPTIONS

    def refusal(self, subject: Subject, settings: Settings) -> str | None:
        """Return why a checkpoint cannot be asked, or None."""
        if subject.leaks:
            return subject.leaks
        if not isinstance(subject.task, NextTokenTask | ForceTask):
            return (
                f"a {type(subject.task).__name__} predicts neither motion nor force; take a "
                "NextTokenTask or a ForceTask"
            )
        protocol = subject.protocol
        if protocol.interacting:
            return (
                f"planets of protocol {protocol.name!r} pull on each other and were sampled to "
                "keep their distance at their own masses; take fixed or identifiable"
            )
        least = 4 * (protocol.max_planets + 1)
        if protocol.n_points < least:
            return (
                f"with n_points={protocol.n_points} the first half may not show every body "
                f"twice; train with {least} or more"
            )
        return None

    def measure(self, subject: Subject, settings: Settings, store: Store) -> list[Line]:
        """Return lines of the model, of its untrained twin and of the references."""
        question = Force() if isinstance(subject.task, ForceTask) else Motion()
        indices = np.arange(settings.n_sequences)
        systems = subject.protocol.systems(settings.data_seed, "test", indices, question.population)
        factual = Held(subject.protocol, systems, question.labelled)
        asked = _Asked(subject, question, factual, settings, store)
        before, tally = asked.answers(factual, {}), _Tally()
        for what in store.progress(list(interventions(subject.protocol, systems)), "masses"):
            changed = Held(subject.protocol, what.world, question.labelled)
            tally.observe(what, factual, changed)
            after = asked.answers(changed, {"changed": what.changed, "mass": what.mass})
            for who, answer in after.items():
                pairs = question.changes(before[who], answer, factual, changed)
                tally.add(what, who, pairs, drawn=who == asked.model)
        path = store.file("changes.npz")
        artefacts.save_arrays(path, tally.sample(), manifest(asked.piece, seed=settings.seeds[0]))
        lines = tally.lines()
        for line in lines:
            if (line["name"], line["arm"]) == asked.model:
                line["files"] = {"changes": store.relative(path)}
        return lines

    def draw(self, lines: Sequence[Line], out: Path) -> dict[str, Path]:
        """Draw predicted against true changes."""
        return _motion_scatter.draw_all(lines, out)


class _Asked:
    """Everyone who answers a question, with what takes long kept in the store."""

    def __init__(
        self,
        subject: Subject,
        question: Force | Motion,
        factual: Held,
        settings: Settings,
        store: Store,
    ) -> None:
        self.question, self.factual, self.store = question, factual, store
        self.has_fit = question.has_fit(subject.protocol)
        self.model: Who = (subject.model, subject.row["arm"])
        self.tasks = {
            self.model: subject.task,
            (subject.model, "untrained"): subject.untrained(settings.seeds[0]),
        }
        self.piece = {"data_seed": settings.data_seed, "twin": settings.seeds[0]}

    def answers(self, held: Held, world: Mapping[str, Any]) -> dict[Who, Answers]:
        """Return what everyone answers on a world, which is named by plain data."""
        piece = {**self.piece, **world, "n": len(held.world.star_mass)}
        found: dict[Who, Answers] = {}
        for who, task in self.tasks.items():

            def compute(task: Any = task) -> dict[str, Array]:
                answer = partial(self.question.model, task, held, factual=self.factual)
                parts = [answer(rows) for rows in batches(held)]
                return {name: np.concatenate([p[name] for p in parts]) for name in parts[0]}

            found[who] = self.store.arrays({**piece, "who": list(who)}, compute)
        if self.has_fit:
            who = ("orbit fit", "ceiling")
            found[who] = self.store.arrays(
                {**piece, "who": list(who)}, lambda: self.question.fitted(held, self.factual)
            )
        found[TRUTH] = self.question.truth(held)
        found["no change", "control"] = self.question.truth(self.factual)
        return {**found, **self.question.references(held, self.factual)}


class _Tally:
    """Sums over all interventions, sequence by sequence."""

    def __init__(self) -> None:
        self.sums: dict[tuple[Who, str, str], Array] = {}
        self.retold: dict[str, list[Array]] = {}
        self.drawn: dict[str, list[Array]] = {}

    def observe(self, what: Intervention, factual: Held, changed: Held) -> None:
        """Note which sequences an intervention leaves as they were, token for token."""
        differs = np.any(factual.batch["tokens"] != changed.batch["tokens"], axis=(1, 2))
        self.retold.setdefault(what.changed, []).append(np.where(what.counts, differs, np.nan))

    def add(self, what: Intervention, who: Who, pairs: Changes, drawn: bool) -> None:
        """Add the predicted and true changes of one intervention, and keep those to be drawn."""
        for of, (predicted, true) in pairs.items():
            products = ((predicted - true) ** 2, true**2, predicted * true)
            by_sequence = [np.sum(p, axis=tuple(range(1, p.ndim))) for p in products]
            key = (who, what.changed, of)
            table = np.stack(by_sequence, axis=-1) * what.counts[:, None]
            self.sums[key] = self.sums.get(key, 0) + table
            if drawn:
                both = np.stack([predicted, true])[:, what.counts].reshape(2, -1)
                asked = both[:, np.any(both != 0, axis=0)]
                self.drawn.setdefault(f"{what.changed} {of}", []).append(asked)

    def sample(self) -> dict[str, Array]:
        """Return some of the drawn points, [2, n] predicted and true, by mass and quantity."""
        found = {}
        for name, parts in self.drawn.items():
            points = np.concatenate(parts, axis=1)
            order = np.random.default_rng(0).permutation(points.shape[1])
            found[name] = points[:, order[:DRAWN]]
        return found

    def lines(self) -> list[Line]:
        """Return one line for each who, changed mass and quantity.

        Where the truth itself, once it is in bins, agrees with the true change less than no change
        at all, nobody can be asked: the oracle's lines alone remain and say so.
        """
        lines: list[Line] = []
        for (who, changed, of), table in self.sums.items():
            rounded = self.sums.get((IN_BINS, changed, of))
            visible = rounded is None or _agreement(rounded.sum(axis=0)) > 0
            name, arm = who
            if (not visible and arm != "oracle") or ("bend" in of and who in AT_REST):
                continue
            metrics = {
                "agreement": bootstrap(table, _agreement),
                "slope": bootstrap(table, lambda s: s[..., 2] / s[..., 1]),
            }
            if who == TRUTH:
                metrics["tokens_changed"] = mean_of(np.stack(self.retold[changed], axis=1))
            setting = {"changed": changed, "of": of}
            lines.append({"name": name, "arm": arm, "setting": setting, "metrics": metrics})
        return lines


def _agreement(sums: Array) -> Array:
    return 1 - sums[..., 0] / sums[..., 1]


PROBE = Causal()
