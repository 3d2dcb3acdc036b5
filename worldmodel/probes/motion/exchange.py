"""The exchange probe: effects of the residual stream at a body's rows on a model's output.

The causal probe changes a mass in the simulator and shows the model the changed history. This one
goes inside: the model reads a system, and after one block the residual stream at some rows is
replaced by that of the same system with another mass (activation patching: Vig et al. 2020; Meng
et al. 2022). If the mass is kept at these rows, the output changes as the world's would.

Exchanged are the star's rows, the planet's, and every row; after the last of these the model must
answer exactly as for the other system, and where nothing is exchanged exactly as before. Controls
are the rows of another system and a random direction of the same length. What is exchanged after
the embedding is the input itself, so that others can be asked there too: a linear filter of places,
and the observer who takes the total mass from the planet's pace and its share from how far the star
moves. The twin is random weights, for forces under a ridge head: a fresh head answers nothing.

Compared with the true change are the log-ratio of forces or the change of the expected next place,
see :mod:`worldmodel.probes.motion.response`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import product
from pathlib import Path

import numpy as np
import torch

from orbits.arithmetic import Array
from orbits.runs.cell import Outcome
from orbits.runs.page import Picture
from orbits.runs.result import Result
from worldmodel.controls.linear_autoregression import linear_autoregression, refusal
from worldmodel.controls.names import FILTER
from worldmodel.models.orbit import ForceModel, OrbitModel
from worldmodel.probes.base import Pieces, Probe
from worldmodel.probes.checkpoint import Checkpoint
from worldmodel.probes.donors import CHANGED, OTHER, RANDOM
from worldmodel.probes.motion import response
from worldmodel.probes.motion.causal import PROBE as CAUSAL
from worldmodel.probes.motion.flow import draw_all
from worldmodel.probes.motion.held_out import HeldOutSystems, batches, joined, tensors
from worldmodel.probes.motion.interventions import Intervention, interventions
from worldmodel.probes.motion.quantities import Force, Motion, Name, Predictions
from worldmodel.probes.motion.residual import (
    EVERY,
    PLANETS,
    ROWS,
    STARS,
    donors,
    exchanged,
    rows_of,
    stages,
)
from worldmodel.probes.motion.twins import twins
from worldmodel.probes.settings import Settings

OBSERVER: Name = ("share and total mass", "oracle")
NOTHING = ("-", "nothing", "-")
"""Stage, rows and donor of an output without an exchange."""
SHOWN = ("-", "-", CHANGED)
"""Stage, rows and donor of a model that is shown the changed system itself."""
ARMS = tuple(product(ROWS, (CHANGED,)))
CONTROLS = tuple(product((STARS, PLANETS), (OTHER, RANDOM)))
"""Rows and donors of the exchanges, and of their controls."""
Exchange = tuple[str, str, str]
Answers = dict[Exchange, Predictions]


class ExchangeProbe(Probe):
    """The exchange probe."""

    name = "exchange"
    about = "Whether the residual stream at a body's rows carries what a changed mass changes."
    uses = ("n_sequences", "seeds", "labels", "data_seed")
    of = ("NextTokenModel", "ForceModel")
    inside = "it exchanges residual streams inside a GPT of this package"

    def refusal(self, checkpoint: Checkpoint, settings: Settings) -> str | None:
        """Return why the probe cannot be used on a checkpoint, or None: as the causal probe."""
        return CAUSAL.refusal(checkpoint, settings)

    def measure(self, checkpoint: Checkpoint, settings: Settings, pieces: Pieces) -> list[Outcome]:
        """Return the responses of the model, of its twin and of a linear filter, by exchange."""
        quantity = Force() if isinstance(checkpoint.model, ForceModel) else Motion()
        protocol, indices = checkpoint.protocol, np.arange(settings.n_sequences)
        systems = protocol.systems(settings.data_seed, "test", indices, quantity.population)
        factual = HeldOutSystems(protocol, systems, quantity.labelled)
        answer: dict[Name, Callable[[HeldOutSystems], Answers]] = {
            (checkpoint.variant, checkpoint.arm): partial(
                _asked, checkpoint.model, quantity, factual, (*ARMS, *CONTROLS)
            ),
            **{
                (checkpoint.variant, arm): partial(_asked, twin, quantity, factual, ARMS)
                for arm, twin in twins(checkpoint, settings).items()
            },
        }
        if isinstance(quantity, Force):
            answer[OBSERVER] = partial(_observed, factual)
        elif refusal(protocol) is None:
            answer[FILTER, "control"] = partial(_filtered, factual)
        totals: dict[tuple[Name, str, str], Array] = {}
        pairs = list(product(interventions(protocol, systems), answer))
        for what, name in pieces.progress(pairs):
            compute = partial(_tables, answer[name], quantity, factual, what)
            config = {"changed": what.changed, "mass": what.mass, "name": list(name)}
            for key, table in pieces.arrays(config, compute).items():
                of_all = (name, what.changed, key)
                totals[of_all] = totals.get(of_all, 0) + table * what.counts[:, None]
        return [_outcome(*key, table) for key, table in totals.items()]

    def draw(self, results: Sequence[Result], out: Path) -> list[Picture]:
        """Draw how much of the mass's part of the change each exchange brings about."""
        return draw_all(results, out)


