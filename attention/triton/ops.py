"""The two passes for torch: a function with a gradient, and operators to trace.

What traces or transforms a call (``torch.compile``, ``torch.func.vmap``, fake tensors) sees two
``custom_op``, which pass ``opcheck`` and compile with ``fullgraph=True``. A call that nobody looks
at goes to the same passes without them, since an operator costs as much time on the host as a
kernel or two take on a GPU for short sequences. Either pass asks for itself: a gradient may be
looked at where the call was not.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, library, nn

from attention.triton import passes
from attention.triton.passes import Passes
from attention.triton.plan import Plan
from attention.triton.turns import Angles
from attention.validation import check_no_tangents

GRADIENTS = ("split", "atomic", "exact")
"""Ways of the backward pass, see :func:`attend`."""


def attend(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    plan: Plan,
    tau: Tensor | None,
    bias: Tensor | None,
    gradients: str = "split",
    angles: Angles | None = None,
) -> Tensor:
    """Return the attention output [B, H, Lq, D], differentiable in all tensors.

    Args:
        q: [B, H, Lq, D].
        k: [B, H, Lk, D].
        v: [B, H, Lk, D].
        plan: Plan of the variant.
        tau: [H], float32, for an elastic plan.
        bias: Slopes [H] or a table [H, distance] of a plan with a bias, float32, in its units.
        gradients: ``split``, in two passes over the tiles. ``atomic``: in one, where that of q is
            added up in any order: less work, and other last digits in each run; a learned bias,
            and ``torch.use_deterministic_algorithms``, have two passes all the same. ``exact``:
            in half precision with row means of the gradient that are computed again, where
            ``split`` takes them from the rounded output: one more pass, of re-weighted variants.
        angles: RoPE's, by which q and k are turned, of a plan with ``unit`` and as many keys as
            queries; None for none.

    Raises:
        ValueError: ``gradients`` is unknown, or a tensor has a tangent of forward-mode
            differentiation.
        RuntimeError: In the backward pass, if ``torch.use_deterministic_algorithms(True)`` and
            the bias is learned; with ``warn_only=True`` that is a warning.
    """
    if gradients not in GRADIENTS:
        raise ValueError(f"gradients must be {', '.join(GRADIENTS)}, got {gradients!r}")
    check_no_tangents("the Triton kernels", "use backend='reference'", q, k, v, tau, bias)
    # The kernels read the numbers of a head one after the other.
    tau, bias = (x if x is None else x.contiguous() for x in (tau, bias))
    given = [x for x in (q, k, v, tau, bias) if x is not None]
    save = torch.is_grad_enabled() and any(x.requires_grad for x in given)
    if traced(*given):
        return attention_forward(
            q, k, v, tau, bias, save, gradients, *plan.choices, *(angles or (None, None))
        )[0]
    if not save:
        return _passes(plan, q).forward(q, k, v, tau, bias, False, angles)[0]
    return _Attention.apply(q, k, v, tau, bias, gradients, plan, angles)


def traced(*tensors: Tensor) -> bool:
    """Return whether anything but autograd must see a call: then it goes through an operator."""
    return (
        torch.compiler.is_compiling()
        or torch._C._len_torch_dispatch_stack() > 0
        or torch._C._are_functorch_transforms_active()
        or torch.jit.is_tracing()
        or any(type(x) not in (Tensor, nn.Parameter) for x in tensors)
        or any(torch._C._functorch.is_legacy_batchedtensor(x) for x in tensors)
    )


class _Attention(torch.autograd.Function):
    """The passes under autograd alone."""

    @staticmethod
    def forward(
        ctx: Any,
        q: Tensor,
        k: Tensor,
        v: Tensor,
        tau: Tensor | None,
        bias: Tensor | None,
        gradients: str,
        plan: Plan,
        angles: Angles | None,
    ) -> Tensor:
        both = _passes(plan, q)
        out, rows, extra, *units = both.forward(q, k, v, tau, bias, True, angles)
        directions_q, inverse_q, directions_k, inverse_k = units
        if plan.unit:  # their directions are all that is needed of q and k
            q, k = directions_q, directions_k  # type: ignore[assignment]
        lengths_and_angles = inverse_q, inverse_k, *(angles or (None, None))
        ctx.save_for_backward(q, k, v, tau, bias, out, rows, extra, *lengths_and_angles)
        ctx.passes, ctx.choices = both, (gradients, *plan.choices)
        return out

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple:
        saved = ctx.saved_tensors
        # The operator has no gradient: a second derivative is refused, not zero.
        if torch.is_grad_enabled() or traced(grad, *(x for x in saved if x is not None)):
            return *_operator_gradients(grad, saved, ctx.choices), *[None] * 3
        *read, cosine, sine = saved
        found = ctx.passes.backward(grad, *read, ctx.choices[0], _angles(cosine, sine))
        return *found, *[None] * 3


def _passes(plan: Plan, q: Tensor) -> Passes:
    return passes.of(*plan.choices, q.dtype, q.shape[3])


def _operator_gradients(grad: Tensor, saved: Sequence[Any], choices: Sequence[Any]) -> tuple:
    """Return the gradients of q, k, v, tau and bias by the operator, None for missing tensors."""
    *read, cosine, sine = saved
    dq, dk, dv, dtau, dbias = attention_backward(grad, *read, *choices, cosine, sine)
    tau, bias = read[3:5]
    return dq, dk, dv, dtau if tau is not None else None, dbias if bias is not None else None


@library.custom_op("orrery::attention_forward", mutates_args=())
def attention_forward(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    tau: Tensor | None,
    bias: Tensor | None,
    save: bool,
    gradients: str,
    unit: bool,
    phi: str,
    l1: bool,
    sharpen: str,
    kind: str,
    numbers: list[float],
    cosine: Tensor | None = None,
    sine: Tensor | None = None,
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]:
    """Return the output, and tensors for the backward pass if ``save`` says that there will be one.

    ``gradients`` is as in :func:`attend`; the six arguments after it are the plan (``kind`` is its
    bias); q and k are turned by the last two.

    Returns:
        The output; the rows' numbers [2 or 4, B, H, Lq]; ``extra`` of forward_kernel; and of a
        plan with ``unit`` the directions of q and k, of bfloat16 in float16 where that can hold
        the gradient, with one over their lengths [B, H, L]. Missing tensors are empty.
    """
    both = passes.of(unit, phi, l1, sharpen, kind, tuple(numbers), q.dtype, q.shape[3])
    return _kept(q, save, both.forward(q, k, v, tau, bias, save, _angles(cosine, sine)))


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
    extra: Tensor | None,
    inverse_q: Tensor | None,
    inverse_k: Tensor | None,
    gradients: str,
    unit: bool,
    phi: str,
    l1: bool,
    sharpen: str,
    kind: str,
    numbers: list[float],
    cosine: Tensor | None = None,
    sine: Tensor | None = None,
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    """Return :meth:`Passes.backward` with empty tensors in place of None."""
    both = passes.of(unit, phi, l1, sharpen, kind, tuple(numbers), v.dtype, q.shape[3])
    read = grad, q, k, v, tau, bias, out, rows, extra, inverse_q, inverse_k
    found = both.backward(*read, gradients, _angles(cosine, sine))
    return tuple(rows.new_empty(0) if x is None else x for x in found)  # type: ignore[return-value]


def _angles(cosine: Tensor | None, sine: Tensor | None) -> Angles | None:
    return None if cosine is None or sine is None else (cosine, sine)


def _kept(q: Tensor, save: bool, results: tuple[Tensor | None, ...]) -> Any:
    """Return the results of a forward pass as an operator must: all of them tensors."""
    out, *saved = results
    return out, *(x if save and x is not None else q.new_empty(0) for x in saved)


@attention_forward.register_fake
def _(q, k, v, tau, bias, save, gradients, unit, phi, l1, sharpen, kind, numbers, *angles):
    both = Passes(unit, phi, l1, sharpen, kind, tuple(numbers), q.dtype, q.shape[3])
    return _kept(q, save, both.results(q, k, save))


@attention_backward.register_fake
def _(grad, q, k, v, tau, bias, out, rows, *rest):
    return (
        *passes.new_gradients(q, k, v),
        *(rows.new_empty(0 if x is None else x.shape) for x in (tau, bias)),
    )


def _remember(ctx: Any, inputs: tuple, output: tuple[Tensor, ...]) -> None:
    q, k, v, tau, bias, _, *ctx.choices, cosine, sine = inputs
    _, unit, _, _, sharpen, *_ = ctx.choices  # gradients, then the plan
    out, rows, extra, directions_q, inverse_q, directions_k, inverse_k = output
    lengths: tuple[Tensor | None, ...] = None, None
    if unit:  # their directions are all that is needed of q and k
        q, k, lengths = directions_q, directions_k, (inverse_q, inverse_k)
    # As the plain call has it: what is recomputed under a checkpoint may be either.
    kept = extra if sharpen != "none" else None
    ctx.save_for_backward(q, k, v, tau, bias, out, rows, kept, *lengths, cosine, sine)
    ctx.mark_non_differentiable(*output[1:])


def _differentiate(ctx: Any, grad: Tensor, *_: Any) -> tuple:
    saved = ctx.saved_tensors  # once: a checkpoint allows no second time
    gradients = _operator_gradients(grad, saved, ctx.choices)
    return *gradients, None, *[None] * len(ctx.choices), None, None


attention_forward.register_autograd(_differentiate, setup_context=_remember)
