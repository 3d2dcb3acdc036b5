"""The exchange between two worlds: continuations with residuals from a world of another law.

A model reads a prompt of one law. After one stage its residual stream at some rows is replaced by
that of a partner (:mod:`worldmodel.probes.law.pairs`), and it goes on by itself; all other rows
keep what the shown past made of them. The unit of every answer is the world's own change: how the
true path, and the exponent it obeys, changes from the same state on if the law does.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial

import numpy as np
import torch

from orbits.arithmetic import Array
from orbits.implied.pulls import of_path
from orbits.implied.within import within_resampled
from orbits.runs.cell import Outcome
from orbits.runs.statistics import Interval, bootstrap
from orbits.runs.statistics.bootstrap import percentiles
from worldmodel.models.orbit import NextTokenModel
from worldmodel.probes.donors import (
    CHANGED,
    CONTROLS,
    EVERY,
    LAST_STEP,
    NO_DONOR,
    OTHER,
    OTHER_LAW,
    PARTNERS,
    SAME_LAW,
    WHOLE,
)
from worldmodel.probes.law.pairs import Pairs
from worldmodel.probes.motion.held_out import (
    HeldOutSystems,
    batches,
    continued,
    rolled_out,
    tensors,
)
from worldmodel.probes.motion.residual import donors, exchanged, stages
from worldmodel.probes.read_out import layers

AHEAD = 6
"""Steps after a prompt over which paths are compared; later ones are out of phase."""
EARLIER = (1, 2, 4, 8)
"""Steps before the last one that are exchanged, too, one at a time."""
N_BOOT, SEED = 200, 0

Rows = dict[str, slice]
Ask = Callable[[HeldOutSystems], Array]
"""Function that returns prompts and continuations, [N, T, 2] in AU."""
Exponent = tuple[float, Array]
"""An exponent, and the exponent of each resample of the pairs."""


def rows_of(n_prompt: int) -> Rows:
    """Return the rows of a prompt that are exchanged, by name: single bodies and steps, and all.

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
    }


def arms(model: NextTokenModel, n_prompt: int) -> Iterator[tuple[str, str]]:
    """Yield the stages and rows of all exchanges."""
    return itertools.product(stages(model), rows_of(n_prompt))


def ask(model: NextTokenModel, pair: Pairs, only: Sequence[str] = ()) -> list[Outcome]:
    """Return a model's continuations: shown each partner, and given its residual.

    Returns:
        Outcomes whose settings have what was exchanged; metrics are those of :class:`Change`.
    """
    n, change = pair.own.n_prompt, Change(pair)
    outcomes = whole(pair, partial(continued, model), change)
    before = continued(model, pair.own)
    streams = [_streams(model, pair, rows) for rows in batches(pair.own)]
    for stage, name in arms(model, n):
        if only and name not in only:
            continue
        after = {}
        for donor in PARTNERS + CONTROLS * (name == LAST_STEP):
            parts = []
            for rows, given in zip(batches(pair.own), streams, strict=True):
                residual = given[stage][donor]
                where = torch.zeros(residual.shape[:2], dtype=torch.bool, device=residual.device)
                where[:, rows_of(n)[name]] = True
                batch = {key: value[rows] for key, value in pair.own.batch.items()}
                with exchanged(model, stage, residual, where):
                    parts.append(rolled_out(model, batch, n))
            after[donor] = np.concatenate(parts)
        outcomes += change.outcomes(stage, name, before, after)
    return outcomes


def whole(pair: Pairs, answer: Ask, change: Change | None = None) -> list[Outcome]:
    """Return continuations without an exchange, and those of a model that is shown each partner."""
    change = Change(pair) if change is None else change
    before = answer(pair.own)
    shown = {OTHER_LAW: answer(pair.other), SAME_LAW: answer(pair.heavier)}
    return change.outcomes(WHOLE, WHOLE, before, {NO_DONOR: before, **shown})


