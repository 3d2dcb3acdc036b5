"""Primitives of the kernels: phi and its slope, powers, row constants, tiles of scores.

Row i (from 1) has scores s = q_i . k_j. In the kernels

    u = scale_i s + shift_i - bias      (in log2 units where phi holds an exponential)
    g = phi(u)                          (the weight of stage 1 is A_i g, A_i constant in a row)
    r = max(stretch_i g - offset_i, 0)  (stage 2, where there is one)

so that each element costs one fused multiply-add a stage beside phi itself. They are written as
``fma``: whether a compiler fuses a * b + c by itself changes between versions of triton.
"""

import triton
import triton.language as tl

# The interpreter multiplies bfloat16 as raw 16-bit integers, without an error (triton 3.9).
INTERPRETED = tl.constexpr(triton.knobs.runtime.interpret)
SMALLEST_NORMAL = tl.constexpr(2.0**-126)
LOWEST_OF_LOGARITHMS = tl.constexpr(-8.0)
"""Bound on a row's largest u below which softplus is the polynomial of :func:`log2_1p`: 1 + 2^u has
lost too much of 2^u there for half precision."""

SIZES = ("heads", "n_rows", "length", "total_length", "longest")
"""The whole numbers of a call. Triton would compile a kernel again for each that is 1, or divides
by 16 where the last did not; as arguments of their own they can be exempt."""


@triton.jit
def narrow(x, TYPE: tl.constexpr):
    """Return float32 numbers in a type, rounded to the nearest as a GPU does.

    The interpreter cuts bfloat16 off instead (triton 3.9), twice the error.
    """
    if INTERPRETED and tl.bfloat16 == TYPE:
        bits = x.to(tl.uint32, bitcast=True)
        bits += 0x7FFF + ((bits >> 16) & 1)
        x = (bits & 0xFFFF0000).to(tl.float32, bitcast=True)
    return x.to(TYPE)


@triton.jit
def dot(a, b, total):
    """Return total + a @ b, accumulated in float32."""
    if INTERPRETED:
        a, b = a.to(tl.float32), b.to(tl.float32)
    return tl.dot(a, b, total, input_precision="tf32x3")


@triton.jit
def log2_1p(t, PRECISE: tl.constexpr):
    """Return log2(1 + t) for t in [0, 1]: t times a minimax polynomial of the relative error.

    The error is relative to the result, which keeps softplus accurate far below zero. 9e-6 is
    below half precision, 2e-7 is float32.
    """
    if PRECISE:
        c = tl.fma(t, 0.00754918184, -0.0425670595)
        c = tl.fma(c, t, 0.112856187)
        c = tl.fma(c, t, -0.197118962)
        c = tl.fma(c, t, 0.275641407)
        c = tl.fma(c, t, -0.358408471)
        c = tl.fma(c, t, 0.480692957)
        c = tl.fma(c, t, -0.721340208)
        c = tl.fma(c, t, 1.442695)
    else:
        c = tl.fma(t, -0.0344359024, 0.146032877)
        c = tl.fma(c, t, -0.303036192)
        c = tl.fma(c, t, 0.469174061)
        c = tl.fma(c, t, -0.720426164)
        c = tl.fma(c, t, 1.44268292)
    return c * t


@triton.jit
def reciprocal(x):
    """Return 1 / x by the special-function unit; 0 of a huge x, infinity of a subnormal one."""
    if INTERPRETED:
        return 1.0 / x
    return tl.inline_asm_elementwise(
        "rcp.approx.ftz.f32 $0, $1;", "=f,f", [x], dtype=tl.float32, is_pure=True, pack=1
    )


@triton.jit
def log2(x):
    """Return the logarithm of a normal number by the special-function unit; tl.log2 is long."""
    if INTERPRETED:
        return tl.log2(x)
    return tl.inline_asm_elementwise(
        "lg2.approx.ftz.f32 $0, $1;", "=f,f", [x], dtype=tl.float32, is_pure=True, pack=1
    )


@triton.jit
def phi(u, PHI: tl.constexpr, PRECISE: tl.constexpr):
    """Return g: 2^u, 1 / (1 + 2^-u), log2(1 + 2^u), or a ReLU form of u."""
    if PHI == "exp":
        return tl.exp2(u)
    elif PHI == "sigmoid":
        return reciprocal(1.0 + tl.exp2(-u))
    elif PHI == "softplus":
        return tl.maximum(u, 0.0) + log2_1p(tl.exp2(-tl.abs(u)), PRECISE)
    elif PHI == "relu":
        return tl.maximum(u, 0.0)
    elif PHI == "relu2":
        positive = tl.maximum(u, 0.0)
        return positive * positive
    else:
        tl.static_assert(PHI == "relu6")
        return tl.minimum(tl.maximum(u, 0.0), 6.0)


