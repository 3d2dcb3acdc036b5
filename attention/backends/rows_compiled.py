"""Rows of LSSA and LSSAR, compiled: a row is read once from memory for all that is done to it.

The same as :mod:`attention.backends.rows_plain`, in float32 and for whole powers. exp is that of
Cephes (S. Moshier) and log1p a minimax polynomial, each within 2e-7, so that loops over the keys of
a row become vector instructions. What is computed of keys of the future, to fill such an
instruction, is overwritten. Importing this module imports numba, and the first call compiles, or
reads what an earlier process left on disk.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any

import numba
import numpy as np
import torch
from torch import Tensor

from attention.reference import DEAD_BELOW, UNTOUCHED_ROWS

ENTRIES_OF_A_THREAD = 2**16
"""Weights below which another thread costs more than it saves."""
ZERO, HALF, ONE = np.float32(0), np.float32(0.5), np.float32(1)
LOWEST = np.float32(-87)
"""exp of it is the smallest normal number of float32."""
LOG2_E = np.float32(1.4426950408889634)
LN2_HIGH, LN2_LOW = np.float32(0.693359375), np.float32(-2.12194440e-4)
EXP = tuple(
    np.float32(x)
    for x in (1.9875691500e-4, 1.3981999507e-3, 8.3334519073e-3, 4.1665795894e-2, 1.6666665459e-1)
)
LOG1P = tuple(
    np.float32(x * 0.6931471805599453)
    for x in (
        0.00754918184, -0.0425670595, 0.112856187, -0.197118962, 0.275641407, -0.358408471,
        0.480692957, -0.721340208, 1.442695,
    )
)  # fmt: skip
"""log1p(t) over t in [0, 1], highest power first; as in ``attention.triton.primitives``."""

LEAST_WEIGHT = 2.0**-64
"""Weights of less than this share of a row's largest are 0.

