"""The output: one pass after ``stats`` where there is a second stage, one pass alone elsewhere."""

import triton
import triton.language as tl

from attention.triton.primitives import (
    LOWEST_OF_LOGARITHMS,
    SIZES,
    block_of_rows,
    distance_bias,
    dot,
    far_bias,
    has_table,
    load_rows,
    narrow,
    of_row,
    phi,
    sharpen,
    softplus_by_log,
    store_rows,
)


@triton.jit(do_not_specialize=SIZES)
def forward_kernel(
    q, k, v, bias, rows, out, extra,
    heads, n_rows, length, total_length, longest, numbers,
    PHI: tl.constexpr, L1: tl.constexpr, SHARPEN: tl.constexpr, BIAS: tl.constexpr,
    P: tl.constexpr, SAVE: tl.constexpr,
    PRECISE: tl.constexpr, D: tl.constexpr, ROWS: tl.constexpr, KEYS: tl.constexpr,
):  # fmt: skip
    """Write the output; one program per block of rows.

    With ``SAVE`` it writes what the backward pass needs beyond q, k, v and the output: two or four
    numbers a row, and with a second stage ``extra`` [B H, Lq, D]: the direction
    G = sum_j e_j (v_j - o) / W, e = r^(p-1), for reweight, and the mean of the v_j that survive,
    times their share, for elastic. One more product here saves a pass over all tiles there.
    """
    scale0, scale1, shift0, shift1, norm0, norm1, _, _, _, p = numbers
    head, start, row, place = block_of_rows(length, total_length, ROWS)
    q += head * length * D
    k += head * total_length * D
    v += head * total_length * D
    if BIAS != "none":
        bias += head % heads * longest
    inside = row < length
    rows += head * length + row
    count = (place + 1).to(tl.float32)
    scale = of_row(place, scale0, scale1)
    if SHARPEN == "none":
        shift = of_row(place, shift0, shift1)
        stretch, offset = shift, shift  # not used
    else:
        shift = tl.load(rows, mask=inside, other=0.0)
        stretch = tl.load(rows + 2 * n_rows, mask=inside, other=0.0)
        offset = tl.load(rows + 3 * n_rows, mask=inside, other=0.0)
    number = (scale, shift, stretch, offset)
    block = load_rows(q, start, length, ROWS, D)

    # The polynomial of softplus is needed where a row's largest weight is small: from ``stats``,
    # that is (1 + offset) / stretch.
    may_be_by_log: tl.constexpr = PHI == "softplus" and SHARPEN == "reweight" and not PRECISE
    by_log = False
    if may_be_by_log:
        lowest: tl.constexpr = 2.0**LOWEST_OF_LOGARITHMS
        by_log = tl.min(tl.where(stretch * lowest > 1.0 + offset, 0, 1)) > 0
    if by_log:
        state = _all_tiles(
            block, k, v, start, place, number, p, bias, length, total_length, longest,
            PHI, SHARPEN, BIAS, P, SAVE, PRECISE, may_be_by_log, D, ROWS, KEYS,
        )  # fmt: skip
    else:
        state = _all_tiles(
            block, k, v, start, place, number, p, bias, length, total_length, longest,
            PHI, SHARPEN, BIAS, P, SAVE, PRECISE, False, D, ROWS, KEYS,
        )  # fmt: skip

    top, total, sums, lower_total, lower_sums = state
    if SHARPEN == "elastic":
        gain = tl.load(rows + n_rows, mask=inside, other=0.0)
    elif SHARPEN == "reweight" or L1:
        gain = tl.where(total > 0, 1 / total, 0.0)
    else:
        gain = norm0 * tl.exp2(-norm1 * tl.log2(count))
    result = sums * gain[:, None]
    if PHI == "exp" and SHARPEN == "none":
        if L1:
            # Fold the normaliser into the shift: the backward pass rebuilds a = 2^u as it is.
            shift -= top + tl.log2(total)
            gain = tl.full([ROWS], 1.0, tl.float32)
        else:
            result *= tl.exp2(top)[:, None]
    store_rows(out + head * length * D, start, length, result, ROWS, D)
    if SAVE:
        if SHARPEN == "none":
            tl.store(rows, shift, mask=inside)
        tl.store(rows + n_rows, gain, mask=inside)
        if SHARPEN == "reweight":
            direction = (lower_sums - lower_total[:, None] * result) * gain[:, None]
            store_rows(extra + head * length * D, start, length, direction, ROWS, D)
        elif SHARPEN == "elastic":
            mean = lower_sums / count[:, None]
            store_rows(extra + head * length * D, start, length, mean, ROWS, D)


