"""Kernels of ZeroS's sum: the scan over chunks, o with dq, dk and dv, and the numbers' gradient.

Chunk n continues from the bases F / E, G and H before it, whose E is e^start. A reader t and a
writer i of one chunk meet in r_{t,i}; to meet those of other chunks, by way of the bases, they are
scaled by

    reads_t  = (a_t e^(start - ln E_t), b_t, c_t - b_t mean_t)
    writes_i = (e^(s_i - end), s_i, 1)

where e^end is E after the chunk: no exponent is above 0. As r_{t,i} = a e^(s_i - ln E)
+ b (s_i - mean) + c, the gradients by ln E and by the mean are -a times that by a and -b times
that by c; those by start and end cancel between chunks.

Layouts, contiguous and float32: q and k [B H, L, K], v [B H, L, V], ``numbers`` [6, B H, L] with
s, ln E, mean, a, b and c, ``reads`` and ``writes`` [3, B H, L], states [B H, chunks, 3, K, V],
``starts`` and ``kept`` = e^(start - end) [B H, chunks]. ``size`` is B H L.
"""

import triton
import triton.language as tl

from attention.triton.primitives import dot, load_rows, store_rows


@triton.jit(do_not_specialize=("length", "size"))
def scan_kernel(
    x, y, scales, kept, first, states, last, length, size,
    K: tl.constexpr, V: tl.constexpr, ROWS: tl.constexpr, REVERSE: tl.constexpr,
):  # fmt: skip
    """Sum (scale x)^T y over the chunks, one program per head and basis.

    From ``first`` [B H, 3, K, V] to ``last``; ``states`` takes what is summed before each chunk.
    Of keys and values these are the bases. Of queries and the output's gradient in ``REVERSE``
    order they are the gradients of the bases after each chunk.
    """
    chunks = tl.cdiv(length, ROWS)
    head = (tl.program_id(0) // 3).to(tl.int64)
    basis = tl.program_id(0) % 3
    x += head * length * K
    y += head * length * V
    scales += basis * size + head * length
    border = (head * 3 + basis) * K * V
    state = load_rows(first + border, 0, K, K, V)
    for step in tl.range(0, chunks):
        chunk = chunks - 1 - step if REVERSE else step
        place = head * chunks + chunk
        store_rows(states + (place * 3 + basis) * K * V, 0, K, state, K, V)
        # The first basis is a share of E, which grows.
        ratio = tl.where(basis == 0, tl.load(kept + place), 1.0)
        row = chunk * ROWS + tl.arange(0, ROWS)
        scale = tl.load(scales + row, mask=row < length, other=0.0)
        scaled = load_rows(x, chunk * ROWS, length, ROWS, K) * scale[:, None]
        state = dot(tl.trans(scaled), load_rows(y, chunk * ROWS, length, ROWS, V), state * ratio)
    store_rows(last + border, 0, K, state, K, V)


@triton.jit(do_not_specialize=("length", "size"))
def mix_kernel(
    x, y, z, numbers, scales, states, out, length, size,
    K: tl.constexpr, V: tl.constexpr, ROWS: tl.constexpr, SLICE: tl.constexpr,
    GRADIENT: tl.constexpr,
):  # fmt: skip
    """Write sum_i w_{t,i} (x_t . y_i) z_i + sum over bases of scale_t x_t S; a program per chunk.

    Without ``GRADIENT`` it is o: of q, k, v and ``reads``, with w = r. Swapping what is multiplied
    gives the gradients: ``q`` of (dO, v, k) with the bases transposed, ``k`` of (v, dO, q) and
    ``v`` of (k, q, dO) with ``writes``, w = r^T and the bases' gradients (transposed for k).
    """
    across: tl.constexpr = GRADIENT == "q" or GRADIENT == "k"
    N: tl.constexpr = V if across else K
    M: tl.constexpr = K if across else V
    chunks = tl.cdiv(length, ROWS)
    head = (tl.program_id(0) // chunks).to(tl.int64)
    start = tl.program_id(0) % chunks * ROWS
    x += head * length * N
    y += head * length * N
    z += head * length * M
    scales += head * length
    states += tl.program_id(0).to(tl.int64) * 3 * K * V
    share, deviation, _, _, a, b, c = _radial(numbers + head * length, start, length, size, ROWS)
    weight = _past(a[:, None] * share + b[:, None] * deviation + c[:, None], ROWS)
    if GRADIENT == "k" or GRADIENT == "v":
        weight = tl.trans(weight)
    scores = _products(x, y, start, length, ROWS, N, SLICE)
    values = load_rows(z, start, length, ROWS, M)
    mixed = dot(weight * scores, values, tl.zeros([ROWS, M], tl.float32))
    # One product along the channels of all three bases, a few at once.
    row = start + tl.arange(0, ROWS)
    for channel in tl.range(0, 3 * N, SLICE, num_stages=1):
        basis, column = channel // N, channel % N
        scale = tl.load(scales + basis * size + row, mask=row < length, other=0.0)
        some = _slice(x, start, length, column, ROWS, N, SLICE) * scale[:, None]
        if across:
            state = tl.trans(_slice(states + basis * K * V, 0, K, column, K, V, SLICE))
        else:
            state = load_rows(states, channel, 3 * K, SLICE, V)
        mixed = dot(some, state, mixed)
    store_rows(out + head * length * M, start, length, mixed, ROWS, M)


@triton.jit(do_not_specialize=("length", "size"))
def numbers_kernel(
    q, k, v, grad, numbers, writes, starts, states, grad_states, out, length, size,
    K: tl.constexpr, V: tl.constexpr, ROWS: tl.constexpr, SLICE: tl.constexpr,
):  # fmt: skip
    """Write the gradient of ``numbers``; one program per chunk.

    ``states`` are the bases before each chunk, ``grad_states`` the gradients of those after it.
    """
    chunks = tl.cdiv(length, ROWS)
    head = (tl.program_id(0) // chunks).to(tl.int64)
    start = tl.program_id(0) % chunks * ROWS
    place = tl.program_id(0).to(tl.int64)
    q += head * length * K
    k += head * length * K
    v += head * length * V
    grad += head * length * V
    writes += head * length
    states += place * 3 * K * V
    grad_states += place * 3 * K * V
    out += head * length
    dr = _products(q, k, start, length, ROWS, K, SLICE)
    dr = _past(dr * _products(grad, v, start, length, ROWS, V, SLICE), ROWS)
    share, deviation, log_e, mean, a, b, _ = _radial(
        numbers + head * length, start, length, size, ROWS
    )
    da = tl.sum(dr * share, axis=1)
    db = tl.sum(dr * deviation, axis=1)
    dc = tl.sum(dr, axis=1)
    ds = tl.sum(dr * (a[:, None] * share + b[:, None]), axis=0)

    row = start + tl.arange(0, ROWS)
    inside = row < length
    since = tl.exp(tl.load(starts + place) - log_e)
    written = tl.load(writes + row, mask=inside, other=0.0)
    values = load_rows(v, start, length, ROWS, V)
    upstream = load_rows(grad, start, length, ROWS, V)
    for basis in tl.range(0, 3, num_stages=1):
        reading = tl.zeros([ROWS, V], tl.float32)
        writing = tl.zeros([ROWS, V], tl.float32)
        for column in tl.range(0, K, SLICE, num_stages=1):
            channel = basis * K + column
            some = _slice(q, start, length, column, ROWS, K, SLICE)
            reading = dot(some, load_rows(states, channel, 3 * K, SLICE, V), reading)
            some = _slice(k, start, length, column, ROWS, K, SLICE)
            writing = dot(some, load_rows(grad_states, channel, 3 * K, SLICE, V), writing)
        read = tl.sum(reading * upstream, axis=1)
        write = tl.sum(writing * values, axis=1)
        if basis == 0:
            da += since * read
            ds += written * write
        elif basis == 1:
            db += read
            ds += write
        else:
            db -= mean * read
            dc += read

    tl.store(out + row, ds, mask=inside)
    tl.store(out + size + row, -a * da, mask=inside)
    tl.store(out + 2 * size + row, -b * dc, mask=inside)
    tl.store(out + 3 * size + row, da, mask=inside)
    tl.store(out + 4 * size + row, db, mask=inside)
    tl.store(out + 5 * size + row, dc, mask=inside)


@triton.jit
def _radial(numbers, start, length, size, ROWS: tl.constexpr):
    """Return e^(s_i - ln E_t) of past keys, s_i - mean_t, and the rows' ln E, mean, a, b and c."""
    row = start + tl.arange(0, ROWS)
    inside = row < length
    s = tl.load(numbers + row, mask=inside, other=0.0)
    # Rows past the end have an infinite sum, of which no key has a share.
    log_e = tl.load(numbers + size + row, mask=inside, other=float("inf"))
    mean = tl.load(numbers + 2 * size + row, mask=inside, other=0.0)
    a = tl.load(numbers + 3 * size + row, mask=inside, other=0.0)
    b = tl.load(numbers + 4 * size + row, mask=inside, other=0.0)
    c = tl.load(numbers + 5 * size + row, mask=inside, other=0.0)
    past = row[None, :] <= row[:, None]
    # Masked first: e^s of a later key may overflow.
    share = tl.exp(tl.where(past, s[None, :] - log_e[:, None], float("-inf")))
    return share, s[None, :] - mean[:, None], log_e, mean, a, b, c


@triton.jit
def _products(x, y, start, length, ROWS: tl.constexpr, D: tl.constexpr, SLICE: tl.constexpr):
    """Return the products of a chunk's rows of x with those of y, [ROWS, ROWS]."""
    found = tl.zeros([ROWS, ROWS], tl.float32)
    for column in tl.range(0, D, SLICE, num_stages=1):
        some = _slice(y, start, length, column, ROWS, D, SLICE)
        found = dot(_slice(x, start, length, column, ROWS, D, SLICE), tl.trans(some), found)
    return found


@triton.jit
def _past(pairs, ROWS: tl.constexpr):
    """Return a matrix of readers and writers without writers that come later."""
    row = tl.arange(0, ROWS)
    return tl.where(row[None, :] <= row[:, None], pairs, 0.0)


@triton.jit
def _slice(start, first, length, column, BLOCK: tl.constexpr, D: tl.constexpr, SLICE: tl.constexpr):
    """Load [BLOCK, SLICE] from a row and a column of a contiguous [length, D]."""
    rows = first + tl.arange(0, BLOCK)
    places = start + rows[:, None] * D + column + tl.arange(0, SLICE)[None, :]
    return tl.load(places, mask=rows[:, None] < length, other=0.0)
