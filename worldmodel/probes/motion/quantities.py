"""The quantities of the causal probe: a body's next place, and the force on the planet.

Each knows how a model, the truth and the references predict it on a world, and how the predictions
on two worlds are compared.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from orbits import motion, observation, posterior
from orbits.arithmetic import Array
from orbits.ceiling import fit
from orbits.observation import STAR
from orbits.protocols import Protocol
from worldmodel.controls import names
from worldmodel.controls.linear_autoregression import linear_autoregression, refusal
from worldmodel.probes.motion import references
from worldmodel.probes.motion.held_out import HeldOutSystems, fitted_next, next_points, seen_by
from worldmodel.world_model import forces

Name = tuple[str, str]
"""Variant and arm of a model or reference."""
Predictions = Mapping[str, Array]
Changes = dict[str, tuple[Array, Array]]
"""Predicted and true changes by quantity, each [N, ...]; zero where nothing is predicted."""

IN_BINS: Name = (names.IN_BINS, "oracle")
"""The reference that knows the truth to within a bin."""
AT_REST: tuple[Name, ...] = (("no change", "control"), ("copy last", "control"))
"""References without motion: they predict places, but not how they bend."""


class Motion:
    """The expected next place of the first planet and of the star.

    A prediction has ``points`` [N, T, 2] in AU. The probe compares the changes of ``planet`` and
    ``star``, and their ``bend``: what is left after a straight line through the body's last two
    true points.
    """

    population: ClassVar[str] = "pretrain"
    labelled: ClassVar[bool] = False

    def has_fit(self, protocol: Protocol) -> bool:
        """Return whether a fitted orbit is a ceiling: of systems with one planet."""
        return protocol.max_planets == 1

    def model(
        self, model: Any, test: HeldOutSystems, rows: slice, factual: HeldOutSystems
    ) -> dict[str, npt.NDArray]:
        """Return the prediction of a model on some sequences."""
        batch = {name: value[rows] for name, value in test.batch.items()}
        return {"points": next_points(model, batch)["expected"]}

    def truth(self, test: HeldOutSystems) -> dict[str, Array]:
        """Return the truth."""
        return {"points": test.batch["coordinates"]}

    def fitted(self, test: HeldOutSystems, factual: HeldOutSystems) -> dict[str, Array]:
        """Return the prediction of the orbit that fits the points before best."""
        return {"points": fitted_next(test, factual.world)}

    def references(self, test: HeldOutSystems, factual: HeldOutSystems) -> dict[Name, Predictions]:
        """Return predictions by the truth in bins, bodies at rest, straight lines and a filter."""
        single = np.minimum(test.steps, 1)
        simple = references.last_points(test.observed, test.batch["body"], single)
        naive = {(name, "control"): {"points": points} for name, points in simple.items()}
        if refusal(test.protocol) is None:
            filtered = linear_autoregression(test.protocol).next_points(test.observed)
            naive[names.FILTER, "control"] = {"points": filtered}
        return {IN_BINS: {"points": test.observed}, **naive}

    def changes(
        self, one: Predictions, other: Predictions, factual: HeldOutSystems, changed: HeldOutSystems
    ) -> Changes:
        """Return the change between the predictions on the factual and on the changed world."""
        predicted = other["points"] - one["points"]
        true = changed.batch["coordinates"] - factual.batch["coordinates"]
        straight = self._straight(changed) - self._straight(factual)
        body, later = factual.batch["body"], factual.steps > 0
        pairs = {}
        for name, number in (("planet", 1), ("star", STAR)):
            here = (later & (body == number))[..., None]
            pair = np.where(here, predicted, 0), np.where(here, true, 0)
            pairs[name] = pair
            line = np.where(here, straight, 0)
            pairs[f"{name} bend"] = pair[0] - line, pair[1] - line
        return pairs

    def _straight(self, test: HeldOutSystems) -> Array:
        steps, body = np.minimum(test.steps, 1), test.batch["body"]
        points = references.last_points(test.batch["coordinates"], body, steps)
        return points["linear extrapolation"]


class Force:
    """The force on the planet, at its rows of the second half.

    A prediction has ``vector`` [N, R, 2] in solar mass AU / year^2, and ``log_force`` [N, R], the
    logarithm of its length. The probe compares the ``force``'s log-ratio and the change of the
    ``force vector``, in units of the geometric mean of the two true forces.
    """

    population: ClassVar[str] = "force"
    labelled: ClassVar[bool] = True

    def has_fit(self, protocol: Protocol) -> bool:
        """Return whether a fitted orbit is a ceiling: not where the planet's mass hardly shows."""
        return not posterior.serves(protocol)

    def model(
        self, model: Any, test: HeldOutSystems, rows: slice, factual: HeldOutSystems
    ) -> dict[str, npt.NDArray]:
        """Return the prediction of a model on some sequences.

        A head of the raw force may predict a negative one, and a model from outside none, which
        has no logarithm; it counts as the smallest true force of the factual world.
        """
        batch = {name: value[rows] for name, value in test.batch.items()}
        found = forces(*seen_by(model, batch))
        magnitude = found.magnitude[:, self._rows(test)]
        if found.signed or not np.all(magnitude > 0):
            smallest = float(np.exp(self.truth(factual)["log_force"].min()))
            magnitude = np.maximum(magnitude, magnitude.dtype.type(smallest))
        return {"log_force": np.log(magnitude), "vector": found.vector[:, self._rows(test)]}

    def truth(self, test: HeldOutSystems) -> dict[str, Array]:
        """Return the truth."""
        return _of_vector(test.batch["force"][:, self._rows(test)])

    def fitted(self, test: HeldOutSystems, factual: HeldOutSystems) -> dict[str, Array]:
        """Return the prediction of the orbit that fits the whole sequence best."""
        orbit = fit(test.protocol, test.world, population=factual.world)
        return self._pull(test, orbit.relative, orbit.m1, orbit.m2)

    def references(self, test: HeldOutSystems, factual: HeldOutSystems) -> dict[Name, Predictions]:
        """Return the force in the changed places between bodies of the unchanged masses."""
        world = test.world
        times = observation.times(world, test.protocol.dts, test.protocol.n_points, n_planets=1)
        anomaly, law = world.mean_anomaly[:, 0], test.protocol.law
        relative, _ = observation.relative(world, 0, anomaly, times, law)
        m1, m2 = factual.world.planet_mass[:, 0], factual.world.star_mass
        return {("places alone", "control"): self._pull(test, relative, m1, m2)}

    def changes(
        self, one: Predictions, other: Predictions, factual: HeldOutSystems, changed: HeldOutSystems
    ) -> Changes:
        """Return the change between the predictions on the factual and on the changed world."""
        before, after = self.truth(factual), self.truth(changed)
        unit = np.exp((before["log_force"] + after["log_force"]) / 2)[..., None]
        return {
            "force": (
                other["log_force"] - one["log_force"],
                after["log_force"] - before["log_force"],
            ),
            "force vector": (
                (other["vector"] - one["vector"]) / unit,
                (after["vector"] - before["vector"]) / unit,
            ),
        }

    def _pull(
        self, test: HeldOutSystems, relative: Array, m1: Array, m2: Array
    ) -> dict[str, Array]:
        """Return the prediction for planet - star [N, steps, 2] at every time step."""
        steps = (self._rows(test) - 1) // 2
        force = motion.attraction(test.protocol.law, relative[:, steps], m1[:, None], m2[:, None])
        return _of_vector(force)

    def _rows(self, test: HeldOutSystems) -> npt.NDArray[np.int64]:
        return np.flatnonzero((test.batch["body"][0] == 1) & (test.steps[0] > 0))


def _of_vector(vector: Array) -> dict[str, Array]:
    return {"vector": vector, "log_force": np.log(np.linalg.norm(vector, axis=-1))}
