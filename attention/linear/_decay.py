"""Linear attention whose state decays, by one number or by one per key channel.

S_t = diag(a_t) S_{t-1} + k_t^T v_t, the state [K, V], and o_t = q_t S_t. Decays are given as
log a_t <= 0, [B, H, L, K], or [B, H, L, 1] for one number per head; with one number, heads may
share queries and keys, [B, 1, L, K].

The chunked form never divides by a decay: every exponent in it is a sum of logarithms that are
not positive, so a factor underflows to 0 at worst (keys divided by the product of their decays,
as in the parallel form of Yang et al. 2023, Sect. 4.1, overflow).
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor
from torch.nn import functional

from attention.linear import fla
from attention.linear.mixer import RecurrentState


def decayed_attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    log_decay: Tensor,
    cache: RecurrentState,
    chunk: int | None,
    bonus: Tensor | None = None,
) -> Tensor:
    """Return the decayed sum after the ``state`` of a cache, which is replaced.

    ``chunk`` positions are taken at once, or one by one with None; the other arguments and the
    result are those of :func:`recurrent`.
    """
    state = cache.tensors.get("state", zero_state(k, v))
    refusal = fla.head_refusal if fla.is_per_head(log_decay, bonus) else fla.refusal
    if chunk is None:
        out, state = recurrent(q, k, v, log_decay, state, bonus)
    elif refusal(k, v) is None:
        out, state = fla.chunked(q, k, v, log_decay, state, bonus)
    else:
        out, state = chunked(q, k, v, log_decay, state, chunk, bonus)
    cache.tensors = {**cache.tensors, "state": state}
    return out


def zero_state(k: Tensor, v: Tensor) -> Tensor:
    """Return the state before the first position, [B, H, K, V]."""
    return v.new_zeros(*v.shape[:2], k.shape[-1], v.shape[-1])


def recurrent(
    q: Tensor, k: Tensor, v: Tensor, log_decay: Tensor, state: Tensor, bonus: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """Return o_t position by position, and the last state: the specification.

    Args:
        q: [B, H, L, K].
        k: [B, H, L, K].
        v: [B, H, L, V].
        log_decay: [B, H, L, K or 1], not positive.
        state: S before the first position, [B, H, K, V].
        bonus: u, [H, K]: with it, o_t = q_t (S_{t-1} + diag(u) k_t^T v_t), as in RWKV.

    Returns:
        [B, H, L, V] and [B, H, K, V].
    """
    outputs = []
    for q_t, k_t, v_t, log_decay_t in steps(q, k, v, log_decay):
        write = k_t.mT @ v_t
        after = log_decay_t.exp().mT * state + write
        outputs.append(q_t @ (after if bonus is None else state + bonus[..., None] * write))
        state = after
    return torch.cat(outputs, dim=-2), state


def chunked(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    log_decay: Tensor,
    state: Tensor,
    chunk: int,
    bonus: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """Compute :func:`recurrent` with ``chunk`` positions at once."""
    length = q.shape[-2]
    q, k, v, log_decay = in_chunks(chunk, q, k, v, log_decay)
    scores = pair_scores(q, k, log_decay, before=bonus is not None)
    if bonus is not None:
        scores = scores + torch.diag_embed((q * bonus[:, None, None] * k).sum(-1))
    reads = q * sum_to(log_decay, before=bonus is not None).exp()
    writes = (k * sum_after(log_decay).exp()).mT @ v
    to_end = log_decay.sum(-2, keepdim=True).exp().mT
    states = []
    for kept_n, writes_n in zip(to_end.unbind(-3), writes.unbind(-3), strict=True):
        states.append(state)
        state = kept_n * state + writes_n
    out = scores @ v + reads @ torch.stack(states, dim=-3)
    return out.flatten(-3, -2)[..., :length, :], state


def steps(*tensors: Tensor) -> Iterator[tuple[Tensor, ...]]:
    """Yield the positions of [..., L, D] tensors, each [..., 1, D].

    One split, and not an index per position: the gradient of an index is as long as the sequence.
    """
    return zip(*(x.split(1, dim=-2) for x in tensors), strict=True)


def in_chunks(chunk: int, *tensors: Tensor) -> tuple[Tensor, ...]:
    """Return [..., L, D] as [..., N, chunk, D], filled up with zeros.

    A key of 0 with a log-decay of 0 leaves the state as it is. A sequence shorter than a chunk
    is a chunk of its own, so that decoding does not pay for a whole one.
    """
    length = tensors[0].shape[-2]
    chunk = min(chunk, length)
    missing = -length % chunk
    return tuple(functional.pad(x, (0, 0, 0, missing)).unflatten(-2, (-1, chunk)) for x in tensors)


def sum_to(log_decay: Tensor, before: bool = False) -> Tensor:
    """Return the sum of the decays up to each position of [..., C, D]; ``before`` without it."""
    if before:
        log_decay = functional.pad(log_decay[..., :-1, :], (0, 0, 1, 0))
    return log_decay.cumsum(-2)


def sum_after(log_decay: Tensor) -> Tensor:
    """Return the sum of the decays after each position of [..., C, D].

    Summed from the end: a difference of two long sums would lose the small ones.
    """
    return functional.pad(log_decay[..., 1:, :], (0, 0, 0, 1)).flip(-2).cumsum(-2).flip(-2)


def pair_scores(q: Tensor, k: Tensor, log_decay: Tensor, before: bool = False) -> Tensor:
    """Return sum_d q_id k_jd exp(sum of log_decay_d over j+1..i) for j <= i, else 0.

    Args:
        q: [..., C, K].
        k: [..., C, K].
        log_decay: [..., C, K or 1].
        before: The query reads the state before its position: decays over j+1..i-1, and j < i.

    Returns:
        [..., C, C].
    """
    if log_decay.shape[-1] == 1:
        return (q @ k.mT) * _pair_decay(log_decay, before)
    return _scores_by_halves(q, k, log_decay, before)


def _pair_decay(log_decay: Tensor, before: bool) -> Tensor:
    """Return exp(sum over j+1..i), lower triangular (Dao and Gu 2024, Listing 1, "segsum")."""
    size, late = log_decay.shape[-2], int(before)
    if before:
        log_decay = functional.pad(log_decay[..., :-1, :], (0, 0, 1, 0))
    sums = log_decay.expand(*log_decay.shape[:-1], size).tril(-1 - late).cumsum(-2)
    return sums.exp().tril(-late)


def _scores_by_halves(q: Tensor, k: Tensor, log_decay: Tensor, before: bool) -> Tensor:
    """Return :func:`pair_scores` for one decay per channel.

    Queries of the second half of a block and keys of its first half meet at the middle: each side
    decays to there, and one product of matrices makes the corner. Blocks of 2, 4, 8, ... are put
    together from two of half the size (the secondary chunks of Yang et al. 2023, Sect. 4.3, at
    every size, so that no pair needs all its channels at once).
    """
    size = q.shape[-2]
    missing = (1 << (size - 1).bit_length()) - size
    q, k, log_decay = (functional.pad(x, (0, 0, 0, missing)) for x in (q, k, log_decay))
    diagonal = (q * k).sum(-1)[..., None, None]
    blocks = torch.zeros_like(diagonal) if before else diagonal
    half = 1
    while half < size:
        late, early, decays = (x.unflatten(-2, (-1, 2, half)) for x in (q, k, log_decay))
        late = late[..., 1, :, :] * sum_to(decays[..., 1, :, :], before).exp()
        early = early[..., 0, :, :] * sum_after(decays[..., 0, :, :]).exp()
        first, second = blocks.unflatten(-3, (-1, 2)).unbind(-3)
        upper = torch.cat([first, torch.zeros_like(first)], dim=-1)
        lower = torch.cat([late @ early.mT, second], dim=-1)
        blocks = torch.cat([upper, lower], dim=-2)
        half *= 2
    return blocks.squeeze(-3)[..., :size, :size]