@triton.jit
def softplus_by_log(u):
    """Return log2(1 + 2^u) with an absolute error of 3e-7, not a relative one: half the work."""
    return tl.maximum(u, 0.0) + log2(1.0 + tl.exp2(-tl.abs(u)))


@triton.jit
def phi_and_slope(u, PHI: tl.constexpr, PRECISE: tl.constexpr):
    """Return g and its derivative up to the constant ``Plan.slope``."""
    if PHI == "exp":
        g = tl.exp2(u)
        return g, g
    elif PHI == "sigmoid":
        # 1 - g would lose all digits where g is near 1.
        t = tl.exp2(-tl.abs(u))
        near = reciprocal(1.0 + t)
        far = t * near
        return tl.where(u > 0, near, far), near * far
    elif PHI == "softplus":
        g = phi(u, PHI, PRECISE)
        return g, tl.exp2(u - g)  # 2^u / (1 + 2^u), and 2^g = 1 + 2^u: no division
    elif PHI == "relu2":
        positive = tl.maximum(u, 0.0)
        return positive * positive, 2.0 * positive
    elif PHI == "relu":
        return tl.maximum(u, 0.0), tl.where(u > 0, 1.0, 0.0)
    else:
        tl.static_assert(PHI == "relu6")
        return tl.minimum(tl.maximum(u, 0.0), 6.0), tl.where((u > 0) & (u < 6.0), 1.0, 0.0)


@triton.jit
def whole_power(r, N: tl.constexpr):
    """Return r^N for a whole N in [0, 1024) by repeated squaring."""
    result = tl.full(r.shape, 1.0, tl.float32)
    square = r
    for bit in tl.static_range(10):
        if (N >> bit) & 1:
            result = result * square
        if N >> (bit + 1):
            square = square * square
    return result


@triton.jit
def powers(r, p, P: tl.constexpr):
    """Return r^(p - 1), zero where r is, and r^p; P is a whole p below 1024, else 0."""
    if P > 1:
        lower = whole_power(r, P - 1)
    elif P == 1:
        lower = tl.where(r > 0, 1.0, 0.0)
    else:
        lower = tl.where(r >= SMALLEST_NORMAL, tl.exp2((p - 1.0) * log2(r)), 0.0)
    return lower, lower * r


@triton.jit
def sharpen(g, stretch, offset, p, SHARPEN: tl.constexpr, P: tl.constexpr):
    """Return the unscaled weight of stage 2 and its derivative up to a constant of the row."""
    if SHARPEN == "reweight":
        lower, weight = powers(tl.maximum(tl.fma(stretch, g, -offset), 0.0), p, P)
        return weight, lower
    else:
        tl.static_assert(SHARPEN == "elastic")
        weight = tl.maximum(g - offset, 0.0)
        return weight, tl.where(weight > 0, 1.0, 0.0)


@triton.constexpr_function
def has_table(BIAS):
    """Whether the bias is read from a table, which far tiles need not do."""
    return BIAS in ("zero", "last")


@triton.constexpr_function
def far_bias(BIAS):
    """Return the kind of bias in tiles that lie past the table as a whole."""
    return {"zero": "none", "last": "end"}.get(BIAS, BIAS)


@triton.jit
def distance_bias(bias, distance, longest, BIAS: tl.constexpr):
    """Return the bias subtracted from u at each distance; ``bias`` points to the head's numbers.

    The kind ``end`` is for tiles that lie past the table of kind ``last`` as a whole.
    """
    if BIAS == "alibi":
        value = tl.load(bias) * distance.to(tl.float32)
    elif BIAS == "end":
        value = tl.load(bias + longest - 1)
    elif BIAS == "last":
        value = tl.load(bias + tl.minimum(tl.maximum(distance, 0), longest - 1))
    else:
        tl.static_assert(BIAS == "zero")
        # Keys of the future are masked later; their negative distances must only stay in bounds.
        value = tl.load(bias + tl.maximum(distance, 0), mask=distance < longest, other=0.0)
    return value


@triton.jit
def add_to_peak(peaks, head, n_heads, which: tl.constexpr, values):
    """Raise one of a head's peaks [3, B H] to the largest of some non-negative values."""
    tl.atomic_max(peaks + which * n_heads + head, tl.max(values), sem="relaxed")


