"""LSSA and LSSAR on a CPU: blocks of rows that fit its caches, with a backward written by hand.

The reference keeps every stage's matrix for the gradient. Here three numbers a row are kept beside
the tensors, O(L), and the backward pass makes the weights of a block again (Tri Dao et al. 2022,
FlashAttention, Alg. 4, without tiles of keys: whole rows fit). A block's products are PyTorch's;
what is done to its rows is compiled in float32 (:mod:`attention.backends.rows_compiled`) and
plain elsewhere (:mod:`attention.backends.rows_plain`). Half precision is computed in float32: a
product that PyTorch rounds to bfloat16, scores up to log d log L, would move weights by up to 6%.
"""

from __future__ import annotations

import functools
import importlib
import math
from collections.abc import Iterator, Sequence
from types import ModuleType
from typing import Any

import torch
from torch import Tensor
from torch._C._functorch import is_batchedtensor, is_legacy_batchedtensor
from torch.autograd import forward_ad

from attention import reference
from attention.backends import rows_plain
from attention.reference import Parameters
from attention.spec import AttnSpec

ROWS = 64
"""Rows of a block."""
ENTRIES = 2**18
"""Weights of a block, of several heads where rows are short: 1 MiB in float32."""
LARGEST_POWER = 2**15
"""Largest whole power with a compiled kernel."""
WHOLE = AttnSpec("blocked", phi="softplus", scale="log_dim_log_row")
"""The one variant that is served, with a re-weighting or without."""


def refuses(spec: AttnSpec, q: Tensor, v: Tensor) -> str | None:
    """Return why a call cannot be served, or None."""
    fields = ("phi", "scale", "shift", "bias", "mask", "normalise", "modify", "sink")
    if any(getattr(spec, field) != getattr(WHOLE, field) for field in fields):
        return "the blocks of rows compute LSSA and LSSAR only"
    if spec.sharpen not in ("none", "reweight") or (spec.reweights and spec.p < 1):
        return "of second stages a re-weighting with p >= 1 alone has a backward in blocks"
    if q.device.type != "cpu":
        return f"the blocks are for a CPU, the tensors are on {q.device}"
    largest = math.log(max(q.shape[-1], 1)) * math.log(max(v.shape[2], 1))
    dtype = torch.promote_types(q.dtype, torch.float32)
    if largest > 0.9 * math.log(torch.finfo(dtype).max):
        return f"scores up to log d log L = {largest:.0f} overflow the exponential of {dtype}"
    return None


def avoids(spec: AttnSpec, q: Tensor, v: Tensor | None = None) -> str | None:
    """Return why ``auto`` passes this backend over although it could serve the call."""
    if q.dtype == torch.float64:
        return "float64 is for comparisons, which are the reference's; ask for it by name"
    return None


def attend(
    q: Tensor, k: Tensor, v: Tensor, spec: AttnSpec, parameters: Parameters | None
) -> Tensor:
    """Return the attention output [B, H, L, Dv]; arguments as in ``attention.reference.attend``.

    The reference serves fewer queries than keys, and what no custom gradient can: forward-mode
    derivatives, transforms of ``torch.func``, ``torch.compile``, second derivatives.
    """
    if q.shape[2] != k.shape[2] or _is_transformed(q, k, v):
        return reference.attend(q, k, v, spec, parameters, ROWS)
    dtype = torch.promote_types(q.dtype, torch.float32)
    k, v = (reference.one_per_head(x, q.shape[1]) for x in (k, v))
    with torch.autocast("cpu", enabled=False):
        return _Blocks.apply(*(x.to(dtype) for x in (q, k, v)), spec).to(q.dtype)


def _is_transformed(*tensors: Tensor) -> bool:
    """Whether a call is traced, or has another derivative than a gradient."""
    return (
        torch.compiler.is_compiling()
        or torch._C._are_functorch_transforms_active()
        or any(forward_ad.unpack_dual(x).tangent is not None for x in tensors)
    )