class Change:
    """The world's own change between the systems of a pair, as the unit of others.

    Args:
        pair: The pairs. Their truth is taken in bins, as all that is compared with it is.
    """

    def __init__(self, pair: Pairs) -> None:
        self.pair = pair
        self.own, self.other = (x.observed for x in (pair.own, pair.other))
        self.n_ahead = self.own.shape[1] - pair.own.n_prompt
        self.exponents = [self._exponent(x) for x in (self.own, self.other)]

    def outcomes(
        self, stage: str, rows: str, before: Array, after: Mapping[str, Array]
    ) -> list[Outcome]:
        """Return an outcome for each donor, from its continuation."""
        made = []
        for donor, found in after.items():
            beside = after[SAME_LAW] if donor == OTHER_LAW else None
            setting = {"after": stage, "rows": rows, "donor": donor}
            made.append(Outcome(self.measured(before, found, beside), setting=setting))
        return made

    def measured(
        self, before: Array, after: Array, beside: Array | None = None
    ) -> dict[str, Interval]:
        """Return the change of a continuation, in units of the world's own change.

        Returns:
            ``share_path``, the slope of the change of planet - star over :data:`AHEAD` steps
            against the world's, and its ``agreement_path`` (1 - SSE / SST about zero);
            ``exponent_within`` after the exchange; ``share_exponent``, its change over the world's,
            and ``share_law``, how much more that is than with ``beside``.
        """
        true = self._path(self.other) - self._path(self.own)
        found = self._path(after) - self._path(before)
        products = ((found - true) ** 2, true**2, found * true)
        table = np.stack([x.sum(axis=(1, 2)) for x in products], axis=-1)
        own, other = self.exponents
        old, new = self._exponent(before), self._exponent(after)
        metrics = {
            "share_path": bootstrap(table, lambda s: s[..., 2] / s[..., 1]),
            "agreement_path": bootstrap(table, lambda s: 1 - s[..., 0] / s[..., 1]),
            "exponent_within": percentiles(*new),
            "share_exponent": _share(old, new, own, other),
        }
        if beside is not None:
            metrics["share_law"] = _share(self._exponent(beside), new, own, other)
        return metrics

    def _path(self, rows: Array) -> Array:
        """Return planet - star in the steps after the prompt, [N, AHEAD, 2]."""
        start = self.pair.own.n_prompt
        ahead = rows[:, start : start + 2 * AHEAD]
        return ahead[:, ::2] - ahead[:, 1::2]

    def _exponent(self, rows: Array) -> Exponent:
        """Return the exponent that paths obey after the prompt, and those of its resamples.

        The prompt is the own one whatever was shown: a partner is in the same state at its end.
        """
        rows = np.concatenate([self.own[:, : self.pair.own.n_prompt], rows[:, -self.n_ahead :]], 1)
        relative = rows[:, 1::2] - rows[:, 2::2]
        dt, first = self.pair.own.batch["dt"], self.pair.first
        return within_resampled(of_path(relative, dt, first), N_BOOT, SEED)


def _share(old: Exponent, new: Exponent, own: Exponent, other: Exponent) -> Interval:
    """Return the change from an old exponent to a new one over that from the own to the other."""
    value, drawn = (
        (new[k] - old[k]) / (other[k] - own[k])  # the same pairs are drawn in all
        for k in (0, 1)
    )
    return percentiles(float(value), np.asarray(drawn))


def _streams(model: NextTokenModel, pair: Pairs, rows: slice) -> dict[str, dict[str, torch.Tensor]]:
    """Return the residuals put in at a prompt's rows, by stage and donor, each [B, P, width]."""

    def read(test: HeldOutSystems, shift: int = 0) -> dict[str, torch.Tensor]:
        batch = {k: np.roll(v, shift, axis=0)[rows] for k, v in test.batch.items()}
        return {k: v[:, : test.n_prompt] for k, v in tensors(model, batch).items()}

    generator = torch.Generator().manual_seed(rows.start)
    reads = {"own": read(pair.own), CHANGED: read(pair.other), OTHER: read(pair.own, 1)}
    given = donors(model, reads, generator)
    heavier = layers(model, read(pair.heavier))[:-1]
    return {
        stage: {
            OTHER_LAW: each[CHANGED],
            SAME_LAW: same,
            **{name: each[name] for name in CONTROLS},
        }
        for (stage, each), same in zip(given.items(), heavier, strict=True)
    }