def _asked(
    model: OrbitModel,
    quantity: Force | Motion,
    factual: HeldOutSystems,
    arms: Sequence[tuple[str, str]],
    changed: HeldOutSystems,
) -> Answers:
    """Return a model's predictions on the factual world after each exchange."""
    generator = torch.Generator().manual_seed(0)
    parts: dict[Exchange, list[Predictions]] = {}
    for rows in batches(factual):
        sources = {
            "own": factual.batch,
            CHANGED: changed.batch,
            OTHER: {name: np.roll(value, 1, axis=0) for name, value in factual.batch.items()},
        }
        read = {
            source: tensors(model, {name: value[rows] for name, value in batch.items()})
            for source, batch in sources.items()
        }
        streams = donors(model, read, generator)
        ask = partial(quantity.model, model, rows=rows, factual=factual)
        parts.setdefault(NOTHING, []).append(ask(factual))
        parts.setdefault(SHOWN, []).append(ask(changed))
        for stage, (where, donor) in product(stages(model), arms):
            mask = torch.from_numpy(rows_of(factual.batch["body"][rows], where))
            with exchanged(model, stage, streams[stage][donor], mask.to(model.device)):
                parts.setdefault((stage, where, donor), []).append(ask(factual))
    return {exchange: joined(pieces) for exchange, pieces in parts.items()}


def _filtered(factual: HeldOutSystems, changed: HeldOutSystems) -> Answers:
    """Return the linear filter's predictions from histories whose rows were exchanged."""
    follow = linear_autoregression(factual.protocol).next_points
    answers = {NOTHING: factual.observed, SHOWN: changed.observed}
    for where in ROWS:
        mask = rows_of(factual.batch["body"], where)[..., None]
        mixed = np.where(mask, changed.observed, factual.observed)
        answers["embedding", where, CHANGED] = mixed
    return {exchange: {"points": follow(points)} for exchange, points in answers.items()}


def _observed(factual: HeldOutSystems, changed: HeldOutSystems) -> Answers:
    """Return the forces that follow from the total mass of one system and the shares of another.

    They are those of an observer who takes the place and the total mass from the planet's rows,
    and the planet's share of the mass, by which the star moves, from the star's rows.
    """

    def force(planet: HeldOutSystems, star: HeldOutSystems) -> Predictions:
        total, shares = (
            held.world.planet_mass[:, 0] + held.world.star_mass for held in (planet, star)
        )
        share = star.world.planet_mass[:, 0] / shares
        world = planet.world._replace(
            planet_mass=(share * total)[:, None], star_mass=(1 - share) * total
        )
        masses = HeldOutSystems(planet.protocol, world, labelled=True)
        found = Force().references(planet, masses)["places alone", "control"]
        return {"log_force": found["log_force"], "vector": found["vector"]}

    return {
        NOTHING: force(factual, factual),
        SHOWN: force(changed, changed),
        ("embedding", STARS, CHANGED): force(factual, changed),
        ("embedding", PLANETS, CHANGED): force(changed, factual),
        ("embedding", EVERY, CHANGED): force(changed, changed),
    }


def _tables(
    answer: Callable[[HeldOutSystems], Answers],
    quantity: Force | Motion,
    factual: HeldOutSystems,
    what: Intervention,
) -> dict[str, Array]:
    """Return the sums of every exchange and quantity, by their names with slashes between."""
    changed = HeldOutSystems(factual.protocol, what.world, quantity.labelled)
    answers = answer(changed)
    before, after = answers[NOTHING], answers.pop(SHOWN)
    own = quantity.changes(before, after, factual, changed)
    tables = {}
    for exchange, prediction in answers.items():
        found = quantity.changes(before, prediction, factual, changed)
        for of, place, mass in _parts(quantity, found, factual, changed):
            table = response.sums(found[of][0], own[of][0], place, mass)
            tables["/".join((*exchange, of))] = table
    return tables


def _parts(
    quantity: Force | Motion,
    changes: Mapping[str, tuple[Array, Array]],
    factual: HeldOutSystems,
    changed: HeldOutSystems,
) -> Iterator[tuple[str, Array, Array]]:
    """Yield the predictions, with the two parts of their true change."""
    if isinstance(quantity, Force):
        places = quantity.references(changed, factual)["places alone", "control"]["log_force"]
        place = places - quantity.truth(factual)["log_force"]
        yield "force", place, changes["force"][1] - place
    else:
        for body in ("planet", "star"):
            bend = changes[f"{body} bend"][1]
            yield body, changes[body][1] - bend, bend


def _outcome(name: Name, changed: str, key: str, table: Array) -> Outcome:
    stage, rows, donor, of = key.split("/")
    setting = {"changed": changed, "of": of, "after": stage, "rows": rows, "donor": donor}
    variant, arm = name
    return Outcome(response.metrics(table), variant=variant, arm=arm, setting=setting)


PROBE = ExchangeProbe()
