"""LSSA and LSSAR on a CPU: blocks of rows that fit its caches, with a backward written by hand.

The reference keeps every stage's matrix for the gradient. Here three numbers a row are kept beside
the tensors, O(L), and the backward pass makes the weights of a block again (Tri Dao et al. 2022,
FlashAttention, Alg. 4, without tiles of keys: whole rows fit). In place, a pass over a block costs
a tenth of a product of matrices, which makes a step about half as long as the reference's.

With cosines no score exceeds log d log i, so that softplus is log1p(exp(z)) as it stands, and its
slope e^z / (1 + e^z) costs no second exponential.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from attention import reference
from attention.reference import DEAD_BELOW, UNTOUCHED_ROWS, Parameters
from attention.spec import AttnSpec

ROWS = 64
"""Rows of a block."""
ENTRIES = 2**18
"""Weights of a block, of several heads where rows are short: 1 MiB in float32."""
WHOLE = AttnSpec("blocked", phi="softplus", scale="log_dim_log_row")
"""What is served, with a re-weighting or without."""


def refuses(spec: AttnSpec, q: Tensor, v: Tensor) -> str | None:
    """Return why a call cannot be served, or None."""
    fields = ("phi", "scale", "shift", "bias", "mask", "normalise", "modify", "sink")
    if any(getattr(spec, field) != getattr(WHOLE, field) for field in fields):
        return "the blocks of rows compute LSSA and LSSAR only"
    if spec.sharpen not in ("none", "reweight") or (spec.reweights and spec.p < 1):
        return "of second stages a re-weighting with p >= 1 alone has a backward in blocks"
    if q.device.type != "cpu":
        return f"the blocks are for a CPU, the tensors are on {q.device}"
    if q.dtype not in (torch.float32, torch.float64):
        return f"dtype {q.dtype} is not one of float32, float64"
    largest = math.log(q.shape[-1]) * math.log(max(v.shape[2], 1))
    if largest > 0.9 * math.log(torch.finfo(q.dtype).max):
        return f"scores up to log d log L = {largest:.0f} overflow the exponential of {q.dtype}"
    return None


def avoids(spec: AttnSpec, q: Tensor, v: Tensor | None = None) -> str | None:
    """Return why ``auto`` passes this backend over although it could serve the call."""
    return "it rounds a training run otherwise than kept ones were; ask for it by name"


def attend(
    q: Tensor, k: Tensor, v: Tensor, spec: AttnSpec, parameters: Parameters | None
) -> Tensor:
    """Return the attention output [B, H, L, Dv]; arguments as in ``attention.reference.attend``.

    Without a gradient, and for fewer queries than keys, the reference's own chunks are as good.
    """
    needs_gradient = torch.is_grad_enabled() and any(x.requires_grad for x in (q, k, v))
    if not needs_gradient or q.shape[2] != k.shape[2]:
        return reference.attend(q, k, v, spec, parameters, ROWS)
    k, v = (reference.one_per_head(x, q.shape[1]) for x in (k, v))
    p = float(spec.p) if spec.reweights else 0.0
    with torch.autocast("cpu", enabled=False):
        return _Blocks.apply(q, k, v, p)


class _Blocks(torch.autograd.Function):
    """The output, with its gradient; p is 0 without a re-weighting.

    With f = softplus(z), N its row sum and m = i max f / N - o, the weights of row i are w / W,
    w = r^p, r = relu(i f / N - o) / m, W their sum; without a re-weighting w = f. Of a row are kept
    1 / N, 1 / m and 1 / W.
    """

    @staticmethod
    def forward(ctx: Any, q: Tensor, k: Tensor, v: Tensor, p: float) -> Tensor:
        scaled, units, values = _inputs(q, k, v)
        out = torch.empty_like(values)
        rows = q.new_zeros([3, *scaled.shape[:2], 1])
        memory = _Memory(q)
        for some, here in _blocks(q):
            f = memory.product("f", scaled[some, here], units[some, : here.stop].mT)
            f.exp_().log1p_()
            f[:, :, here.start :].tril_()
            norm, stretch, gain = rows[:, some, here]
            torch.reciprocal(f.sum(dim=-1, keepdim=True), out=norm)
            weight = f
            if p:
                count, offset = _counts(here, q)
                largest = f.amax(dim=-1, keepdim=True) * (count * norm) - offset
                # Of a dead row the stretch is 0, and so are its weights and its gradient.
                stretch.copy_(torch.where(largest > DEAD_BELOW, 1 / largest, 0.0))
                ratio = _ratio(f, count, offset, norm, stretch)
                weight = _power(ratio, p - 1, memory).mul_(ratio)
            total = weight.sum(dim=-1, keepdim=True)
            gain.copy_(torch.where(total > 0, 1 / total, 0.0))
            torch.mul(torch.bmm(weight, values[some, : here.stop]), gain, out=out[some, here])
        ctx.p = p
        ctx.save_for_backward(q, k, v, out, rows)
        return out.view_as(v)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor, Tensor, None]:
        q, k, v, out, rows = ctx.saved_tensors
        p = ctx.p
        scaled, units, values = _inputs(q, k, v)
        upstream = grad.flatten(0, 1)
        dq, dk, dv = torch.empty_like(scaled), torch.zeros_like(units), torch.zeros_like(values)
        # The mean of dP = dO . v under the weights is dO . o.
        mean = (upstream * out).sum(dim=-1, keepdim=True)
        by_weight = upstream * rows[2]
        memory = _Memory(q)
        for some, here in _blocks(q):
            norm, stretch, gain = rows[:, some, here]
            seen = units[some, : here.stop]
            exponential = memory.product("slope", scaled[some, here], seen.mT).exp_()
            exponential[:, :, here.start :].tril_()
            f = torch.log1p(exponential, out=memory.like("f", exponential))
            more = torch.add(exponential, 1, out=memory.like("square", exponential))
            slope = exponential.div_(more)
            change = memory.product("change", upstream[some, here], values[some, : here.stop].mT)
            change.sub_(mean[some, here])
            if p:
                count, offset = _counts(here, q)
                ratio = _ratio(f, count, offset, norm, stretch)
                lower = _power(ratio, p - 1, memory)
                weight = ratio.mul_(lower)
                change.mul_(lower)
                scale = p * stretch * gain * norm
                # sum a da of stage 1, in which what stage 2 keeps at degree 0 has vanished.
                along = change.sum(dim=-1, keepdim=True).mul_(scale * offset)
                torch.addcmul(-along, change, count * scale, out=change)
            else:
                weight = f
                change.mul_(norm)
            dv[some, : here.stop].baddbmm_(weight.mT, by_weight[some, here])
            change.mul_(slope)
            torch.bmm(change, seen, out=dq[some, here])
            dk[some, : here.stop].baddbmm_(change.mT, scaled[some, here])
        dq = _through_unit(dq.view_as(q) * _scale(q), q)
        return dq, _through_unit(dk.view_as(k), k), dv.view_as(v), None


class _Memory:
    """Memory for the matrices of a block, taken once: fresh pages cost as much as the sums."""

    def __init__(self, q: Tensor) -> None:
        batch, heads, length, _ = q.shape
        self._q, self._size = q, min(_together(length), batch * heads) * ROWS * length
        self._known: dict[str, Tensor] = {}

    def like(self, name: str, block: Tensor) -> Tensor:
        """Return the memory of a name in the shape of a block; what it held is lost."""
        return self._shaped(name, block.shape)

    def product(self, name: str, a: Tensor, b: Tensor) -> Tensor:
        """Return a @ b in the memory of a name."""
        return torch.bmm(a, b, out=self._shaped(name, (*a.shape[:2], b.shape[2])))

    def _shaped(self, name: str, shape: Sequence[int]) -> Tensor:
        if name not in self._known:
            self._known[name] = self._q.new_empty(self._size)
        return self._known[name][: math.prod(shape)].view(*shape)


def _together(length: int) -> int:
    """Return how many heads a block takes."""
    return max(1, ENTRIES // (ROWS * max(length, 1)))


def _blocks(q: Tensor) -> Iterator[tuple[slice, slice]]:
    """Yield the heads, of all sequences, and the rows of each block."""
    batch, heads, length, _ = q.shape
    together = _together(length)
    for head in range(0, batch * heads, together):
        for start in range(0, length, ROWS):
            yield slice(head, head + together), slice(start, min(start + ROWS, length))


def _inputs(q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return scaled directions of queries, directions of keys, and values, each [B H, L, D]."""
    scaled = reference.unit(q) * _scale(q)
    return scaled.flatten(0, 1), reference.unit(k).flatten(0, 1), v.flatten(0, 1)


