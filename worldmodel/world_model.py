"""The world model as probes and the exam see it: any object that continues observed orbits.

A model from outside is a class without arguments that has :class:`WorldModel`'s two methods, and
those of the optional ones that it can answer. The GPTs of this package are seen through the same
methods (:mod:`worldmodel.models.gpt_world`). Nothing here needs torch.

    class Still:
        '''Bodies stay where they were: a row repeats the one before the last.'''

        def observe(self, seen):
            return seen.places

        def predict_next(self, places):
            return np.concatenate([places[:, :1], places[:, :-1]], axis=1)
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from orbits.arithmetic import Array
from orbits.tokens import TokenLayout


@dataclass(frozen=True)
class Seen:
    """The observations of B sequences up to some row.

    Row 0 tells the time step. Then the planet and the star are seen in turn, two rows a time step.

    Attributes:
        tokens: int64 [B, T, 2]: the x bin and the y bin; in row 0 the time step's token, twice.
        places: float64 [B, T, 2] in AU, zero in row 0: the centres of the bins, or the exact
            places for a model that says it is ``exact``.
        layout: The vocabulary: the box, its bins and the time steps.
    """

    tokens: npt.NDArray[np.int64]
    places: Array
    layout: TokenLayout

    @property
    def dt(self) -> Array:
        """The time step of each sequence, in years, [B]."""
        return np.asarray(self.layout.dts)[self.tokens[:, 0, 0] - self.layout.n_bins]

    def copy(self) -> Seen:
        """Return the same in memory of its own."""
        return Seen(self.tokens.copy(), self.places.copy(), self.layout)

    def rows(self, end: int) -> Seen:
        """Return the observations before row ``end``."""
        return Seen(self.tokens[:, :end], self.places[:, :end], self.layout)

    def followed_by(self, places: Array, exact: bool) -> Seen:
        """Return the observations with one more row at ``places`` [B, 2], in bins or exactly."""
        bins = self.layout.encode(places).astype(np.int64)
        row = places if exact else self.layout.decode(bins)
        return Seen(
            np.concatenate([self.tokens, bins[:, None]], axis=1),
            np.concatenate([self.places, row[:, None]], axis=1),
            self.layout,
        )


class WorldModel(Protocol):
    """A world model.

    What it answers for row t must follow from rows 0 to t: before a model from outside is used,
    later rows are changed, and its answers must stay.

    Optional attributes:
        protocol, protocol_args: The sequences that it reads (default: ``identifiable``).
        name: Name in tables (default: that of the class).
        seed: Tells trainings of one model apart (default: 0).
        exact: Whether it sees places instead of the centres of bins (default: no).
        labels: Labelled sequences from which it learnt forces.
        files: Files beside its own that it reads, such as weights: kept results are told apart
            by their contents.

    Optional methods:
        ``hidden(memory)``: what read-outs see, a mapping of layers to [B, T, k].
        ``force(memory)``: the force on the planet in solar mass AU / year^2, [B, T, 2], of which
        the planet's rows are read.
        ``untrained(seed)``: the same model with random weights, the control of what it learnt.
    """

    def observe(self, seen: Seen) -> Any:
        """Return the model's memory of some sequences, which the other methods are given."""

    def predict_next(self, memory: Any) -> Array | Prediction:
        """Return the expected place of each row's next row, [B, T, 2] in AU, or a distribution."""


class Prediction:
    """A prediction of next rows; of a single place it is mean, median and likeliest place.

    A model that predicts a distribution returns a subclass.

    Args:
        places: float [B, T, 2] in AU; row t is about row t + 1.
    """

    def __init__(self, places: Array) -> None:
        self.places = places

    def expected(self) -> npt.NDArray:
        """Return the mean place, [B, T, 2] in AU."""
        return self.places

    def median(self) -> npt.NDArray:
        """Return the median of each coordinate, [B, T, 2] in AU."""
        return self.places

    def quantile(self, share: float) -> npt.NDArray:
        """Return the place of each coordinate below which a share lies, [B, T, 2] in AU."""
        return self.places

    def likeliest(self) -> npt.NDArray:
        """Return the place that a rollout takes, [B, T, 2] in AU."""
        return self.places

    def nats(self, seen: Seen) -> npt.NDArray | None:
        """Return nats of the bins [B, T - 1, 2] of rows 1 to T - 1; None without a distribution."""
        return None


class Forces(NamedTuple):
    """Predicted forces; a model that returns vectors alone has their lengths.

    Attributes:
        magnitude: [B, T], solar mass AU / year^2.
        vector: [B, T, 2].
        signed: Whether magnitudes may be negative, as those of a head of raw forces.
    """

    magnitude: npt.NDArray
    vector: npt.NDArray
    signed: bool = False


def memory(model: WorldModel, seen: Seen) -> Any:
    """Return a model's memory of some sequences; what it does to its view changes no other."""
    return model.observe(seen.copy())


def predicted(model: WorldModel, seen: Seen) -> Prediction:
    """Return a model's prediction of next rows."""
    found = model.predict_next(memory(model, seen))
    return found if isinstance(found, Prediction) else Prediction(np.asarray(found, np.float64))


def forces(model: Any, seen: Seen) -> Forces:
    """Return the forces that a model with ``force`` predicts."""
    found = model.force(memory(model, seen))
    if isinstance(found, Forces):
        return found
    vector = np.asarray(found, np.float64)
    return Forces(np.linalg.norm(vector, axis=-1), vector)


def rollout(model: WorldModel, seen: Seen, n_rows: int) -> Array:
    """Return a prompt and its continuation by the likeliest next rows, [B, P + n_rows, 2] in AU.

    Each row is predicted from all before it. A model with a method ``rolled_out(seen, n_rows)``
    has a faster way to the same.
    """
    if can(model, "rolled_out"):
        found: Array = model.rolled_out(seen.copy(), n_rows)  # type: ignore[attr-defined]
        return found
    for _ in range(n_rows):
        seen = seen.followed_by(predicted(model, seen).likeliest()[:, -1], is_exact(model))
    return seen.places


def is_exact(model: object) -> bool:
    """Tell whether a model sees places instead of the centres of bins."""
    return bool(getattr(model, "exact", False))


def can(model: object, ability: str) -> bool:
    """Tell whether a model has a method: predict_next, hidden, force or untrained."""
    return callable(getattr(model, ability, None))


def seen(batch: Mapping[str, npt.NDArray], layout: TokenLayout, exact: bool = False) -> Seen:
    """Return a model's view of an observation of :meth:`orbits.protocols.Protocol.observe`."""
    tokens = np.asarray(batch["tokens"], np.int64)
    if exact:
        return Seen(tokens, np.asarray(batch["coordinates"], np.float64), layout)
    places = np.zeros(tokens.shape)
    places[:, 1:] = layout.decode(tokens[:, 1:])
    return Seen(tokens, places, layout)