class _Blocks(torch.autograd.Function):
    """The output, with its gradient; of a row the numbers of ``rows_plain.weigh`` are kept."""

    @staticmethod
    def forward(ctx: Any, q: Tensor, k: Tensor, v: Tensor, spec: AttnSpec) -> Tensor:
        p = _power(spec)
        of_rows = _of_rows(q.dtype, p)
        inverse_q, inverse_k = (_inverse_lengths(x) for x in (q, k))
        units = _units(k, inverse_k)
        scaled = _units(q, inverse_q).mul_(_scale(q))
        values = v.flatten(0, 1)
        out = torch.empty_like(values, memory_format=torch.contiguous_format)
        numbers = q.new_empty([3, *scaled.shape[:2], 1])
        memory = _Memory(q)
        for some, here in _blocks(q):
            weight = memory.product("weight", scaled[some, here], units[some, : here.stop].mT)
            of_rows.weigh(weight, here.start, p, numbers[:, some, here])
            sums = torch.bmm(weight, values[some, : here.stop])
            torch.mul(sums, numbers[2, some, here], out=out[some, here])
        ctx.spec = spec
        ctx.save_for_backward(q, k, v, out, numbers, inverse_q, inverse_k)
        return out.view_as(v)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        q, k, v, out, numbers, inverse_q, inverse_k = ctx.saved_tensors
        again = torch.is_grad_enabled()  # a gradient that is differentiated again
        if again or _is_batched(grad):
            with torch.enable_grad():
                q, k, v = (x.view_as(x) for x in (q, k, v))  # else one tensor has all gradients
                out = reference.attend(q, k, v, ctx.spec)
            leaves = [x for x in (q, k, v) if x.requires_grad]
            found = iter(torch.autograd.grad(out, leaves, grad, create_graph=again))
            return *(next(found) if x.requires_grad else None for x in (q, k, v)), None
        p = _power(ctx.spec)
        of_rows = _of_rows(q.dtype, p)
        directions, units, values = _units(q, inverse_q), _units(k, inverse_k), v.flatten(0, 1)
        scaled = directions * _scale(q)
        upstream = grad.flatten(0, 1)
        dq, dk, dv = (x.new_zeros(x.shape) for x in (scaled, units, values))
        # The mean of dP = dO . v under the weights is dO . o.
        mean = (upstream * out).sum(dim=-1, keepdim=True)
        memory = _Memory(q)
        for some, here in _blocks(q):
            seen = units[some, : here.stop]
            weight = memory.product("weight", scaled[some, here], seen.mT)
            change = memory.product("change", upstream[some, here], values[some, : here.stop].mT)
            of_rows.differentiate(
                weight, change, here.start, p, numbers[:, some, here], mean[some, here]
            )
            dv[some, : here.stop].baddbmm_(weight.mT, upstream[some, here])
            torch.bmm(change, seen, out=dq[some, here])
            dk[some, : here.stop].baddbmm_(change.mT, scaled[some, here])
        dq = _through_unit(dq.mul_(_scale(q)), directions, inverse_q)
        dk = _through_unit(dk, units, inverse_k)
        return dq.view_as(q), dk.view_as(k), dv.view_as(v), None


def _power(spec: AttnSpec) -> float:
    """Return the power of the re-weighting, 0 for none."""
    return float(spec.p) if spec.reweights else 0.0


def _of_rows(dtype: torch.dtype, p: float) -> ModuleType:
    """Return the module that treats the rows of a block."""
    whole = p == int(p) and p <= LARGEST_POWER
    return _compiled() if dtype == torch.float32 and whole else rows_plain


@functools.cache
def _compiled() -> ModuleType:
    try:
        return importlib.import_module("attention.backends.rows_compiled")  # numba takes a second
    except RuntimeError:  # numba finds no folder in which it could keep what it compiles
        return rows_plain


def _is_batched(grad: Tensor) -> bool:
    """Tell whether a gradient stands for several, which autograd takes at once."""
    return is_batchedtensor(grad) or is_legacy_batchedtensor(grad)


class _Memory:
    """Memory for the matrices of a block, taken once: fresh pages cost as much as the sums."""

    def __init__(self, q: Tensor) -> None:
        batch, heads, length, _ = q.shape
        self._q, self._size = q, min(_together(length), batch * heads) * ROWS * length
        self._known: dict[str, Tensor] = {}

    def product(self, name: str, a: Tensor, b: Tensor) -> Tensor:
        """Return a @ b in the memory of a name, which it overwrites."""
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


def _inverse_lengths(x: Tensor) -> Tensor:
    """Return one over the lengths of vectors [B, H, L, D], [B H, L, 1]."""
    return reference.inverse_lengths(x).flatten(0, 1)[..., None]


def _units(x: Tensor, inverse: Tensor) -> Tensor:
    """Return directions of vectors [B, H, L, D], [B H, L, D]."""
    return x.flatten(0, 1) * inverse


def _scale(q: Tensor) -> Tensor:
    """Return log d log i of each row, [L, 1]."""
    rows = torch.arange(1, q.shape[2] + 1, dtype=q.dtype, device=q.device)
    return math.log(q.shape[-1]) * rows.log()[:, None]


def _through_unit(gradient: Tensor, directions: Tensor, inverse: Tensor) -> Tensor:
    """Return the gradient of vectors from that of their directions, 0 of a vector of zeros."""
    along = (gradient * directions).sum(dim=-1, keepdim=True)
    return gradient.addcmul_(directions, -along).mul_(inverse)
