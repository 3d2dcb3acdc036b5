"""The world's own change of both bodies' paths, from the same state on with another mass."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from orbits.arithmetic import Array
from orbits.runs.statistics import Interval
from worldmodel.probes.motion import response
from worldmodel.probes.motion.held_out import HeldOutSystems
from worldmodel.probes.same_state.pairs import AHEAD, Pairs


class MassChange:
    """The world's own change between systems with two masses, as the unit of others.

    The bodies come to their common state at other velocities, since the centre of mass rests
    elsewhere. So much of the change follows from the straight line through a body's last two
    places; for the rest, how paths bend, the mass has to be known.

    Args:
        pair: The pairs.
    """

    def __init__(self, pair: Pairs) -> None:
        self.start = pair.own.n_prompt
        own, other = (x.batch["coordinates"] for x in (pair.own, pair.other))
        self.place = self._straight(other) - self._straight(own)
        self.mass = self._ahead(other) - self._ahead(own) - self.place

    def measured(self, before: Array, after: Mapping[str, Array]) -> dict[str, dict[str, Interval]]:
        """Return the metrics of each donor: those of ``response.against_truth``."""
        changes = {name: self._ahead(x) - self._ahead(before) for name, x in after.items()}
        return {name: self._metrics(change) for name, change in changes.items()}

    def straight(self, test: HeldOutSystems) -> Array:
        """Return prompts that go on straight through each body's last two places, [N, T, 2]."""
        rows = test.observed.copy()
        rows[:, self.start : self.start + 2 * AHEAD] = self._straight(rows)
        return rows

    def _metrics(self, change: Array) -> dict[str, Interval]:
        # What a model does with the partner itself is no part of the question.
        return response.against_truth(response.sums(change, change, self.place, self.mass))

    def _ahead(self, rows: Array) -> Array:
        """Return both bodies' places in the steps after the prompt, [N, 2 AHEAD, 2]."""
        return np.asarray(rows[:, self.start : self.start + 2 * AHEAD], float)

    def _straight(self, rows: Array) -> Array:
        """Return where straight lines through each body's last two places go, [N, 2 AHEAD, 2]."""
        last, earlier = (rows[:, self.start - n : self.start - n + 2] for n in (2, 4))
        steps = np.arange(1, AHEAD + 1)[:, None, None]
        lines = last[:, None] + steps * (last - earlier)[:, None]
        return np.asarray(lines.reshape(len(rows), 2 * AHEAD, 2), float)
