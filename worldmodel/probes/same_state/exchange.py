"""Exchanges between systems in the same state: continuations with a partner's residuals.

A model reads a prompt. After one stage its residual stream at some rows is replaced by that of a
partner (:mod:`worldmodel.probes.same_state.pairs`), and it goes on by itself; all other rows keep
what the shown past made of them. The unit of every answer is the world's own change, from the same
state on: :mod:`worldmodel.probes.same_state.law_change` and ``mass_change``.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Protocol

import numpy as np
import torch

from orbits.arithmetic import Array
from orbits.mixture import Mixture
from orbits.protocols import Protocol as World
from orbits.runs.cell import Outcome
from orbits.runs.statistics import Interval
from worldmodel.models.orbit import NextTokenModel
from worldmodel.probes.donors import (
    CHANGED,
    CONTROLS,
    EVERY,
    FIRST,
    LAST_STEP,
    NO_DONOR,
    OTHER,
    WHOLE,
)
from worldmodel.probes.implied import references
from worldmodel.probes.motion.held_out import (
    HeldOutSystems,
    batches,
    continued,
    rolled_out,
    tensors,
)
from worldmodel.probes.motion.residual import donors, exchanged, stages
from worldmodel.probes.read_out import layers
from worldmodel.probes.same_state.pairs import Pairs

EARLIER = (1, 2, 4, 8)
"""Steps before the last one that are exchanged, too, one at a time."""
CONTROLLED = (LAST_STEP, EVERY)
"""Rows of which another system's residual, and a random direction, are put in, too."""
VERSION = 2
"""Version of the answers; 1 had these controls at the last step alone."""

Rows = dict[str, slice]
Ask = Callable[[HeldOutSystems], Array]
"""Function that returns prompts and continuations, [N, T, 2] in AU."""


class Change(Protocol):
    """The world's own change, as the unit of others."""

    def measured(
        self, before: Array, after: Mapping[str, Array]
    ) -> Mapping[str, Mapping[str, Interval]]:
        """Return the metrics of each donor.

        Args:
            before: Continuations [N, T, 2] without an exchange.
            after: Those after an exchange, by donor.
        """


def rows_of(n_prompt: int) -> Rows:
    """Return the rows of a prompt that are exchanged, by name: single bodies and steps, and all.

    The time-step row, which pairs have alike, is for models that are told something there.

    Where a partner has other places than the prompt, at all steps but the last, exchanged rows
    bring these places with them.
    """
    last = n_prompt - 1
    steps = {
        f"step {back} before": slice(last - 1 - 2 * back, last + 1 - 2 * back)
        for back in EARLIER
        if last - 1 - 2 * back > 0
    }
    return {
        "last star": slice(last, last + 1),
        "last planet": slice(last - 1, last),
        LAST_STEP: slice(last - 1, last + 1),
        **steps,
        EVERY: slice(0, n_prompt),
        FIRST: slice(0, 1),
    }


def arms(model: NextTokenModel, n_prompt: int) -> Iterator[tuple[str, str]]:
    """Yield the stages and rows of all exchanges, but for those of the time-step row."""
    return itertools.product(stages(model), [x for x in rows_of(n_prompt) if x != FIRST])


def ask(
    model: NextTokenModel, pair: Pairs, change: Change, only: Sequence[str] = ()
) -> list[Outcome]:
    """Return a model's continuations: shown each partner, and given its residual.

    Args:
        model: The model.
        pair: What is shown, and the partners.
        change: The unit of the answers.
        only: Rows that are exchanged; none for all of :func:`arms`.

    Returns:
        Outcomes whose settings have what was exchanged; metrics are those of the change.
    """
    n = pair.own.n_prompt
    outcomes = whole(pair, partial(continued, model), change)
    before = continued(model, pair.own)
    streams = [_streams(model, pair, rows) for rows in batches(pair.own)]
    for stage, name in itertools.product(stages(model), only) if only else arms(model, n):
        after = {}
        for donor in (*pair.partners, *CONTROLS * (name in CONTROLLED)):
            parts = []
            for rows, given in zip(batches(pair.own), streams, strict=True):
                residual = given[stage][donor]
                where = torch.zeros(residual.shape[:2], dtype=torch.bool, device=residual.device)
                where[:, rows_of(n)[name]] = True
                batch = {key: value[rows] for key, value in pair.own.batch.items()}
                with exchanged(model, stage, residual, where):
                    parts.append(rolled_out(model, batch, n))
            after[donor] = np.concatenate(parts)
        outcomes += _outcomes(change.measured(before, after), stage, name)
    return outcomes


def whole(pair: Pairs, answer: Ask, change: Change) -> list[Outcome]:
    """Return continuations without an exchange, and those of a model that is shown each partner."""
    before = answer(pair.own)
    shown = {name: answer(partner) for name, partner in pair.partners.items()}
    return _outcomes(change.measured(before, {NO_DONOR: before, **shown}), WHOLE, WHOLE)


def references_of(
    pair: Pairs, change: Change, trained_on: World | Mixture
) -> Iterator[tuple[str | None, str | None, list[Outcome]]]:
    """Yield name, arm and answers of the truth in bins and of continuations without a model.

    They have no residual stream: they are shown each partner itself.
    """
    yield references.IN_BINS, "oracle", whole(pair, lambda test: test.observed, change)
    yield references.CUBIC, "control", whole(pair, references.cubic, change)
    for name in dict.fromkeys(name for name, _, _ in references.of_world(pair.own, trained_on)):

        def answer(test: HeldOutSystems, name: str = name) -> Array:
            found = references.of_world(test, trained_on)
            return next(points for known, _, points in found if known == name)

        yield name, "control", whole(pair, answer, change)


def _outcomes(
    measured: Mapping[str, Mapping[str, Interval]], stage: str, rows: str
) -> list[Outcome]:
    return [
        Outcome(metrics, setting={"after": stage, "rows": rows, "donor": donor})
        for donor, metrics in measured.items()
    ]


def _streams(model: NextTokenModel, pair: Pairs, rows: slice) -> dict[str, dict[str, torch.Tensor]]:
    """Return the residuals put in at a prompt's rows, by stage and donor, each [B, P, width]."""

    def read(test: HeldOutSystems, shift: int = 0) -> dict[str, torch.Tensor]:
        batch = {k: np.roll(v, shift, axis=0)[rows] for k, v in test.batch.items()}
        return {k: v[:, : test.n_prompt] for k, v in tensors(model, batch).items()}

    generator = torch.Generator().manual_seed(rows.start)
    reads = {"own": read(pair.own), CHANGED: read(pair.other), OTHER: read(pair.own, 1)}
    given = donors(model, reads, generator)
    partners = {name: layers(model, read(test))[:-1] for name, test in pair.partners.items()}
    return {
        stage: {
            **{name: streams[number] for name, streams in partners.items()},
            **{name: each[name] for name in CONTROLS},
        }
        for number, (stage, each) in enumerate(given.items())
    }
