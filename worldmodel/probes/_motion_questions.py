"""The two questions of the causal probe: where a body goes next, and with what force it is pulled.

Each knows how a model, the truth and the references answer on a world, and how the answers on two
worlds are compared.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import numpy as np
import numpy.typing as npt
import torch

from orbits import motion, observation, posterior
from orbits.arithmetic import Array
from orbits.ceiling import fit
from orbits.observation import STAR
from orbits.protocols import Protocol
from worldmodel.controls.linear_autoregression import FILTER, linear_autoregression, refusal
from worldmodel.probes import _motion
from worldmodel.probes._motion_held import Held, fitted_next, next_points, tensors
from worldmodel.tasks import ForceTask, OrbitTask

Who = tuple[str, str]
"""Name and arm of who answers."""
Answers = Mapping[str, Array]
Changes = dict[str, tuple[Array, Array]]
"""By what is compared: the predicted and the true change, [N, ...]; zero where nothing is asked."""

IN_BINS: Who = ("true orbit in bins", "oracle")
"""The truth as exactly as bins can say it."""
AT_REST: tuple[Who, ...] = (("no change", "control"), ("copy last", "control"))
"""Who knows of no motion, and is asked for places but not for how they bend."""


class Motion:
    """The expected next place of the first planet and of the star.

    An answer has ``points`` [N, T, 2] in AU. What is compared are the changes of ``planet`` and
    ``star``, and their ``bend``: what is left after a straight line through the body's last two
    true points.
    """

    population: ClassVar[str] = "pretrain"
    labelled: ClassVar[bool] = False

    def has_fit(self, protocol: Protocol) -> bool:
        """Return whether a fitted orbit is a ceiling: of systems with one planet."""
        return protocol.max_planets == 1

    def model(
        self, task: OrbitTask, held: Held, rows: slice, factual: Held
    ) -> dict[str, npt.NDArray]:
        """Return the answer of a model on some sequences."""
        batch = {name: value[rows] for name, value in held.batch.items()}
        return {"points": next_points(task, batch)["expected"]}

    def truth(self, held: Held) -> dict[str, Array]:
        """Return the true answer."""
        return {"points": held.batch["coordinates"]}

    def fitted(self, held: Held, factual: Held) -> dict[str, Array]:
        """Return the answer of the orbit that fits the points before best."""
        return {"points": fitted_next(held, factual.world)}

    def references(self, held: Held, factual: Held) -> dict[Who, Answers]:
        """Return the answers of the truth in bins, of bodies at rest or going on, of a filter."""
        single = np.minimum(held.steps, 1)
        found = _motion.references(held.observed, held.batch["body"], single)
        naive = {(name, "control"): {"points": points} for name, points in found.items()}
        if refusal(held.protocol) is None:
            filtered = linear_autoregression(held.protocol).next_points(held.observed)
            naive[FILTER, "control"] = {"points": filtered}
        return {IN_BINS: {"points": held.observed}, **naive}

    def changes(self, one: Answers, other: Answers, factual: Held, changed: Held) -> Changes:
        """Return the change between the answers on the factual and on the changed world."""
        predicted = other["points"] - one["points"]
        true = changed.batch["coordinates"] - factual.batch["coordinates"]
        straight = self._straight(changed) - self._straight(factual)
        body, asked = factual.batch["body"], factual.steps > 0
        found = {}
        for name, number in (("planet", 1), ("star", STAR)):
            here = (asked & (body == number))[..., None]
            pair = np.where(here, predicted, 0), np.where(here, true, 0)
            found[name] = pair
            line = np.where(here, straight, 0)
            found[f"{name} bend"] = pair[0] - line, pair[1] - line
        return found

    def _straight(self, held: Held) -> Array:
        steps, body = np.minimum(held.steps, 1), held.batch["body"]
        known = _motion.references(held.batch["coordinates"], body, steps)
        return known["linear extrapolation"]


class Force:
    """The force on the planet, at its rows of the second half.

    An answer has ``vector`` [N, R, 2] in solar mass AU / year^2, and ``log_force`` [N, R], the
    logarithm of its length. What is compared are the ``force``'s log-ratio and the change of the
    ``force vector``, in units of the geometric mean of the two true forces.
    """

    population: ClassVar[str] = "force"
    labelled: ClassVar[bool] = True

    def has_fit(self, protocol: Protocol) -> bool:
        """Return whether a fitted orbit is a ceiling: not where the planet's mass hardly shows."""
        return not posterior.serves(protocol)

    def model(
        self, task: OrbitTask, held: Held, rows: slice, factual: Held
    ) -> dict[str, npt.NDArray]:
        """Return the answer of a model on some sequences.

        A head of the raw force may answer with a negative one, which has no logarithm; it counts
        as the smallest true force of the factual world.
        """
        assert isinstance(task, ForceTask)
        batch = {name: value[rows] for name, value in held.batch.items()}
        with torch.no_grad():
            hidden = task.hidden(tensors(task, batch))[:, self._rows(held)]
            magnitude, vector = task.head.physical(task.head(hidden.flatten(0, 1)))
            if task.head.target == "raw":
                smallest = float(np.exp(self.truth(factual)["log_force"].min()))
                magnitude = magnitude.clamp(min=smallest)
        shape = hidden.shape[:2]
        return {
            "log_force": magnitude.log().view(shape).cpu().numpy(),
            "vector": vector.view(*shape, 2).cpu().numpy(),
        }

    def truth(self, held: Held) -> dict[str, Array]:
        """Return the true answer."""
        return _of_vector(held.batch["force"][:, self._rows(held)])

    def fitted(self, held: Held, factual: Held) -> dict[str, Array]:
        """Return the answer of the orbit that fits the whole sequence best."""
        found = fit(held.protocol, held.world, population=factual.world)
        return self._pull(held, found.relative, found.m1, found.m2)

    def references(self, held: Held, factual: Held) -> dict[Who, Answers]:
        """Return the force in the changed places between bodies of the unchanged masses."""
        world = held.world
        times = observation.times(world, held.protocol.dts, held.protocol.n_points, n_planets=1)
        anomaly, law = world.mean_anomaly[:, 0], held.protocol.law
        relative, _ = observation.relative(world, 0, anomaly, times, law)
        m1, m2 = factual.world.planet_mass[:, 0], factual.world.star_mass
        return {("places alone", "control"): self._pull(held, relative, m1, m2)}

    def changes(self, one: Answers, other: Answers, factual: Held, changed: Held) -> Changes:
        """Return the change between the answers on the factual and on the changed world."""
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

    def _pull(self, held: Held, relative: Array, m1: Array, m2: Array) -> dict[str, Array]:
        """Return the answer for planet - star [N, steps, 2] at every time step."""
        steps = (self._rows(held) - 1) // 2
        force = motion.attraction(held.protocol.law, relative[:, steps], m1[:, None], m2[:, None])
        return _of_vector(force)

    def _rows(self, held: Held) -> npt.NDArray[np.int64]:
        return np.flatnonzero((held.batch["body"][0] == 1) & (held.steps[0] > 0))


def _of_vector(vector: Array) -> dict[str, Array]:
    return {"vector": vector, "log_force": np.log(np.linalg.norm(vector, axis=-1))}
