"""Gradients, by recomputing each tile of weights from the numbers that the forward pass saved.

With delta = dO . o and dP_j = dO . v_j, the gradient of u is

    du_j = g'_j (k1 e_j (dP_j - d) - k2)

where e is the slope of stage 2 and k1, d, k2 are numbers of the row. k2 holds the l1 norms'
share; for re-weighting it needs sum_j a_j da_j, which collapses to dO . G because the power and
the second norm are together homogeneous of degree 0. With ``EXACT`` d comes in two parts and both
from ``means``.
"""

import triton
import triton.language as tl

from attention.triton.primitives import (
    SIZES,
    block_of_rows,
    dot,
    far_bias,
    has_table,
    load_numbers,
    load_rows,
    narrow,
    phi_and_slope,
    power_of_two,
    scores_and_products,
    sharpen,
    store_rows,
    through_unit,
)


@triton.jit(do_not_specialize=SIZES)
def dq_kernel(
    q, k, v, grad, inverse, bias, rows, row_grads, peaks, dq, dbias,
    heads, n_rows, length, total_length, longest, numbers,
    PHI: tl.constexpr, SHARPEN: tl.constexpr, BIAS: tl.constexpr, P: tl.constexpr,
    UNIT: tl.constexpr, EXACT: tl.constexpr, SCALED: tl.constexpr,
    PRECISE: tl.constexpr, D: tl.constexpr, ROWS: tl.constexpr, KEYS: tl.constexpr,
):  # fmt: skip
    """Write the gradient of q, and add that of a learned bias; one program per block of rows.

    With ``UNIT`` q holds unit vectors and ``inverse`` one over the lengths they had: the gradient
    is that of the vectors before. With ``SCALED`` du is multiplied by a power of two that brings
    it within the type of q.
    """
    scale0, scale1, _, _, _, _, _, _, _, p = numbers
    head, start, row, place = block_of_rows(length, total_length, ROWS)
    exponent = 0.0
    if SCALED:
        n_heads = n_rows // length
        exponent = power_of_two(peaks, head, n_heads, total_length - 1, scale0, scale1)
    number, gradient = _load_numbers_and_gradients(
        rows, row_grads, n_rows, head * length, row, length, place, scale0, scale1, exponent,
        SHARPEN, EXACT, SCALED,
    )  # fmt: skip
    if BIAS != "none":
        bias += head % heads * longest
        dbias += head % heads * longest
    block = load_rows(q + head * length * D, start, length, ROWS, D)
    upstream = load_rows(grad + head * length * D, start, length, ROWS, D)
    k += head * total_length * D
    v += head * total_length * D
    total = tl.zeros([ROWS, D], tl.float32)
    first_place = start + (total_length - length)
    unmasked = (first_place + 1) // KEYS * KEYS
    far = unmasked
    if has_table(BIAS):
        # Keys further than the table has one bias; reading it for each pair is most of the work.
        far = tl.maximum(first_place - longest + 1, 0) // KEYS * KEYS
    for key in tl.range(0, far, KEYS):
        total = _add_to_dq(
            total, block, upstream, k, v, key, place, number, gradient, p,
            exponent, bias, dbias, total_length, longest,
            PHI, SHARPEN, far_bias(BIAS), P, EXACT, PRECISE, D, KEYS, False,
        )  # fmt: skip
    if has_table(BIAS):
        for key in tl.range(far, unmasked, KEYS, num_stages=1):
            total = _add_to_dq(
                total, block, upstream, k, v, key, place, number, gradient, p,
                exponent, bias, dbias, total_length, longest,
                PHI, SHARPEN, BIAS, P, EXACT, PRECISE, D, KEYS, False,
            )  # fmt: skip
    for key in tl.range(unmasked, tl.minimum(first_place + ROWS, total_length), KEYS):
        total = _add_to_dq(
            total, block, upstream, k, v, key, place, number, gradient, p,
            exponent, bias, dbias, total_length, longest,
            PHI, SHARPEN, BIAS, P, EXACT, PRECISE, D, KEYS, True,
        )  # fmt: skip
    total *= (number[0] * tl.exp2(-exponent))[:, None]
    if UNIT:
        here = head * length
        total = through_unit(total, q + here * D, inverse + here, start, length, ROWS, D)
    store_rows(dq + head * length * D, start, length, total, ROWS, D)


