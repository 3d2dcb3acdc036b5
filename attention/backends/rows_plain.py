"""Rows of LSSA and LSSAR in plain PyTorch, in place: the specification of the compiled form.

With cosines no score exceeds log d log i, so that softplus is log1p(exp(z)) as it stands, and its
slope e^z / (1 + e^z) costs no second exponential.
"""

from __future__ import annotations

import torch
from torch import Tensor

from attention.reference import DEAD_BELOW, UNTOUCHED_ROWS


def weigh(scores: Tensor, start: int, p: float, numbers: Tensor) -> None:
    """Put the weights of rows in the place of their scores.

    With f = softplus(z), N its row sum and m = i max f / N - o, the weight of row i is w / W,
    w = r^p, r = relu(i f / N - o) / m, W their sum; without a re-weighting w = f.

    Args:
        scores: z of keys 0 on, [heads, rows, keys]; becomes w, 0 where keys are of the future.
        start: Place of the first row, from 0.
        p: Power of the re-weighting, 0 for none.
        numbers: Receives 1 / N, 1 / m (0 of a dead row) and 1 / W, [3, heads, rows, 1].
    """
    norm, stretch, gain = numbers
    f = scores.exp_().log1p_()
    f[:, :, start:].tril_()
    torch.reciprocal(f.sum(dim=-1, keepdim=True), out=norm)
    stretch.zero_()
    if p:
        count, offset = _counts(start, f)
        largest = f.amax(dim=-1, keepdim=True) * (count * norm) - offset
        stretch.copy_(torch.where(largest > DEAD_BELOW, 1 / largest, 0.0))
        f.mul_(_lower_power(_ratio(f, count, offset, norm, stretch), p - 1))
    total = f.sum(dim=-1, keepdim=True)
    gain.copy_(torch.where(total > 0, 1 / total, 0.0))


def differentiate(
    scores: Tensor, change: Tensor, start: int, p: float, numbers: Tensor, mean: Tensor
) -> None:
    """Put the gradients of rows' scores in the place of those of their weights.

    Args:
        scores: z, [heads, rows, keys]; becomes w / W.
        change: dP = dO . v, of the same shape; becomes the gradient of z.
        start: Place of the first row, from 0.
        p: Power of the re-weighting, 0 for none.
        numbers: Numbers of the rows that :func:`weigh` wrote.
        mean: Mean of dP under the weights of a row, [heads, rows, 1].
    """
    norm, stretch, gain = numbers
    exponential = scores.exp_()
    exponential[:, :, start:].tril_()
    slope = exponential / (1 + exponential)
    f = exponential.log1p_()
    change.sub_(mean)
    if p:
        count, offset = _counts(start, f)
        ratio = _ratio(f, count, offset, norm, stretch)
        lower = _lower_power(ratio, p - 1)
        ratio.mul_(lower)
        change.mul_(lower)
        scale = p * stretch * gain * norm
        # sum a da of stage 1, in which what stage 2 keeps at degree 0 has vanished.
        along = change.sum(dim=-1, keepdim=True).mul_(scale * offset)
        torch.addcmul(-along, change, count * scale, out=change)
    else:
        change.mul_(norm)
    scores.mul_(gain)
    change.mul_(slope)


def _counts(start: int, block: Tensor) -> tuple[Tensor, Tensor]:
    """Return i and o of a block's rows, each [rows, 1]."""
    stop = start + block.shape[1]
    count = torch.arange(start + 1, stop + 1, dtype=block.dtype, device=block.device)[:, None]
    return count, (count > UNTOUCHED_ROWS).to(block.dtype)


def _ratio(f: Tensor, count: Tensor, offset: Tensor, norm: Tensor, stretch: Tensor) -> Tensor:
    """Return relu(i f / N - o) / m in the place of f; where f is masked it is 0."""
    # Rows 1 to 3 subtract nothing: what was masked is 0 in them as well.
    return torch.addcmul(-offset * stretch, f, count * norm * stretch, out=f).clamp_min_(0.0)


def _lower_power(ratio: Tensor, exponent: float) -> Tensor:
    """Return ratio^exponent, 0 where the ratio is."""
    return (ratio > 0).to(ratio.dtype) if exponent == 0 else ratio**exponent
