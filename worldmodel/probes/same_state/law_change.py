"""The world's own change of a path and its exponent, from the same state on by another law."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from orbits.arithmetic import Array
from orbits.implied.pulls import of_path
from orbits.implied.within import within_resampled
from orbits.runs.statistics import Interval, bootstrap
from orbits.runs.statistics.bootstrap import percentiles
from worldmodel.probes.donors import OTHER_LAW, SAME_LAW
from worldmodel.probes.same_state.pairs import AHEAD, Pairs

N_BOOT, SEED = 200, 0

Exponent = tuple[float, Array]
"""An exponent, and the exponent of each resample of the pairs."""


class LawChange:
    """The world's own change between systems of two laws, as the unit of others.

    Args:
        pair: The pairs. Their truth is taken in bins, as all that is compared with it is.
    """

    def __init__(self, pair: Pairs) -> None:
        self.pair = pair
        self.own, self.other = (x.observed for x in (pair.own, pair.other))
        self.n_ahead = self.own.shape[1] - pair.own.n_prompt
        self.exponents = [self._exponent(x) for x in (self.own, self.other)]

    def measured(self, before: Array, after: Mapping[str, Array]) -> dict[str, dict[str, Interval]]:
        """Return the metrics of each donor, from its continuation."""
        return {
            donor: self.share(before, found, after[SAME_LAW] if donor == OTHER_LAW else None)
            for donor, found in after.items()
        }

    def share(
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
