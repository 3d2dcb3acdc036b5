"""The kernels as two operators of torch, with shapes for tracing and a gradient.

A ``custom_op`` rather than ``autograd.Function``: it passes ``opcheck``, compiles with
``torch.compile(fullgraph=True)`` and does so under the interpreter, where the tests run.
"""

from __future__ import annotations

import functools
import math
import warnings
from typing import Any

import torch
from torch import Tensor, library

from attention.triton import tiles
from attention.triton.backward import dkdv_kernel, dq_kernel
from attention.triton.ends import finish_kernel, pre_kernel
from attention.triton.forward import forward_kernel
from attention.triton.means import means_kernel
from attention.triton.plan import Plan
from attention.triton.primitives import INTERPRETED
from attention.triton.stats import stats_kernel
from attention.triton.unit import unit_kernel
from attention.validation import check_no_tangents

LARGEST_P = 20
"""Up to this power half precision takes the row means of the gradient from the rounded output: at
p = 15 that errs at most twice as much as eager, at 50 more."""
ROW_TILE = tiles.Tile(rows=64, keys=0, warps=4, stages=1)


def attend(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    plan: Plan,
    tau: Tensor | None,
    bias: Tensor | None,
    atomic: bool = False,
) -> Tensor:
    """Return the attention output [B, H, Lq, D], differentiable in all tensors.

    Args:
        q: [B, H, Lq, D].
        k: [B, H, Lk, D].
        v: [B, H, Lk, D].
        plan: What to compute.
        tau: [H], float32, for an elastic plan.
        bias: Slopes [H] or a table [H, distance] of a plan with a bias, float32, in its units.
        atomic: Compute all gradients in one pass over the tiles, where that of q is added up in
            any order: less work, and other last digits in each run. A learned bias, and
            ``torch.use_deterministic_algorithms``, have two passes all the same.

    Raises:
        ValueError: A tensor has a tangent of forward-mode differentiation.
        RuntimeError: In the backward pass, if ``torch.use_deterministic_algorithms(True)`` and
            the bias is learned; with ``warn_only=True`` that is a warning.
    """
    check_no_tangents("the Triton kernels", "use backend='reference'", q, k, v, tau, bias)
    # The kernels read the numbers of a head one after the other.
    tau, bias = (x if x is None else x.contiguous() for x in (tau, bias))
    given = [x for x in (q, k, v, tau, bias) if x is not None]
    save = torch.is_grad_enabled() and any(x.requires_grad for x in given)
    return attention_forward(q, k, v, tau, bias, save, atomic, *plan.choices)[0]


@library.custom_op("orrery::attention_forward", mutates_args=())
def attention_forward(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    tau: Tensor | None,
    bias: Tensor | None,
    save: bool,
    atomic: bool,
    unit: bool,
    phi: str,
    l1: bool,
    sharpen: str,
    kind: str,
    numbers: list[float],
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]:
    """Return the output, and what the backward pass reads if ``save`` says that there will be one.

    ``atomic`` is for the gradient; the last six arguments are the plan (``kind`` is its bias).

    Returns:
        The output; the rows' numbers [2 or 4, B, H, Lq]; ``extra`` of forward_kernel; and of a
        plan with ``unit`` the directions of q and k, of bfloat16 in float16 where that can hold
        the gradient, with one over their lengths [B, H, L]. What is not there is empty.
    """
    call = _Call(q, k, bias, unit, phi, l1, sharpen, kind, numbers)
    out, rows, extra, *units = call.results(save)
    if out.numel():
        q, k, v = q.contiguous(), k.contiguous(), v.contiguous()
        if unit:
            call.normalise(q, k, *units)
            q, _, k, _ = units
        if call.sharpened:
            call.launch(stats_kernel, "stats", q, k, tau, bias, rows)
        call.launch(forward_kernel, "forward", q, k, v, bias, rows, out, extra, SAVE=save)
    return out, *_kept(save, rows, extra, *units)  # type: ignore[return-value]