def _scale(q: Tensor) -> Tensor:
    """Return log d log i of each row, [L, 1]."""
    return math.log(q.shape[-1]) * torch.arange(1, q.shape[2] + 1, dtype=q.dtype).log()[:, None]


def _counts(here: slice, q: Tensor) -> tuple[Tensor, Tensor]:
    """Return i and o of some rows, each [rows, 1]."""
    count = torch.arange(here.start + 1, here.stop + 1, dtype=q.dtype)[:, None]
    return count, (count > UNTOUCHED_ROWS).to(q.dtype)


def _ratio(f: Tensor, count: Tensor, offset: Tensor, norm: Tensor, stretch: Tensor) -> Tensor:
    """Return relu(i f / N - o) / m in the place of f; where f is masked it is 0."""
    torch.addcmul(-offset * stretch, f, count * norm * stretch, out=f).clamp_min_(0.0)
    # Rows 1 to 3 subtract nothing: what was masked is 0 in them as well.
    return f


def _power(ratio: Tensor, p: float, memory: _Memory) -> Tensor:
    """Return ratio^p, 0 where the ratio is, which stays: whole powers by squaring."""
    power = memory.like("power", ratio)
    if p == 0:
        return power.copy_(ratio > 0)
    if p != int(p):
        return torch.pow(ratio, p, out=power)
    square, rest, empty = ratio, int(p), True
    while True:
        if rest & 1:
            power = power.copy_(square) if empty else power.mul_(square)
            empty = False
        rest >>= 1
        if not rest:
            return power
        square = torch.mul(square, square, out=memory.like("square", ratio))


def _through_unit(gradient: Tensor, x: Tensor) -> Tensor:
    """Return the gradient of x from that of x / |x|, 0 where x is."""
    direction = reference.unit(x)
    along = (gradient * direction).sum(dim=-1, keepdim=True)
    return (gradient - direction * along) * reference.inverse_lengths(x)[..., None]