@triton.jit
def _all_tiles(
    block, k, v, start, place, number, p, bias, length, total_length, longest,
    PHI: tl.constexpr, SHARPEN: tl.constexpr, BIAS: tl.constexpr, P: tl.constexpr,
    SAVE: tl.constexpr, PRECISE: tl.constexpr, BY_LOG: tl.constexpr,
    D: tl.constexpr, ROWS: tl.constexpr, KEYS: tl.constexpr,
):  # fmt: skip
    """Return a block's sums over all keys: (largest u, W, sum of w v, sum of e, sum of e v)."""
    top = tl.full([ROWS], float("-inf"), tl.float32)
    total = tl.zeros([ROWS], tl.float32)
    lower_total = tl.zeros([ROWS], tl.float32)
    sums = tl.zeros([ROWS, D], tl.float32)
    lower_sums = tl.zeros([ROWS, D], tl.float32)
    state = (top, total, sums, lower_total, lower_sums)
    first_place = start + (total_length - length)
    unmasked = (first_place + 1) // KEYS * KEYS
    far = unmasked
    if has_table(BIAS):
        # Keys further than the table has one bias; reading it for each pair is most of the work.
        far = tl.maximum(first_place - longest + 1, 0) // KEYS * KEYS
    for key in tl.range(0, far, KEYS):
        state = _add_tile(
            state, block, k, v, key, place, number, p, bias, total_length, longest,
            PHI, SHARPEN, far_bias(BIAS), P, SAVE, PRECISE, BY_LOG, D, KEYS, False,
        )  # fmt: skip
    if has_table(BIAS):
        for key in tl.range(far, unmasked, KEYS, num_stages=1):
            state = _add_tile(
                state, block, k, v, key, place, number, p, bias, total_length, longest,
                PHI, SHARPEN, BIAS, P, SAVE, PRECISE, BY_LOG, D, KEYS, False,
            )  # fmt: skip
    for key in tl.range(unmasked, tl.minimum(first_place + ROWS, total_length), KEYS):
        state = _add_tile(
            state, block, k, v, key, place, number, p, bias, total_length, longest,
            PHI, SHARPEN, BIAS, P, SAVE, PRECISE, BY_LOG, D, KEYS, True,
        )  # fmt: skip
    return state


@triton.jit
def _add_tile(
    state, block, k, v, key, place, number, p, bias, total_length, longest,
    PHI: tl.constexpr, SHARPEN: tl.constexpr, BIAS: tl.constexpr, P: tl.constexpr,
    SAVE: tl.constexpr, PRECISE: tl.constexpr, BY_LOG: tl.constexpr, D: tl.constexpr,
    KEYS: tl.constexpr, MASKED: tl.constexpr,
):  # fmt: skip
    """Add a tile of keys to a block's running sums."""
    top, total, sums, lower_total, lower_sums = state
    scale, shift, stretch, offset = number
    keys = key + tl.arange(0, KEYS)
    end = total_length if MASKED else key + KEYS
    visible = keys[None, :] <= place[:, None]
    tile = load_rows(k, key, end, KEYS, D)
    values = load_rows(v, key, end, KEYS, D)
    s = dot(block, tl.trans(tile), tl.zeros([block.shape[0], KEYS], tl.float32))
    u = tl.fma(s, scale[:, None], shift[:, None])
    if BIAS != "none":
        u -= distance_bias(bias, place[:, None] - keys[None, :], longest, BIAS)
    if SHARPEN == "none" and PHI == "exp":
        if MASKED:
            u = tl.where(visible, u, float("-inf"))
        new_top = tl.maximum(top, tl.max(u, axis=1))
        weight = tl.exp2(u - new_top[:, None])
        rescale = tl.exp2(top - new_top)
        top, total, sums = new_top, total * rescale, sums * rescale[:, None]
        total += tl.sum(weight, axis=1)
    else:
        weight = softplus_by_log(u) if BY_LOG else phi(u, PHI, PRECISE)
        if SHARPEN != "none":
            weight, lower = sharpen(weight, stretch[:, None], offset[:, None], p, SHARPEN, P)
            if SAVE:
                if MASKED:
                    lower = tl.where(visible, lower, 0.0)
                if SHARPEN == "reweight":
                    lower_total += tl.sum(lower, axis=1)
                lower_sums = dot(narrow(lower, v.dtype.element_ty), values, lower_sums)
        if MASKED:
            # After the ReLU: a negative elastic offset lifts the keys of the future above zero.
            weight = tl.where(visible, weight, 0.0)
        if SHARPEN != "elastic":
            total += tl.sum(weight, axis=1)
    sums = dot(narrow(weight, v.dtype.element_ty), values, sums)
    return top, total, sums, lower_total, lower_sums
