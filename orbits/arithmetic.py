"""Elementary functions made of IEEE arithmetic alone, the same bits on every machine.

The math library's exp, sin or cbrt differ in the last bit between machines, and numpy picks its
own by the CPU. These are made of + - * /, sqrt, floor, comparisons and bit patterns, which
IEEE 754 fixes; so what is computed from them has one sha256 everywhere.

A function marked :func:`shared` runs twice: on numpy arrays (the specification) and, compiled by
``orbits.kernel``, on scalars, with the same bits. Only :func:`select`, :func:`bits` and
:func:`from_bits` differ between the two, so the kernel replaces them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]
Function = TypeVar("Function", bound=Callable[..., Any])

PI = 3.141592653589793
TURN = 6.283185307179586
PER_TURN = 0.15915494309189535

SHARED: list[Callable[..., Any]] = []


def shared(function: Function) -> Function:
    """Register a function that runs on arrays and, compiled by the kernel, on scalars."""
    SHARED.append(function)
    return function


def select(condition: Any, yes: Any, no: Any) -> Any:
    """Return ``yes`` where the condition holds and ``no`` elsewhere."""
    return np.where(condition, yes, no)


def bits(x: Any) -> Any:
    """Return the bit pattern of a float64 as uint64."""
    return x.view(np.uint64)


def from_bits(pattern: Any) -> Any:
    """Return the float64 of a bit pattern."""
    return pattern.view(np.float64)


@shared
def clipped(x, low, high):
    """Return x, moved into [low, high]."""
    return select(x < low, low, select(x > high, high, x))


# Minimax polynomials in h^2 on [0, (pi/2)^2]: errors 4e-19 and 7e-18.
_S0, _S1, _S2, _S3 = (
    -0.16666666666666666,
    0.008333333333333316,
    -0.00019841269841254974,
    2.7557319219163234e-06,
)
_S4, _S5, _S6, _S7 = (
    -2.5052107616996182e-08,
    1.6058977312464087e-10,
    -7.643970296798572e-13,
    2.7314447669863995e-15,
)
_C0, _C1, _C2, _C3 = (
    -0.5,
    0.04166666666666634,
    -0.0013888888888860709,
    2.4801587292446213e-05,
)
_C4, _C5, _C6, _C7 = (
    -2.755731776732053e-07,
    2.0876630867422994e-09,
    -1.1464689885720029e-11,
    4.6276759850181716e-14,
)


@shared
def sin_cos_quadrant(angle):
    """Return sine and cosine of an angle in [-pi/2, pi/2] radians, to 3e-16."""
    # Paired terms (Estrin) shorten the chain of dependent operations: 15 % of the kernel's time.
    z = angle * angle
    z2 = z * z
    z4 = z2 * z2
    sine = ((_S0 + z * _S1) + z2 * (_S2 + z * _S3)) + z4 * ((_S4 + z * _S5) + z2 * (_S6 + z * _S7))
    cosine = ((_C0 + z * _C1) + z2 * (_C2 + z * _C3)) + z4 * (
        (_C4 + z * _C5) + z2 * (_C6 + z * _C7)
    )
    return angle + angle * z * sine, 1.0 + z * cosine


@shared
def cos_sin(angle):
    """Return cosine and sine of any angle in radians; to 2e-15 within a turn."""
    turns = angle * PER_TURN
    # The half angle lies in one quadrant, and doubling it needs no case distinction.
    sine, cosine = sin_cos_quadrant(PI * (turns - np.floor(turns + 0.5)))
    return 1.0 - 2.0 * sine * sine, 2.0 * sine * cosine


_LOG2_E = 1.4426950408889634
_LN2_HIGH, _LN2_LOW = 0.6931471803691238, 1.9082149292705877e-10  # 33 bits, and the rest
_ROUND = 6755399441055744.0  # 1.5 * 2^52: adding it leaves the nearest integer in the low bits
_EXPONENT = np.uint64(52)
_EXP = tuple(1.0 / math.factorial(k) for k in range(13, -1, -1))  # the next term is below 4e-18


@shared
def exp(x):
    """Return e^x for x in (-700, 700), to 2e-16 relative."""
    rounded = x * _LOG2_E + _ROUND
    n = rounded - _ROUND
    r = (x - n * _LN2_HIGH) - n * _LN2_LOW
    series = _EXP[0]
    for coefficient in _EXP[1:]:
        series = series * r + coefficient
    return from_bits(bits(series) + (bits(rounded) << _EXPONENT))


_HIGH_WORD, _THIRD, _CBRT_BIAS = np.uint64(32), np.uint64(0x55555556), np.uint64(0x2A9F7893)


@shared
def cbrt_estimate(x):
    """Return an estimate of the cube root of a positive number, to 2e-5 relative."""
    # A third of the exponent by integers. Dividing the high word alone, as a product of two
    # 32-bit numbers, is what lets the compiled loop use vector instructions.
    y = from_bits((((bits(x) >> _HIGH_WORD) * _THIRD >> _HIGH_WORD) + _CBRT_BIAS) << _HIGH_WORD)
    y3 = y * y * y
    return y * (y3 + 2.0 * x) / (2.0 * y3 + x)
