"""Table of inverse distribution functions, so that draws need no math library.

Q(u) is looked up by t = min(u, 1 - u) on a grid that halves with t: each octave of t down to
2^-54, the smallest draw, has eight cells, and each cell a cubic that meets value and slope of Q
at its ends. So both tails are as good as the middle. ``python -m orbits.inverse_cdf`` makes the
table again from scipy.
"""

from __future__ import annotations

import functools
import hashlib
import io
from pathlib import Path

import numpy as np

from orbits.arithmetic import Array, bits, from_bits, select, shared

# Exoplanet catalogue fits of Vafa et al. (2025), as published constants.
PLANET_MASS_GAMMA = (0.3202016451781988, 6.009814999999999e-08, 0.001105594954623053)
ECCENTRICITY_BETA = (0.867, 3.03)  # Kipping (2013), arXiv:1306.4982

NORMAL, GAMMA, BETA = 0, 1, 2
"""Rows of the table: standard normal, gamma of the planet masses (loc 0, scale 1), beta."""

TABLE = Path(__file__).with_suffix(".npy")
SHA256 = "5b1a590a87a76779053dbb3c6f8bd9d1bed982089b3beae2488771951a9fd3ee"

_OCTAVES, _CELL_BITS = 53, 3
_SHIFT = np.uint64(52 - _CELL_BITS)
_FIRST = np.uint64((1023 - _OCTAVES - 1) << _CELL_BITS)  # the cell that starts at 2^-54
_MANTISSA_SHIFT = np.uint64(_CELL_BITS)
_MANTISSA, _ONE = np.uint64(2**52 - 1), np.uint64(0x3FF0000000000000)


@shared
def quantile(table, distribution, u):
    """Return Q(u) for u in [2^-54, 1 - 2^-53].

    Args:
        table: :func:`load`.
        distribution: NORMAL, GAMMA or BETA.
        u: Uniform numbers.
    """
    upper = select(u < 0.5, 0, 1)
    pattern = bits(select(u < 0.5, u, 1.0 - u))
    # Exponent and leading mantissa bits number the cell; the other bits are the place in it.
    cell = (pattern >> _SHIFT) - _FIRST
    x = from_bits(((pattern << _MANTISSA_SHIFT) & _MANTISSA) | _ONE) - 1.0
    c0, c1 = table[distribution, 0, upper, cell], table[distribution, 1, upper, cell]
    c2, c3 = table[distribution, 2, upper, cell], table[distribution, 3, upper, cell]
    return c0 + x * (c1 + x * (c2 + x * c3))


@functools.cache
def load() -> Array:
    """Return the table, [distribution, coefficient, lower or upper half, cell].

    Raises:
        ValueError: The file is not the one this version was released with.
    """
    data = TABLE.read_bytes()
    if hashlib.sha256(data).hexdigest() != SHA256:
        raise ValueError(f"{TABLE} is damaged (sha256 mismatch); install the package again")
    table = np.load(io.BytesIO(data), allow_pickle=False)
    table.flags.writeable = False
    return table


def make() -> Array:
    """Compute the table with scipy."""
    from scipy import special

    per_octave = 2**_CELL_BITS
    # One cell more than the octaves hold: t = 1/2 itself is the start of the next.
    number = np.arange(_OCTAVES * per_octave + 2)
    t = 2.0 ** (number // per_octave - _OCTAVES - 1) * (1 + number % per_octave / per_octave)

    def normal(t, sign):
        value = special.ndtri(t)
        return -sign * value, np.sqrt(2 * np.pi) * np.exp(value**2 / 2)

    def gamma(t, sign):
        a = PLANET_MASS_GAMMA[0]
        value = (special.gammaincinv if sign < 0 else special.gammainccinv)(a, t)
        return value, special.gamma(a) * value ** (1 - a) * np.exp(value)

    def beta(t, sign):
        a, b = ECCENTRICITY_BETA
        value = special.betaincinv(a, b, t) if sign < 0 else 1 - special.betaincinv(b, a, t)
        rest = 1 - value if sign < 0 else special.betaincinv(b, a, t)
        return value, special.beta(a, b) * value ** (1 - a) * rest ** (1 - b)

    halves = []
    for quantile_and_slope in (normal, gamma, beta):
        for sign in (-1, 1):
            value, slope = quantile_and_slope(t, sign)
            slope = -sign * slope
            width = np.diff(t)
            left, right = slope[:-1] * width, slope[1:] * width
            rise = np.diff(value)
            halves.append(
                np.stack([value[:-1], left, 3 * rise - 2 * left - right, left + right - 2 * rise])
            )
    return np.stack(halves).reshape(3, 2, 4, -1).transpose(0, 2, 1, 3).copy()


if __name__ == "__main__":
    np.save(TABLE, make())
    print(hashlib.sha256(TABLE.read_bytes()).hexdigest())
