"""Coordinates to bins and back, and the layout of a token sequence.

A sequence is one row per observed point. Row 0 holds the time-step token twice; every further
row holds the x bin and the y bin of one body, bodies interleaved within a time step: planets
first, then the star (Vafa et al. 2025).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from numbers import Integral

import numpy as np
import numpy.typing as npt

from orbits.arithmetic import clipped, shared


@shared
def bin_number(x, low, per_unit, last):
    """Return, as a float, the bin of a coordinate; bins outside [0, last] go to its ends."""
    return clipped(np.floor((x - low) * per_unit), 0.0, last)


@dataclass(frozen=True)
class TokenLayout:
    """The vocabulary of a protocol: ``n_bins`` position bins, then one token per time step.

    Attributes:
        low: Left edge of the box in AU, for x and y alike.
        high: Right edge of the box in AU.
        n_bins: Bins per coordinate; bin k covers [low + k width, low + (k + 1) width).
        dts: The possible time steps in years; number k has token ``n_bins + k``.
    """

    low: float
    high: float
    n_bins: int
    dts: tuple[float, ...]

    def __post_init__(self) -> None:
        if not -math.inf < self.low < self.high < math.inf:
            raise ValueError(f"the box needs low < high, got {self.low} and {self.high}")
        if not isinstance(self.n_bins, Integral):
            raise ValueError(f"n_bins must be a whole number, got {self.n_bins!r}")
        if not 2 <= self.n_bins <= 2**16 - len(self.dts):
            raise ValueError(f"n_bins must be at least 2 and fit into uint16, got {self.n_bins}")

    @property
    def bins_per_au(self) -> float:
        """Inverse width of a bin."""
        return self.n_bins / (self.high - self.low)

    @property
    def width(self) -> float:
        """Width of a bin in AU."""
        return (self.high - self.low) / self.n_bins

    @property
    def vocab_size(self) -> int:
        """Number of distinct tokens."""
        return self.n_bins + len(self.dts)

    def encode(self, coordinates: npt.ArrayLike) -> npt.NDArray[np.uint16]:
        """Return the bin of each coordinate in AU; places outside the box go to its edge.

        Raises:
            ValueError: A coordinate is NaN.
        """
        x = np.asarray(coordinates, np.float64)
        if np.isnan(x).any():
            raise ValueError("a coordinate is NaN, which no bin holds")
        return bin_number(x, self.low, self.bins_per_au, self.n_bins - 1.0).astype(np.uint16)

    def decode(self, tokens: npt.ArrayLike) -> npt.NDArray[np.float64]:
        """Return the centre in AU of each position bin.

        Raises:
            ValueError: A token is not a position bin.
        """
        bins = np.asarray(tokens)
        if bins.size and bins.dtype.kind not in "iu":
            raise ValueError(f"tokens must be whole numbers, got {bins.dtype}")
        for token in (bins.min(), bins.max()) if bins.size else ():
            if not 0 <= token < self.n_bins:
                raise ValueError(f"token {token} is not one of the {self.n_bins} position bins")
        return self.low + (bins.astype(np.float64) + 0.5) * self.width

    def dt_token(self, dt_index: npt.ArrayLike) -> npt.NDArray[np.uint16]:
        """Return the token of each time-step index."""
        return (self.n_bins + np.asarray(dt_index)).astype(np.uint16)


def interleave(points: npt.NDArray, n_points: int) -> npt.NDArray:
    """Flatten [N, T, bodies, ...] to [N, n_points, ...], bodies in turn within a time step.

    Raises:
        ValueError: There are fewer than ``n_points`` points.
    """
    available = points.shape[1] * points.shape[2]
    if available < n_points:
        raise ValueError(f"n_points must be at most {available}, got {n_points}")
    return points.reshape(points.shape[0], available, *points.shape[3:])[:, :n_points]