@triton.jit(do_not_specialize=SIZES)
def dkdv_kernel(
    q, k, v, grad, inverse, bias, rows, row_grads, peaks, dk, dv, sums_q,
    heads, n_rows, length, total_length, longest, numbers,
    PHI: tl.constexpr, L1: tl.constexpr, SHARPEN: tl.constexpr, BIAS: tl.constexpr,
    P: tl.constexpr, UNIT: tl.constexpr, EXACT: tl.constexpr, SCALED: tl.constexpr,
    ATOMIC: tl.constexpr,
    PRECISE: tl.constexpr, D: tl.constexpr, ROWS: tl.constexpr, KEYS: tl.constexpr,
):  # fmt: skip
    """Write the gradients of k and v; one program per block of keys.

    ``UNIT``, ``SCALED`` and ``inverse`` are as in dq_kernel, of the keys. With ``ATOMIC`` the
    gradient of q is added up in ``sums_q`` [B H, Lq, D], float32, in place of dq_kernel:
    ``finish_kernel`` makes it.
    """
    scale0, scale1, _, _, _, _, _, _, _, p = numbers
    blocks = tl.cdiv(total_length, KEYS)
    head = (tl.program_id(0) // blocks).to(tl.int64)
    exponent = 0.0
    if SCALED:
        n_heads = n_rows // length
        exponent = power_of_two(peaks, head, n_heads, total_length - 1, scale0, scale1)
    if ATOMIC:
        sums_q += head * length * D
    key = tl.program_id(0) % blocks * KEYS  # the first keys have the most rows
    keys = key + tl.arange(0, KEYS)
    here = head * total_length * D
    tile = load_rows(k + here, key, total_length, KEYS, D)
    values = load_rows(v + here, key, total_length, KEYS, D)
    q += head * length * D
    grad += head * length * D
    if BIAS != "none":
        bias += head % heads * longest
    sum_k = tl.zeros([KEYS, D], tl.float32)
    sum_v = tl.zeros([KEYS, D], tl.float32)
    lead = total_length - length
    first = tl.maximum(key - lead, 0) // ROWS * ROWS
    seen_by_all = tl.cdiv(tl.maximum(key + KEYS - 1 - lead, 0), ROWS) * ROWS
    for start in tl.range(first, tl.minimum(seen_by_all, length), ROWS):
        sum_k, sum_v = _add_to_dkdv(
            sum_k, sum_v, tile, values, q, grad, start, keys, rows, row_grads, n_rows,
            head * length, length, lead, scale0, scale1, p, exponent, bias, longest,
            sums_q, PHI, L1, SHARPEN, BIAS, P, EXACT, SCALED, ATOMIC, PRECISE, D, ROWS, True,
        )  # fmt: skip
    far = seen_by_all
    if has_table(BIAS):
        far = tl.maximum(tl.cdiv(key + KEYS - 1 + longest - lead, ROWS) * ROWS, seen_by_all)
        for start in tl.range(seen_by_all, tl.minimum(far, length), ROWS, num_stages=1):
            sum_k, sum_v = _add_to_dkdv(
                sum_k, sum_v, tile, values, q, grad, start, keys, rows, row_grads, n_rows,
                head * length, length, lead, scale0, scale1, p, exponent, bias, longest,
                sums_q, PHI, L1, SHARPEN, BIAS, P, EXACT, SCALED, ATOMIC, PRECISE, D, ROWS, False,
            )  # fmt: skip
    for start in tl.range(far, length, ROWS):
        sum_k, sum_v = _add_to_dkdv(
            sum_k, sum_v, tile, values, q, grad, start, keys, rows, row_grads, n_rows,
            head * length, length, lead, scale0, scale1, p, exponent, bias, longest,
            sums_q, PHI, L1, SHARPEN, far_bias(BIAS), P, EXACT, SCALED, ATOMIC, PRECISE, D, ROWS,
            False,
        )  # fmt: skip
    if SCALED:
        sum_k *= tl.exp2(-exponent)
    if UNIT:
        factors = inverse + head * total_length
        sum_k = through_unit(sum_k, k + here, factors, key, total_length, KEYS, D)
    store_rows(dk + here, key, total_length, sum_k, KEYS, D)
    store_rows(dv + here, key, total_length, sum_v, KEYS, D)


@triton.jit
def _load_numbers_and_gradients(
    rows, row_grads, n_rows, first, row, length, place, scale0, scale1, exponent,
    SHARPEN: tl.constexpr, EXACT: tl.constexpr, SCALED: tl.constexpr,
):  # fmt: skip
    """Load a block's (scale, shift, stretch, offset), and its (k1, d, rest of d, k2, gain).

    With ``SCALED`` k1 and k2 are multiplied by 2^exponent.
    """
    inside = row < length
    rows += first + row
    row_grads += first + row
    number = load_numbers(rows, n_rows, inside, place, scale0, scale1, SHARPEN)
    gain = tl.load(rows + n_rows, mask=inside, other=0.0)
    k1 = tl.load(row_grads, mask=inside, other=0.0)
    d = tl.load(row_grads + n_rows, mask=inside, other=0.0)
    rest = d  # not used
    if EXACT:
        rest = tl.load(row_grads + 3 * n_rows, mask=inside, other=0.0)
    k2 = tl.load(row_grads + 2 * n_rows, mask=inside, other=0.0)
    if SCALED:
        k1 *= tl.exp2(exponent)
        k2 *= tl.exp2(exponent)
    return number, (k1, d, rest, k2, gain)


@triton.jit
def _weight_and_slopes(
    u, number, p,
    PHI: tl.constexpr, SHARPEN: tl.constexpr, P: tl.constexpr, PRECISE: tl.constexpr,
):  # fmt: skip
    """Return a tile's weights before their gain, and the slopes of stage 1 and stage 2."""
    _, _, stretch, offset = number
    g, slope = phi_and_slope(u, PHI, PRECISE)
    weight, lower = g, slope
    if SHARPEN != "none":
        weight, lower = sharpen(g, stretch[:, None], offset[:, None], p, SHARPEN, P)
    return weight, slope, lower


@triton.jit
def _du(dp, slope, lower, k1, d, rest, k2, SHARPEN: tl.constexpr, EXACT: tl.constexpr):
    """Return the gradient of a tile's u."""
    if SHARPEN == "reweight":
        dp -= d[:, None]
        if EXACT:
            dp -= rest[:, None]
    if SHARPEN != "none":
        dp *= lower
    return slope * (k1[:, None] * dp - k2[:, None])


@triton.jit
def _add_to_dq(
    total, block, upstream, k, v, key, place, number, gradient, p,
    exponent, bias, dbias, total_length, longest,
    PHI: tl.constexpr, SHARPEN: tl.constexpr, BIAS: tl.constexpr, P: tl.constexpr,
    EXACT: tl.constexpr, PRECISE: tl.constexpr, D: tl.constexpr, KEYS: tl.constexpr,
    MASKED: tl.constexpr,
):  # fmt: skip
    """Add a tile of keys to the sum of du_j k_j of a block of rows."""
    k1, d, rest, k2, _ = gradient
    keys = key + tl.arange(0, KEYS)
    end = total_length if MASKED else key + KEYS
    tile = load_rows(k, key, end, KEYS, D)
    values = load_rows(v, key, end, KEYS, D)
    u, dp, distance = scores_and_products(
        block, upstream, tile, values, place, keys, number, bias, longest, BIAS
    )
    _, slope, lower = _weight_and_slopes(u, number, p, PHI, SHARPEN, P, PRECISE)
    du = _du(dp, slope, lower, k1, d, rest, k2, SHARPEN, EXACT)
    if MASKED:
        du = tl.where(distance >= 0, du, 0.0)
    if BIAS == "end":
        tl.atomic_add(dbias + longest - 1, -tl.exp2(-exponent) * tl.sum(du), sem="relaxed")
    elif has_table(BIAS):
        _add_diagonals(dbias, du, tl.exp2(-exponent), tl.min(place) - key, longest, BIAS == "last")
    return dot(narrow(du, k.dtype.element_ty), tile, total)


@triton.jit
def _add_to_dkdv(
    sum_k, sum_v, tile, values, q, grad, start, keys, rows, row_grads, n_rows,
    first, length, lead, scale0, scale1, p, exponent, bias, longest, sums_q,
    PHI: tl.constexpr, L1: tl.constexpr, SHARPEN: tl.constexpr, BIAS: tl.constexpr,
    P: tl.constexpr, EXACT: tl.constexpr, SCALED: tl.constexpr, ATOMIC: tl.constexpr,
    PRECISE: tl.constexpr, D: tl.constexpr, ROWS: tl.constexpr, MASKED: tl.constexpr,
):  # fmt: skip
    """Add a tile of rows to the sums of scale_i du_i q_i and of gain_i w_i dO_i of some keys.

    With ``ATOMIC`` add scale_i du_i k_j of the keys to the rows' sums in memory, too.
    """
    row = start + tl.arange(0, ROWS)
    place = row + lead
    number, gradient = _load_numbers_and_gradients(
        rows, row_grads, n_rows, first, row, length, place, scale0, scale1, exponent,
        SHARPEN, EXACT, SCALED,
    )  # fmt: skip
    scale, _, _, _ = number
    k1, d, rest, k2, gain = gradient
    block = load_rows(q, start, length, ROWS, D)
    upstream = load_rows(grad, start, length, ROWS, D)
    u, dp, distance = scores_and_products(
        block, upstream, tile, values, place, keys, number, bias, longest, BIAS
    )
    weight, slope, lower = _weight_and_slopes(u, number, p, PHI, SHARPEN, P, PRECISE)
    # Softmax has its gain inside the shift.
    if not (PHI == "exp" and SHARPEN == "none" and L1):
        weight *= gain[:, None]
    if MASKED:
        weight = tl.where(distance >= 0, weight, 0.0)
    sum_v = dot(tl.trans(narrow(weight, grad.dtype.element_ty)), upstream, sum_v)
    du = _du(dp, slope, lower, k1 * scale, d, rest, k2 * scale, SHARPEN, EXACT)
    if MASKED:
        du = tl.where(distance >= 0, du, 0.0)
    du = narrow(du, q.dtype.element_ty)
    sum_k = dot(tl.trans(du), block, sum_k)
    if ATOMIC:
        part = dot(du, tile, tl.zeros([ROWS, D], tl.float32))
        places = sums_q + row[:, None] * D + tl.arange(0, D)[None, :]
        tl.atomic_add(places, part, mask=row[:, None] < length, sem="relaxed")
    return sum_k, sum_v


@triton.jit
def _add_diagonals(sums, du, unscale, first, longest, LAST: tl.constexpr):
    """Subtract the diagonal sums of a tile from the gradient at their distances.

    ``first`` is the distance of row 0 and key 0. Column c of the sheared tile holds the entries
    whose distance is first + c plus a multiple of KEYS: a few adds per column in place of one per
    element.
    """
    ROWS: tl.constexpr = du.shape[0]
    KEYS: tl.constexpr = du.shape[1]
    column = tl.arange(0, KEYS)
    steps = tl.arange(0, ROWS)[:, None] - column[None, :]
    sheared = tl.gather(du, steps & (KEYS - 1), axis=1)
    for multiple in tl.static_range(-1, (ROWS + KEYS - 1) // KEYS):
        here = (steps >= multiple * KEYS) & (steps < (multiple + 1) * KEYS)
        distance = first + column + multiple * KEYS
        inside = distance >= 0
        if LAST:
            distance = tl.minimum(distance, longest - 1)
        else:
            inside = inside & (distance < longest)
        total = tl.sum(tl.where(here, sheared, 0.0), axis=0)
        tl.atomic_add(sums + distance, -unscale * total, mask=inside, sem="relaxed")