@triton.jit
def power_of_two(peaks, head, n_heads, last_place, scale0, scale1):
    """Return the logarithm of the power of two that brings a head's du within float16.

    |du| <= |k1| 2 |dO| max|v| + |k2|, times the scale in the gradient of k. ``peaks`` holds the
    largest |k1| |dO|, |v| and |k2|, the slope of phi included.
    """
    size = tl.load(peaks + head) * 2.0 * tl.load(peaks + n_heads + head)
    size += tl.load(peaks + 2 * n_heads + head)
    size *= tl.maximum(tl.abs(of_row(last_place, scale0, scale1)), 1.0)
    return 15.0 - tl.ceil(log2(tl.minimum(tl.maximum(size, 2.0**-100), 2.0**100)))


@triton.jit
def load_rows(start, first, length, BLOCK: tl.constexpr, D: tl.constexpr):
    """Load [BLOCK, D] from row ``first`` of a contiguous [length, D]; zeros past its end."""
    rows = first + tl.arange(0, BLOCK)
    places = start + rows[:, None] * D + tl.arange(0, D)[None, :]
    return tl.load(places, mask=rows[:, None] < length, other=0.0)


@triton.jit
def block_of_rows(length, total_length, ROWS: tl.constexpr):
    """Return this program's head, its first row, its rows and their places among the keys.

    The longest rows come first.
    """
    blocks = tl.cdiv(length, ROWS)
    head = (tl.program_id(0) // blocks).to(tl.int64)
    start = (blocks - 1 - tl.program_id(0) % blocks) * ROWS
    row = start + tl.arange(0, ROWS)
    return head, start, row, row + (total_length - length)


@triton.jit
def of_row(place, constant, by_log):
    """Return constant + by_log log2 i at places from 0, to the bit the same in every kernel."""
    return tl.fma(log2((place + 1).to(tl.float32)), by_log, constant)


@triton.jit
def load_numbers(rows, n_rows, inside, place, scale0, scale1, SHARPEN: tl.constexpr):
    """Load the (scale, shift, stretch, offset) at ``rows``; those not inside contribute zero."""
    scale = of_row(place, scale0, scale1)
    # u = -inf is weight and slope 0, whatever is added to it.
    shift = tl.load(rows, mask=inside, other=float("-inf"))
    stretch, offset = shift, shift  # not used
    if SHARPEN != "none":
        stretch = tl.load(rows + 2 * n_rows, mask=inside, other=0.0)
        offset = tl.load(rows + 3 * n_rows, mask=inside, other=0.0)
    return scale, shift, stretch, offset


@triton.jit
def scores_and_products(
    block, upstream, tile, values, place, keys, number, bias, longest, BIAS: tl.constexpr
):
    """Return u, dP = dO . v and the distance of a tile."""
    scale, shift, _, _ = number
    empty = tl.zeros([block.shape[0], tile.shape[0]], tl.float32)
    s = dot(block, tl.trans(tile), empty)
    dp = dot(upstream, tl.trans(values), empty)
    distance = place[:, None] - keys[None, :]
    u = tl.fma(s, scale[:, None], shift[:, None])
    if BIAS != "none":
        u -= distance_bias(bias, distance, longest, BIAS)
    return u, dp, distance


@triton.jit
def through_unit(
    gradient, directions, inverse, first, length, BLOCK: tl.constexpr, D: tl.constexpr
):
    """Return the gradient of rows x from that of x / |x|, [BLOCK, D].

    ``directions`` and ``inverse`` point to x / |x| and 1 / |x| of row 0; where x is zero both are.
    """
    rows = first + tl.arange(0, BLOCK)
    inside = rows < length
    places = directions + rows[:, None] * D + tl.arange(0, D)[None, :]
    # Loaded again, as no other load is: kept from before the loop it would spill.
    block = tl.load(places, mask=inside[:, None], other=0.0, eviction_policy="evict_first")
    direction = block.to(tl.float32)
    along = tl.sum(gradient * direction, axis=1)
    factor = tl.load(inverse + rows, mask=inside, other=0.0)
    return (gradient - direction * along[:, None]) * factor[:, None]


@triton.jit
def store_rows(start, first, length, values, BLOCK: tl.constexpr, D: tl.constexpr):
    """Store [BLOCK, D] where :func:`load_rows` loads it."""
    rows = first + tl.arange(0, BLOCK)
    places = start + rows[:, None] * D + tl.arange(0, D)[None, :]
    tl.store(places, narrow(values, start.dtype.element_ty), mask=rows[:, None] < length)
