"""Linear attention whose state is corrected: the delta rule, with decay.

S_t = diag(a_t) S_{t-1} + b_t^T (r_t S_{t-1}) + k_t^T v_t, the state [K, V], and o_t = q_t S_t:
what the state answers to r_t ("read") is added again at b_t ("write"). The delta rule of Schlag
et al. (2021) is r_t = k_t, b_t = -beta_t k_t, and beta_t k_t in the place of k_t: the old value
of a key is replaced by the new one. RWKV-7 chooses all of them freely.
"""

from __future__ import annotations

import torch
from torch import Tensor

from attention.linear import fla
from attention.linear._decay import in_chunks, pair_scores, steps, sum_after, sum_to, zero_state
from attention.linear.mixer import RecurrentState


def delta_rule(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    log_decay: Tensor,
    rate: Tensor,
    cache: RecurrentState,
    chunk: int | None,
) -> Tensor:
    """Return q_t S_t, S_t = alpha_t (1 - beta_t k_t^T k_t) S_{t-1} + beta_t k_t^T v_t.

    Args:
        q: [B, H, L, K].
        k: Keys of length 1, [B, H, L, K].
        v: [B, H, L, V].
        log_decay: log alpha, not positive, [B, H, L, 1].
        rate: beta, [B, H, L, 1].
        cache: Cache, see :func:`corrected_attention`.
        chunk: Chunk, see :func:`corrected_attention`.

    Returns:
        [B, H, L, V].
    """
    if chunk is not None and fla.delta_refusal(k, v) is None:
        state = cache.tensors.get("state", zero_state(k, v))
        out, state = fla.delta_rule(q, k, v, log_decay, rate, state)
        cache.tensors = {**cache.tensors, "state": state}
        return out
    # The state is read before it decays: k (alpha S) = alpha (k S).
    write = -rate * log_decay.exp() * k
    return corrected_attention(q, rate * k, v, log_decay, k, write, cache, chunk)


def vector_rule(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    log_decay: Tensor,
    read: Tensor,
    write: Tensor,
    cache: RecurrentState,
    chunk: int | None,
) -> Tensor:
    """Return :func:`corrected_attention` of decays and rates that are vectors of K numbers.

    v has the type that the caller computes in: a kernel of half precision may serve then.
    """
    if chunk is not None and fla.vector_refusal(k, v) is None:
        state = cache.tensors.get("state", zero_state(k, v))
        out, state = fla.vector_rule(q, k, v, log_decay, read, write, state)
        cache.tensors = {**cache.tensors, "state": state}
        return out
    return corrected_attention(q, k, v.to(k.dtype), log_decay, read, write, cache, chunk)


def corrected_attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    log_decay: Tensor,
    read: Tensor,
    write: Tensor,
    cache: RecurrentState,
    chunk: int | None,
) -> Tensor:
    """Return the corrected sum after the ``state`` of a cache, which is replaced.

    ``chunk`` positions are taken at once, or one by one with None; the other arguments and the
    result are those of :func:`recurrent`.
    """
    state = cache.tensors.get("state", zero_state(k, v))
    inputs = (q, k, v, log_decay, read, write, state)
    if chunk is None:
        out, state = recurrent(*inputs)
    else:
        out, state = chunked(*inputs, chunk)
    cache.tensors = {**cache.tensors, "state": state}
    return out


def recurrent(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    log_decay: Tensor,
    read: Tensor,
    write: Tensor,
    state: Tensor,
) -> tuple[Tensor, Tensor]:
    """Return o_t position by position, and the last state: the specification.

    Args:
        q: [B, H, L, K].
        k: [B, H, L, K].
        v: [B, H, L, V].
        log_decay: log a, not positive, [B, H, L, K], or [B, H, L, 1] for one number per head.
        read: r, [B, H, L, K].
        write: b, [B, H, L, K].
        state: S before the first position, [B, H, K, V].

    Returns:
        [B, H, L, V] and [B, H, K, V].
    """
    outputs = []
    for q_t, k_t, v_t, log_decay_t, read_t, write_t in steps(q, k, v, log_decay, read, write):
        answer = read_t @ state
        state = log_decay_t.exp().mT * state + write_t.mT @ answer + k_t.mT @ v_t
        outputs.append(q_t @ state)
    return torch.cat(outputs, dim=-2), state


def chunked(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    log_decay: Tensor,
    read: Tensor,
    write: Tensor,
    state: Tensor,
    chunk: int,
) -> tuple[Tensor, Tensor]:
    """Compute :func:`recurrent` with ``chunk`` positions at once.

    The answers u_t = r_t S_{t-1} of a chunk depend on each other: u = R S_0 + A u + B v with A
    strictly lower triangular. Solving for u once, u = W S_0 + Y, is the WY form of the product of
    the transitions (Yang et al. 2024, arXiv:2406.06484, Sects. 3.1 and 3.2; with decay
    arXiv:2412.06464, Sect. 3.3): a state passes a chunk by products of matrices.
    """
    length = q.shape[-2]
    q, k, v, log_decay, read, write = in_chunks(chunk, q, k, v, log_decay, read, write)
    both = torch.stack([k, write])
    q_k, q_write = pair_scores(q, both, log_decay)
    read_k, read_write = pair_scores(read, both, log_decay, before=True)
    first = read * sum_to(log_decay, before=True).exp()
    identity = torch.eye(q.shape[-2], dtype=q.dtype, device=q.device)
    solved = torch.linalg.solve_triangular(
        identity - read_write,
        torch.cat([first, read_k @ v], dim=-1),
        upper=False,
        unitriangular=True,
    )
    from_state, from_values = solved.split([q.shape[-1], v.shape[-1]], dim=-1)
    remains = sum_after(log_decay).exp()
    to_end = log_decay.sum(-2, keepdim=True).exp().mT
    added, corrected = (k * remains).mT @ v, (write * remains).mT
    states, answers = [], []
    for w, y, kept_n, added_n, corrected_n in zip(
        *(x.unbind(-3) for x in (from_state, from_values, to_end, added, corrected)),
        strict=True,
    ):
        states.append(state)
        answers.append(w @ state + y)
        state = kept_n * state + added_n + corrected_n @ answers[-1]
    out = (
        (q * sum_to(log_decay).exp()) @ torch.stack(states, dim=-3)
        + q_k @ v
        + q_write @ torch.stack(answers, dim=-3)
    )
    return out.flatten(-3, -2)[..., :length, :], state