Numbers below 2^-126 take a processor a hundred times as long, and powers end there often.
"""

AT_ONCE = 32
"""Entries that a loop takes at once, as four vectors; what is left over is done one by one."""

_options: Any = {"cache": True, "nogil": True, "error_model": "numpy"}
_FAST: Any = {"contract", "nnan", "ninf", "nsz"}
_inner = numba.njit(**_options, fastmath=_FAST)
# Elsewhere a NaN ends as one whatever is assumed; a comparison must not lose it.
_with_nan = numba.njit(**_options, fastmath={"contract", "nsz"})
# Sums in any order, of vectors at a time.
_sum_of = numba.njit(**_options, fastmath=True)


def weigh(scores: Tensor, start: int, p: float, numbers: Tensor) -> None:
    """Put the weights of rows in the place of scores; see the plain form."""
    _in_threads(_weigh, len(scores), scores.numel(), (scores, numbers.movedim(0, 1)), start, int(p))


def differentiate(
    scores: Tensor, change: Tensor, start: int, p: float, numbers: Tensor, mean: Tensor
) -> None:
    """Put gradients of scores in the place of ``change``; see the plain form."""
    tensors = scores, change, numbers.movedim(0, 1), mean
    _in_threads(_differentiate, len(scores), scores.numel(), tensors, start, int(p))


def _in_threads(
    kernel: Callable[..., None], heads: int, entries: int, tensors: tuple[Tensor, ...], *rest: Any
) -> None:
    """Run a kernel on tensors whose first dimension is the heads, some heads a thread."""
    arrays = [x.numpy() for x in tensors]
    threads = min(torch.get_num_threads(), heads, entries // ENTRIES_OF_A_THREAD)
    if threads < 2:
        kernel(*arrays, *rest)
        return
    bounds = [heads * i // threads for i in range(threads + 1)]
    parts = [slice(*pair) for pair in itertools.pairwise(bounds)]
    list(_pool(os.getpid(), threads).map(lambda i: kernel(*(x[i] for x in arrays), *rest), parts))


@cache
def _pool(process: int, threads: int) -> ThreadPoolExecutor:
    """Return threads of this process: those of a parent are not there after a fork."""
    return ThreadPoolExecutor(threads)


@_inner
def _softplus(x, slope):
    """Put softplus in the place of x, and its derivative in ``slope`` if that has room."""
    with_slope = slope.size > 0
    for i in range(x.size):
        z = x[i]
        a = max(-abs(z), LOWEST)
        n = np.rint(a * LOG2_E)
        r = a - n * LN2_HIGH - n * LN2_LOW
        c = (((EXP[0] * r + EXP[1]) * r + EXP[2]) * r + EXP[3]) * r + EXP[4]
        c = ((c * r + HALF) * r * r + r) + ONE
        t = c * np.int32((np.int32(n) + np.int32(127)) << np.int32(23)).view(np.float32)
        c = ((LOG1P[0] * t + LOG1P[1]) * t + LOG1P[2]) * t + LOG1P[3]
        c = (((c * t + LOG1P[4]) * t + LOG1P[5]) * t + LOG1P[6]) * t + LOG1P[7]
        x[i] = max(z, ZERO) + (c * t + LOG1P[8]) * t
        if with_slope:
            near = ONE / (ONE + t)
            slope[i] = near if z > ZERO else t * near


@_inner
def _whole(seen, keys):
    """Return the entries of a row that loops take: the seen ones, and some of the future's."""
    return min((seen + AT_ONCE - 1) // AT_ONCE * AT_ONCE, keys)


@_inner
def _least_ratio(p):
    return np.float32(LEAST_WEIGHT ** (1 / p)) if p > 0 else ZERO


@_with_nan
def _ratio(x, scale, offset, least):
    for i in range(x.size):
        ratio = x[i] * scale - offset
        x[i] = ZERO if ratio <= least else ratio


@_inner
def _lower_power(x, exponent, square, power):
    """Write x^exponent by squaring, 0 where x is; ``square`` is overwritten."""
    n = x.size
    if exponent == 0:
        for i in range(n):
            power[i] = ONE if x[i] > ZERO else ZERO
        return
    for i in range(n):
        square[i] = x[i]
    while exponent & 1 == 0:
        for i in range(n):
            square[i] *= square[i]
        exponent >>= 1
    for i in range(n):
        power[i] = square[i]
    exponent >>= 1
    while exponent:
        if exponent & 1:
            for i in range(n):
                square[i] *= square[i]
                power[i] *= square[i]
        else:
            for i in range(n):
                square[i] *= square[i]
        exponent >>= 1


@_sum_of
def _sum(x):
    total = ZERO
    for i in range(x.size):
        total += x[i]
    return total


@_inner
def _largest(x):
    """Return the largest of numbers that are not negative: they are ordered as their bits are."""
    bits = x.view(np.int32)
    largest = bits[0]
    for i in range(bits.size):
        largest = max(largest, bits[i])
    return np.int32(largest).view(np.float32)


# Of one type each, so that they are compiled once: other than scores, tensors may have any strides.
@numba.njit("void(f4[:, :, ::1], f4[:, :, :, :], i8, i8)", **_options, fastmath=_FAST)
def _weigh(scores, numbers, start, p):
    heads, rows, keys = scores.shape
    square, unused = np.empty(keys, np.float32), np.empty(0, np.float32)
    power, least = np.empty(keys, np.float32), _least_ratio(p)
    for head in range(heads):
        for row in range(rows):
            seen = start + row + 1
            weight = scores[head, row, : _whole(seen, keys)]
            _softplus(weight, unused)
            scores[head, row, seen:] = ZERO
            norm = ONE / _sum(weight)
            stretch = ZERO
            if p > 0:
                count = np.float32(seen)
                offset = ONE if seen > UNTOUCHED_ROWS else ZERO
                largest = _largest(weight) * (count * norm) - offset
                if largest > DEAD_BELOW:
                    stretch = ONE / largest
                _ratio(weight, count * norm * stretch, offset * stretch, least)
                _lower_power(weight, p - 1, square, power)
                for i in range(weight.size):
                    weight[i] *= power[i]
            total = _sum(weight)
            numbers[head, 0, row, 0] = norm
            numbers[head, 1, row, 0] = stretch
            numbers[head, 2, row, 0] = ONE / total if total > ZERO else ZERO


@numba.njit(
    "void(f4[:, :, ::1], f4[:, :, ::1], f4[:, :, :, :], f4[:, :, :], i8, i8)",
    **_options,
    fastmath=_FAST,
)
def _differentiate(scores, change, numbers, mean, start, p):
    heads, rows, keys = scores.shape
    slopes, square = np.empty(keys, np.float32), np.empty(keys, np.float32)
    power, least = np.empty(keys, np.float32), _least_ratio(p)
    for head in range(heads):
        for row in range(rows):
            seen = start + row + 1
            whole = _whole(seen, keys)
            weight, gradient = scores[head, row, :whole], change[head, row, :whole]
            slope = slopes[:whole]
            _softplus(weight, slope)
            scores[head, row, seen:] = ZERO
            change[head, row, seen:] = ZERO
            slope[seen:] = ZERO
            norm, gain = numbers[head, 0, row, 0], numbers[head, 2, row, 0]
            average = mean[head, row, 0]
            if p > 0:
                count, stretch = np.float32(seen), numbers[head, 1, row, 0]
                offset = ONE if seen > UNTOUCHED_ROWS else ZERO
                _ratio(weight, count * norm * stretch, offset * stretch, least)
                _lower_power(weight, p - 1, square, power)
                for i in range(whole):
                    weight[i] *= power[i] * gain
                    gradient[i] = (gradient[i] - average) * power[i]
                scale = np.float32(p) * stretch * gain * norm
                along = _sum(gradient) * scale * offset
                scale *= count
                for i in range(whole):
                    gradient[i] = (gradient[i] * scale - along) * slope[i]
            else:
                for i in range(whole):
                    weight[i] *= gain
                    gradient[i] = (gradient[i] - average) * norm * slope[i]
