"""First-order linear recurrences of single numbers, real or complex: h_t = a_t h_{t-1} + b_t."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from attention.linear import fla
from attention.linear.mixer import RecurrentState


def scanned(a: Tensor, b: Tensor, cache: RecurrentState, chunk: int | None) -> Tensor:
    """Return h_t of all positions after the ``state`` of a cache, which is replaced.

    Args:
        a: Factors, [B or 1, L, ...].
        b: Summands, [B, L, ...] of the same type.
        cache: Keeps the last h, a complex one as pairs of real numbers.
        chunk: None for position by position, a number for all at once.

    Returns:
        [B, L, ...].
    """
    state = kept_state(cache, b[:, 0])
    h = by_steps(a, b, state) if chunk is None else scan(a, b, state)
    keep_state(cache, h[:, -1])
    return h


def scanned_by_logs(log_a: Tensor, b: Tensor, cache: RecurrentState, chunk: int | None) -> Tensor:
    """Compute :func:`scanned` of real factors from their logarithms, [B, L, C], not positive."""
    if chunk is None or fla.channel_refusal(log_a, b) is not None:
        return scanned(log_a.exp(), b, cache, chunk)
    h, state = fla.scan(log_a, b, kept_state(cache, b[:, 0]))
    keep_state(cache, state)
    return h


def kept_state(cache: RecurrentState, like: Tensor) -> Tensor:
    """Return the ``state`` of a cache, complex if ``like`` is; zeros before the first position."""
    state = cache.tensors.get("state")
    if state is None:
        return torch.zeros_like(like)
    return torch.view_as_complex(state) if like.is_complex() else state


def keep_state(cache: RecurrentState, state: Tensor) -> None:
    """Replace the ``state`` of a cache by a copy, since a view would keep a larger tensor."""
    state = torch.view_as_real(state) if state.is_complex() else state
    cache.tensors = {**cache.tensors, "state": state.clone()}


def by_steps(a: Tensor, b: Tensor, state: Tensor) -> Tensor:
    """Return h_t of all positions one by one, from h before the first: the specification."""
    found = []
    for a_t, b_t in zip(a.unbind(1), b.unbind(1), strict=True):
        state = a_t * state + b_t
        found.append(state)
    return torch.stack(found, dim=1)


def scan(a: Tensor, b: Tensor, state: Tensor) -> Tensor:
    """Compute :func:`by_steps` in log2(L) rounds; with |a| <= 1 nothing overflows."""
    first = b[:, :1] + a[:, :1] * state.unsqueeze(1)
    return _Scan.apply(a, torch.cat([first, b[:, 1:]], dim=1))


class _Scan(torch.autograd.Function):
    """The scan from zero, whose gradient is a scan from the end."""

    generate_vmap_rule = True

    @staticmethod
    def forward(a: Tensor, b: Tensor) -> Tensor:
        return _pairwise(a, b)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, Tensor], output: Tensor) -> None:
        ctx.save_for_backward(inputs[0], output)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor]:
        a, h = ctx.saved_tensors
        # dL/db_t = dL/dh_t + conj(a_{t+1}) dL/db_{t+1}; the factor of the last one is not used.
        following = a.roll(-1, dims=1).conj().flip(1)
        of_b = _Scan.apply(following, gradient.flip(1)).flip(1)
        of_a = torch.cat([torch.zeros_like(of_b[:, :1]), of_b[:, 1:] * h[:, :-1].conj()], dim=1)
        return of_a.sum_to_size(a.shape), of_b


def _pairwise(a: Tensor, b: Tensor) -> Tensor:
    """Return h_t from zero: two positions are one of a recurrence half as long (Blelloch 1990)."""
    length = b.shape[1]
    if length == 1:
        return b.clone()
    even, odd = slice(0, length // 2 * 2, 2), slice(1, None, 2)
    second = _pairwise(a[:, odd] * a[:, even], a[:, odd] * b[:, even] + b[:, odd])
    h = torch.empty_like(b)
    h[:, 0] = b[:, 0]
    h[:, odd] = second
    h[:, 2::2] = a[:, 2::2] * second[:, : (length - 1) // 2] + b[:, 2::2]
    return h