@library.custom_op("orrery::attention_backward", mutates_args=())
def attention_backward(
    grad: Tensor,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    tau: Tensor | None,
    bias: Tensor | None,
    out: Tensor,
    rows: Tensor,
    extra: Tensor,
    inverse_q: Tensor,
    inverse_k: Tensor,
    atomic: bool,
    unit: bool,
    phi: str,
    l1: bool,
    sharpen: str,
    kind: str,
    numbers: list[float],
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    """Return the gradients of q, k, v, tau [H] and bias; the last two empty if not given.

    Of a plan with ``unit``, q and k are the directions that the forward pass returned, and the
    gradients are those of the vectors that it was given.
    """
    call = _Call(q, k, bias, unit, phi, l1, sharpen, kind, numbers)
    if call.family == "biased":
        _alert_not_deterministic()
    dq, dk, dv = _gradients(q, k, v)
    row_grads = torch.empty([4, *q.shape[:3]], dtype=torch.float32, device=q.device)
    dbias = torch.zeros_like(bias) if bias is not None else rows.new_empty(0)
    if q.numel():
        q, k, v, grad = q.contiguous(), k.contiguous(), v.contiguous(), grad.contiguous()
        peaks = rows.new_zeros([3, *q.shape[:2]]) if call.choices["SCALED"] else None
        call.launch(pre_kernel, "rows", out, grad, extra, v, rows, row_grads, peaks)
        given = q, k, v, grad
        if call.choices["EXACT"]:
            call.launch(means_kernel, "dq", *given, bias, rows, row_grads, peaks)
        tiles_of = bias, rows, row_grads, peaks
        atomic = atomic and call.family != "biased"
        atomic = atomic and not torch.are_deterministic_algorithms_enabled()
        sums = rows.new_zeros(q.shape) if atomic else None
        if not atomic:
            call.launch(dq_kernel, "dq", *given, inverse_q, *tiles_of, dq, dbias)
        last = *given, inverse_k, *tiles_of, dk, dv, sums
        call.launch(dkdv_kernel, "dkdv", *last, ATOMIC=atomic)
        if atomic:
            call.launch(finish_kernel, "rows", q, inverse_q, sums, peaks, dq)
    elif k.numel():
        dk.zero_()
        dv.zero_()
    elastic = tau is not None and sharpen == "elastic"
    dtau = row_grads[3].sum(dim=(0, 2)) if elastic else rows.new_empty(0)
    return dq, dk, dv, dtau, dbias


def _gradients(q: Tensor, k: Tensor, v: Tensor) -> list[Tensor]:
    """Return new tensors for the gradients, which have the type of v: directions have another."""
    like = torch.contiguous_format
    return [torch.empty_like(x, dtype=v.dtype, memory_format=like) for x in (q, k, v)]


def _alert_not_deterministic() -> None:
    """Say, as torch does of its own operators, that sums of atomic adds differ between runs."""
    if torch.are_deterministic_algorithms_enabled():
        sentence = (
            "the Triton kernels add up the gradient of a learned bias in any order, which is not "
            "deterministic; use backend='reference'"
        )
        if not torch.is_deterministic_algorithms_warn_only_enabled():
            raise RuntimeError(sentence)
        warnings.warn(sentence, stacklevel=2)


def _kept(save: bool, *saved: Tensor) -> tuple[Tensor, ...]:
    return saved if save else tuple(x.new_empty(0) for x in saved)


@attention_forward.register_fake
def _(q, k, v, tau, bias, save, atomic, *choices):
    out, *saved = _Call(q, k, bias, *choices).results(save)
    return out, *_kept(save, *saved)


@attention_backward.register_fake
def _(grad, q, k, v, tau, bias, out, rows, *rest):
    return (
        *_gradients(q, k, v),
        *(rows.new_empty(0 if x is None else x.shape) for x in (tau, bias)),
    )


def _remember(ctx: Any, inputs: tuple, output: tuple[Tensor, ...]) -> None:
    q, k, v, tau, bias, _, *ctx.choices = inputs  # atomic, then the plan
    out, rows, extra, directions_q, inverse_q, directions_k, inverse_k = output
    if ctx.choices[1]:  # their directions are all that is needed of q and k
        q, k = directions_q, directions_k
    ctx.save_for_backward(q, k, v, tau, bias, out, rows, extra, inverse_q, inverse_k)
    ctx.mark_non_differentiable(*output[1:])


def _differentiate(ctx: Any, grad: Tensor, *_: Any) -> tuple:
    dq, dk, dv, dtau, dbias = attention_backward(grad, *ctx.saved_tensors, *ctx.choices)
    tau, bias = ctx.saved_tensors[3:5]
    learned = dtau if tau is not None else None, dbias if bias is not None else None
    return dq, dk, dv, *learned, None, *[None] * len(ctx.choices)


attention_forward.register_autograd(_differentiate, setup_context=_remember)


class _Call:
    """The sizes, choices and numbers that all kernels of one call share."""

    def __init__(
        self,
        q: Tensor,
        k: Tensor,
        bias: Tensor | None,
        unit: bool,
        phi: str,
        l1: bool,
        sharpen: str,
        kind: str,
        numbers: list[float],
    ) -> None:
        self.q, self.k, self.unit = q, k, unit
        self.total_length = k.shape[2]
        self.longest = bias[0].numel() if bias is not None else 0
        self.numbers = tuple(numbers)
        self.sharpened, p = sharpen != "none", numbers[-1]
        self.family = "biased" if kind in ("zero", "last") else sharpen
        # Whether du has a bound to scale it by, so that float16 can hold it.
        bounded = phi not in ("exp", "relu2") or (phi == "exp" and l1)
        bounded = bounded and not (sharpen == "reweight" and p < 1)
        self.direction_dtype = q.dtype
        if bounded and q.dtype == torch.bfloat16:
            self.direction_dtype = torch.float16  # of numbers up to 1 it has three bits more
        self.choices = {
            "UNIT": unit,
            "PHI": phi,
            "L1": l1,
            "SHARPEN": sharpen,
            "BIAS": kind,
            "P": int(p) if p == int(p) and p < 1024 else 0,
            "EXACT": sharpen == "reweight" and (q.dtype == torch.float32 or p > LARGEST_P),
            "SCALED": bounded and q.dtype == torch.float16,
            "PRECISE": q.dtype == torch.float32,
            "D": q.shape[3],
        }

    def results(self, save: bool) -> tuple[Tensor, ...]:
        """Return new tensors for what :func:`attention_forward` returns."""
        q, sharpened = self.q, self.sharpened
        out = torch.empty_like(q, memory_format=torch.contiguous_format)
        rows = q.new_empty([4 if sharpened else 2, *q.shape[:3]], dtype=torch.float32)
        extra = torch.empty_like(out) if sharpened and save else q.new_empty(0)
        units = []
        for x in (q, self.k):
            shape = x.shape if self.unit else torch.Size([0])
            inverse = x.new_empty(shape[:3] if self.unit else shape, dtype=torch.float32)
            units += [x.new_empty(shape, dtype=self.direction_dtype), inverse]
        return out, rows, extra, *units

    def normalise(self, q: Tensor, k: Tensor, *units: Tensor) -> None:
        """Write the directions of q and k and one over their lengths."""
        n_rows = [math.prod(x.shape[:3]) for x in (q, k)]
        blocks = sum(tiles.blocks(n, ROW_TILE.rows) for n in n_rows)
        with self._device():
            unit_kernel[(blocks,)](
                q, k, *units, *n_rows,
                D=q.shape[3], ROWS=ROW_TILE.rows,
                num_warps=ROW_TILE.warps, num_stages=ROW_TILE.stages,
            )  # fmt: skip

    def launch(self, kernel: Any, name: str, *tensors: Tensor | None, **choices: Any) -> None:
        """Run a kernel over all blocks of rows (of keys for ``dkdv``; ``rows`` has no tiles)."""
        batch, heads, length, head_dim = self.q.shape
        tile = ROW_TILE
        if name != "rows":
            arch = architecture(self.q.device.index)
            assert arch is not None  # the backend refuses a GPU that no tiles fit
            bits = self.q.element_size() * 8
            tile = tiles.tile(name, self.family, head_dim, bits, arch)
        blocks = tiles.blocks(length, tile.rows)
        if kernel is pre_kernel:
            blocks = tiles.blocks(self.total_length, tile.rows)
        elif name == "dkdv":
            blocks = tiles.blocks(self.total_length, tile.keys)
        choices = {**self.choices, **choices, "ROWS": tile.rows, "KEYS": tile.keys}
        taken = _arguments(kernel)
        with self._device():
            kernel[(blocks * batch * heads,)](
                *tensors,
                heads,
                batch * heads * length,
                length,
                self.total_length,
                self.longest,
                self.numbers,
                **{key: value for key, value in choices.items() if key in taken},
                num_warps=tile.warps,
                num_stages=tile.stages,
            )

    def _device(self) -> torch.cuda.device:
        return torch.cuda.device(self.q.device.index if self.q.is_cuda else -1)


@functools.cache
def _arguments(kernel: Any) -> frozenset[str]:
    return frozenset(kernel.arg_names)


@functools.cache
def architecture(device: int | None) -> str | None:
    """Return the name of the table of tiles for a GPU, or None where none fits."""
    if INTERPRETED:
        return tiles.INTERPRETER
    found = torch.cuda.get_device_properties(device)
    return tiles.table_for(10 * found.major + found.minor, shared_memory(device))


def shared_memory(device: int | None) -> int:
    """Return the KiB of shared memory that one block may have on a GPU."""
    found: Any = torch.cuda.get_device_properties(device)
    return found.shared_memory_per_block_optin // 1024
