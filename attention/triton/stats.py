"""The first pass of the sharpened variants: the numbers of stage 1 for each row.

Writes four numbers a row, from which every later kernel rebuilds its weights:

    shift     u = scale s + shift (for exp with the row's maximum and sum inside, so g = i a)
    gain      the factor that follows stage 2 (elastic; the forward pass writes it for reweight)
    stretch   i A / x_max   (reweight; 0 in a dead row)
    offset    o / x_max     (reweight), tau_i / A (elastic)

phi is monotone, so the row's largest weight is phi of its largest score: stage 2 needs no maximum.
"""

import math

import triton
import triton.language as tl

from attention import reference
from attention.triton.primitives import (
    LOWEST_OF_LOGARITHMS,
    SIZES,
    block_of_rows,
    distance_bias,
    dot,
    far_bias,
    has_table,
    load_rows,
    log2,
    of_row,
    phi,
)

DEAD_BELOW = tl.constexpr(reference.DEAD_BELOW)
UNTOUCHED_ROWS = tl.constexpr(reference.UNTOUCHED_ROWS)
SHRINK = tl.constexpr(127 / 128)
UNSHRINK = tl.constexpr(-math.log2(127 / 128))


@triton.jit(do_not_specialize=SIZES)
def stats_kernel(
    q, k, tau, bias, rows,
    heads, n_rows, length, total_length, longest, numbers,
    PHI: tl.constexpr, SHARPEN: tl.constexpr, BIAS: tl.constexpr,
    PRECISE: tl.constexpr, D: tl.constexpr, ROWS: tl.constexpr, KEYS: tl.constexpr,
):  # fmt: skip
    """Write ``rows`` [4, B H, Lq] from q [B H, Lq, D] and k [B H, Lk, D]; a program per block."""
    scale0, scale1, shift0, shift1, _, _, tau0, tau1, _, _ = numbers
    head, start, row, place = block_of_rows(length, total_length, ROWS)
    q += head * length * D
    k += head * total_length * D
    if BIAS != "none":
        bias += head % heads * longest
    count = (place + 1).to(tl.float32)
    scale = of_row(place, scale0, scale1)
    shift = of_row(place, shift0, shift1)
    block = load_rows(q, start, length, ROWS, D)

    by_products: tl.constexpr = PHI == "softplus" and not PRECISE
    top, total = _all_tiles(
        block, k, start, place, scale, shift, bias, length, total_length, longest,
        PHI, BIAS, PRECISE, by_products, D, ROWS, KEYS,
    )  # fmt: skip
    if by_products:  # decided when it is compiled, unlike the next  # noqa: SIM102
        if tl.min(tl.where(row < length, top, 0.0)) < LOWEST_OF_LOGARITHMS:
            top, total = _all_tiles(
                block, k, start, place, scale, shift, bias, length, total_length, longest,
                PHI, BIAS, PRECISE, False, D, ROWS, KEYS,
            )  # fmt: skip

    if PHI == "exp":
        # Fold maximum, sum and row number into the shift: g = i a, which half precision can hold.
        largest = count / total
        shift += tl.log2(largest) - top
        norm = 1 / count
    else:
        largest = phi(top, PHI, PRECISE)
        norm = tl.where(total > 0, 1 / total, 0.0)
    if SHARPEN == "reweight":
        subtracted = tl.where(count > UNTOUCHED_ROWS, 1.0, 0.0)
        excess = count * norm * largest - subtracted
        alive = excess > DEAD_BELOW
        stretch = tl.where(alive, count * norm / excess, 0.0)
        offset = tl.where(alive, subtracted / excess, 0.0)
    else:
        threshold = tl.load(tau + head % heads) * tau0 * tl.exp2(-tau1 * tl.log2(count))
        stretch = norm
        offset = tl.where(norm > 0, threshold / norm, 0.0)
    inside = row < length
    rows += head * length + row
    tl.store(rows, shift, mask=inside)
    tl.store(rows + n_rows, norm, mask=inside)
    tl.store(rows + 2 * n_rows, stretch, mask=inside)
    tl.store(rows + 3 * n_rows, offset, mask=inside)


