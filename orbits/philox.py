"""Counter-based random numbers: each draw is a function of its address alone.

Philox4x32-10 of Salmon et al. (2011), "Parallel random numbers: as easy as 1, 2, 3". The key is
the seed; the counter is (block, stream, trajectory index). Two words make one uniform number, so
numbers 2 b and 2 b + 1 of a trajectory come from its block b.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from orbits.arithmetic import Array, from_bits, select, shared

_LOW, _WORD = np.uint64(0xFFFFFFFF), np.uint64(32)
_MULTIPLY_0, _MULTIPLY_1 = np.uint64(0xD2511F53), np.uint64(0xCD9E8D57)
_WEYL_0, _WEYL_1 = np.uint64(0x9E3779B9), np.uint64(0xBB67AE85)
_FIVE, _SIX = np.uint64(5), np.uint64(6)
_TWO_52, _TWO_52_BITS = 4503599627370496.0, np.uint64(0x4330000000000000)


@shared
def philox(c0, c1, c2, c3, k0, k1):
    """Return the four random words of a counter and a key: 32-bit words kept as uint64."""
    for _ in range(10):
        product0, product1 = c0 * _MULTIPLY_0, c2 * _MULTIPLY_1
        c0 = (product1 >> _WORD) ^ c1 ^ k0
        c1 = product1 & _LOW
        c2 = (product0 >> _WORD) ^ c3 ^ k1
        c3 = product0 & _LOW
        k0, k1 = (k0 + _WEYL_0) & _LOW, (k1 + _WEYL_1) & _LOW
    return c0, c1, c2, c3


@shared
def uniform(high, low):
    """Return the uniform number in (0, 1) made of the top 27 and 26 bits of two words."""
    # The last bit of the float 2^52 is worth 1: an integer put there is converted exactly.
    top = from_bits((high >> _FIVE) | _TWO_52_BITS) - _TWO_52
    rest = from_bits((low >> _SIX) | _TWO_52_BITS) - _TWO_52
    number = (top * 67108864.0 + rest + 0.5) * 2.0**-53
    # The largest mantissa plus a half rounds to 2^53: without the bound, one draw in 2^53 is 1.
    return select(number < 1.0, number, 1.0 - 2.0**-53)


def uniforms(seed: int, stream: int, indices: npt.ArrayLike, n: int) -> Array:
    """Return ``n`` uniform numbers in (0, 1) for each trajectory index, shape [N, n].

    Args:
        seed: The dataset's seed, 0 <= seed < 2^64.
        stream: Number of the population and split; streams share no draw.
        indices: Trajectory indices, shape [N].
        n: Numbers per trajectory; number k is the same whatever ``n`` is.

    Raises:
        ValueError: The seed or an index is negative or too large.
    """
    index = address(seed, indices).view(np.uint64)[:, None]
    blocks = np.arange((n + 1) // 2, dtype=np.uint64)[None]
    words = philox(
        blocks, np.uint64(stream), index & _LOW, index >> _WORD, np.uint64(seed) & _LOW,
        np.uint64(seed) >> _WORD,
    )  # fmt: skip
    pairs = np.stack([uniform(words[0], words[1]), uniform(words[2], words[3])], axis=-1)
    return pairs.reshape(len(index), 2 * blocks.size)[:, :n]


def whole(indices: npt.ArrayLike) -> npt.NDArray[np.int64]:
    """Return indices as int64 [N].

    Raises:
        ValueError: They are no whole numbers, such as a mask of True and False.
    """
    given = np.asarray(indices)
    if given.size and given.dtype.kind not in "iu":
        raise ValueError(f"indices must be whole numbers, got {given.dtype}")
    return given.astype(np.int64).reshape(-1)


def address(seed: int, indices: npt.ArrayLike) -> npt.NDArray[np.int64]:
    """Return the checked trajectory indices as int64 [N].

    Raises:
        ValueError: The seed or an index is negative or too large.
    """
    index = whole(indices)
    if isinstance(seed, bool | np.bool_) or not hasattr(seed, "__index__"):
        raise ValueError(f"seed must be a whole number, got {seed!r}")
    if not 0 <= seed < 2**64:
        raise ValueError(f"seed must be in [0, 2^64), got {seed}")
    if index.size and index.min() < 0:
        raise ValueError(f"trajectory index must not be negative, got {index.min()}")
    return index
