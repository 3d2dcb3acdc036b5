"""Kernels of the gradient that run once a row: before the tiles of ``backward``, and after them."""

import triton
import triton.language as tl

from attention import reference
from attention.triton.primitives import (
    SIZES,
    add_to_peak,
    load_rows,
    power_of_two,
    store_rows,
    through_unit,
)

UNTOUCHED_ROWS = tl.constexpr(reference.UNTOUCHED_ROWS)


@triton.jit(do_not_specialize=SIZES)
def pre_kernel(
    out, grad, extra, v, rows, row_grads, peaks,
    heads, n_rows, length, total_length, longest, numbers,
    PHI: tl.constexpr, L1: tl.constexpr, SHARPEN: tl.constexpr, SCALED: tl.constexpr,
    D: tl.constexpr, ROWS: tl.constexpr,
):  # fmt: skip
    """Write k1, d, k2 of each row, and for elastic the gradient of tau, to ``row_grads`` [4, ...].

    All are taken from the rows' saved numbers and from dot products of dO, the output and extra.
    A program is for a block of keys, whose places rows have too; with ``SCALED`` it raises
    ``peaks`` [3, B H], from which ``power_of_two`` bounds du.
    """
    _, _, _, _, _, _, tau0, tau1, constant, p = numbers
    blocks = tl.cdiv(total_length, ROWS)
    head = (tl.program_id(0) // blocks).to(tl.int64)
    start = tl.program_id(0) % blocks * ROWS
    row = start + tl.arange(0, ROWS)
    inside = row < length
    count = (row + (total_length - length) + 1).to(tl.float32)
    rows += head * length + row
    row_grads += head * length + row
    here = head * length * D
    upstream = load_rows(grad + here, start, length, ROWS, D).to(tl.float32)
    result = load_rows(out + here, start, length, ROWS, D).to(tl.float32)
    delta = tl.sum(upstream * result, axis=1)
    gain = tl.load(rows + n_rows, mask=inside, other=0.0)
    subtracted = tl.zeros([ROWS], tl.float32)
    k1 = constant * gain
    k2 = tl.zeros([ROWS], tl.float32)
    slope = tl.full([ROWS], 1.0, tl.float32)  # of phi, at most
    if SHARPEN == "none":
        if L1:
            k2 = k1 * delta
    else:
        offset = tl.load(rows + 3 * n_rows, mask=inside, other=0.0)
        saved = load_rows(extra + here, start, length, ROWS, D).to(tl.float32)
        along = tl.sum(upstream * saved, axis=1)
        if SHARPEN == "reweight":
            stretch = tl.load(rows + 2 * n_rows, mask=inside, other=0.0)
            k1 *= p * stretch
            subtracted = delta
            if PHI == "exp":
                slope = tl.where(stretch > 0, (1.0 + offset) / stretch, 0.0)
            k2 = tl.where(count > UNTOUCHED_ROWS, constant * p * stretch / count * along, 0.0)
        else:
            along *= count
            if PHI == "exp":
                slope = count
            k2 = k1 * (delta + offset * gain * along)
            per_tau = tau0 * tl.exp2(-tau1 * tl.log2(count))
            tl.store(row_grads + 3 * n_rows, -along * per_tau, mask=inside)
    tl.store(row_grads, k1, mask=inside)
    tl.store(row_grads + n_rows, subtracted, mask=inside)
    tl.store(row_grads + 2 * n_rows, k2, mask=inside)
    if SCALED:
        n_heads = n_rows // length
        norm = tl.sqrt(tl.sum(upstream * upstream, axis=1))
        add_to_peak(peaks, head, n_heads, 0, tl.where(inside, slope * tl.abs(k1) * norm, 0.0))
        values = load_rows(v + head * total_length * D, start, total_length, ROWS, D)
        values = values.to(tl.float32)
        add_to_peak(peaks, head, n_heads, 1, tl.sqrt(tl.sum(values * values, axis=1)))
        add_to_peak(peaks, head, n_heads, 2, tl.where(inside, slope * tl.abs(k2), 0.0))


@triton.jit(do_not_specialize=SIZES)
def finish_kernel(
    q, inverse, sums, peaks, dq,
    heads, n_rows, length, total_length, longest, numbers,
    UNIT: tl.constexpr, SCALED: tl.constexpr, D: tl.constexpr, ROWS: tl.constexpr,
):  # fmt: skip
    """Write the gradient of q from the sums of dkdv_kernel; arguments as there and in dq_kernel."""
    scale0, scale1, _, _, _, _, _, _, _, _ = numbers
    blocks = tl.cdiv(length, ROWS)
    head = (tl.program_id(0) // blocks).to(tl.int64)
    start = tl.program_id(0) % blocks * ROWS
    here = head * length
    total = load_rows(sums + here * D, start, length, ROWS, D)
    if SCALED:
        n_heads = n_rows // length
        exponent = power_of_two(peaks, head, n_heads, total_length - 1, scale0, scale1)
        total *= tl.exp2(-exponent)
    if UNIT:
        total = through_unit(total, q + here * D, inverse + here, start, length, ROWS, D)
    store_rows(dq + here * D, start, length, total, ROWS, D)
