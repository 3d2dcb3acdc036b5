"""The row means of re-weighting's gradient where dO . o would be too far off.

Where one key holds nearly all of a row (a high p, a short row), its dP and the mean of dP agree to
more digits than float32 has, and their difference is the gradient. dO . o, which ``pre`` takes for
the mean, has been rounded on another way than dP. So in float32, for a high p, and where exact
gradients are asked for, the mean is taken from the dP of the tiles themselves, as a base (dP of the
largest weight) and the small mean distance from it: one more pass.
"""

import triton
import triton.language as tl

from attention import reference
from attention.triton.primitives import (
    SIZES,
    add_to_peak,
    block_of_rows,
    load_numbers,
    load_rows,
    phi,
    scores_and_products,
    sharpen,
)

UNTOUCHED_ROWS = tl.constexpr(reference.UNTOUCHED_ROWS)


@triton.jit(do_not_specialize=SIZES)
def means_kernel(
    q, k, v, grad, bias, rows, row_grads, peaks,
    heads, n_rows, length, total_length, longest, numbers,
    PHI: tl.constexpr, SHARPEN: tl.constexpr, BIAS: tl.constexpr, P: tl.constexpr,
    SCALED: tl.constexpr,
    PRECISE: tl.constexpr, D: tl.constexpr, ROWS: tl.constexpr, KEYS: tl.constexpr,
):  # fmt: skip
    """Write base, k2, distance to ``row_grads`` [1] to [3]; one program per block of rows."""
    scale0, scale1, _, _, _, _, _, _, constant, p = numbers
    head, start, row, place = block_of_rows(length, total_length, ROWS)
    inside = row < length
    count = (place + 1).to(tl.float32)
    rows += head * length + row
    row_grads += head * length + row
    number = load_numbers(rows, n_rows, inside, place, scale0, scale1, SHARPEN)
    _, _, stretch, offset = number
    if BIAS != "none":
        bias += head % heads * longest
    block = load_rows(q + head * length * D, start, length, ROWS, D)
    upstream = load_rows(grad + head * length * D, start, length, ROWS, D)
    k += head * total_length * D
    v += head * total_length * D
    top = tl.zeros([ROWS], tl.float32)
    base, total, away, lower_total, lower_away = top, top, top, top, top
    for key in tl.range(0, tl.minimum(start + total_length - length + ROWS, total_length), KEYS):
        keys = key + tl.arange(0, KEYS)
        tile = load_rows(k, key, total_length, KEYS, D)
        values = load_rows(v, key, total_length, KEYS, D)
        u, dp, distance = scores_and_products(
            block, upstream, tile, values, place, keys, number, bias, longest, BIAS
        )
        g = phi(u, PHI, PRECISE)
        weight, lower = sharpen(g, stretch[:, None], offset[:, None], p, SHARPEN, P)
        weight = tl.where(distance >= 0, weight, 0.0)
        lower = tl.where(distance >= 0, lower, 0.0)

        best = tl.max(weight, axis=1)
        at_best = tl.where(weight == best[:, None], 1.0, 0.0)
        inner = tl.sum(at_best * dp, axis=1) / tl.sum(at_best, axis=1)
        moved = tl.where(best > top, inner, base)
        away += total * (base - moved)
        lower_away += lower_total * (base - moved)
        base, top = moved, tl.maximum(top, best)
        step = dp - base[:, None]
        total += tl.sum(weight, axis=1)
        away += tl.sum(weight * step, axis=1)
        lower_total += tl.sum(lower, axis=1)
        lower_away += tl.sum(lower * step, axis=1)
    gain = tl.where(total > 0, 1 / total, 0.0)
    mean = away * gain
    along = (lower_away - lower_total * mean) * gain
    k2 = tl.where(count > UNTOUCHED_ROWS, constant * p * stretch / count * along, 0.0)
    if SCALED:
        slope = tl.full([ROWS], 1.0, tl.float32)  # of phi, at most, as in pre_kernel
        if PHI == "exp":
            slope = tl.where(stretch > 0, (1.0 + offset) / stretch, 0.0)
        largest = tl.where(inside, slope * tl.abs(k2), 0.0)
        add_to_peak(peaks, head, n_rows // length, 2, largest)
    tl.store(row_grads + n_rows, base, mask=inside)
    tl.store(row_grads + 2 * n_rows, k2, mask=inside)
    tl.store(row_grads + 3 * n_rows, mean, mask=inside)