@triton.jit
def _all_tiles(
    block, k, start, place, scale, shift, bias, length, total_length, longest,
    PHI: tl.constexpr, BIAS: tl.constexpr, PRECISE: tl.constexpr, BY_PRODUCTS: tl.constexpr,
    D: tl.constexpr, ROWS: tl.constexpr, KEYS: tl.constexpr,
):  # fmt: skip
    """Return the largest u and the sum of g of each row of a block, over all keys."""
    top = tl.full([ROWS], float("-inf"), tl.float32)
    total = tl.zeros([ROWS], tl.float32)
    first_place = start + (total_length - length)
    unmasked = (first_place + 1) // KEYS * KEYS
    far = unmasked
    if has_table(BIAS):
        # Keys further than the table has one bias; reading it for each pair is most of the work.
        far = tl.maximum(first_place - longest + 1, 0) // KEYS * KEYS
    for key in tl.range(0, far, KEYS):
        top, total = _add_tile(
            top, total, block, k, key, place, scale, shift, bias, total_length, longest,
            PHI, far_bias(BIAS), PRECISE, BY_PRODUCTS, D, KEYS, False,
        )  # fmt: skip
    if has_table(BIAS):
        for key in tl.range(far, unmasked, KEYS, num_stages=1):
            top, total = _add_tile(
                top, total, block, k, key, place, scale, shift, bias, total_length, longest,
                PHI, BIAS, PRECISE, BY_PRODUCTS, D, KEYS, False,
            )  # fmt: skip
    for key in tl.range(unmasked, tl.minimum(first_place + ROWS, total_length), KEYS):
        top, total = _add_tile(
            top, total, block, k, key, place, scale, shift, bias, total_length, longest,
            PHI, BIAS, PRECISE, BY_PRODUCTS, D, KEYS, True,
        )  # fmt: skip
    return top, total


@triton.jit
def _add_tile(
    top, total, block, k, key, place, scale, shift, bias, total_length, longest,
    PHI: tl.constexpr, BIAS: tl.constexpr, PRECISE: tl.constexpr, BY_PRODUCTS: tl.constexpr,
    D: tl.constexpr, KEYS: tl.constexpr, MASKED: tl.constexpr,
):  # fmt: skip
    """Add a tile of keys to the largest u and the sum of g (of 2^(u - top) for exp) of each row.

    With ``BY_PRODUCTS`` the sum of log2(1 + 2^u) is that of max(u, 0) and one logarithm of the
    product of 1 + 2^-|u|: a multiplication in place of a polynomial.
    """
    keys = key + tl.arange(0, KEYS)
    tile = load_rows(k, key, total_length if MASKED else key + KEYS, KEYS, D)
    s = dot(block, tl.trans(tile), tl.zeros([block.shape[0], KEYS], tl.float32))
    u = tl.fma(s, scale[:, None], shift[:, None])
    if BIAS != "none":
        u -= distance_bias(bias, place[:, None] - keys[None, :], longest, BIAS)
    if MASKED:
        u = tl.where(keys[None, :] <= place[:, None], u, float("-inf"))
    new_top = tl.maximum(top, tl.max(u, axis=1))
    if PHI == "exp":
        more = tl.sum(tl.exp2(u - new_top[:, None]), axis=1)
        total = total * tl.exp2(top - new_top)
    elif BY_PRODUCTS:
        tl.static_assert(KEYS <= 128)  # (2 SHRINK)^128 is the largest product below infinity
        factors = tl.fma(tl.exp2(-tl.abs(u)), SHRINK, SHRINK)
        more = log2(tl.reduce(factors, 1, _times)) + KEYS * UNSHRINK
        more += tl.sum(tl.maximum(u, 0.0), axis=1)
    else:
        more = tl.sum(phi(u, PHI, PRECISE), axis=1)
    return new_top, total + more


@triton.jit
def _times(a, b):
    return a * b
