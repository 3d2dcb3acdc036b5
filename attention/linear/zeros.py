"""ZeroS: zero-sum linear attention (2025), with the ablations of its Tables 5, 6 and 8."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional

from attention.linear import _zeros_forms as forms
from attention.linear import _zeros_triton, fla
from attention.linear.mixer import Mixer, RecurrentState
from attention.parts.precision import full_precision
from attention.positions import rope, sinusoidal
from attention.reference import unit
from attention.scalars import check_positive

CHOICES: dict[str, tuple[Any, ...]] = {
    "radial": ("zero_sum", "softmax", "none"),
    "logits": ("deviation", "averaging", "distance", "linear", "quadratic"),
    "angular": ("rope", "plain", "additive", "none"),
    "zeroth": ("none", "first", "all"),
    **dict.fromkeys(("gated", "norm", "rescale", "decay"), (True, False)),
}
"""Allowed values of the arguments; ``rope_base`` is a number."""

IDLE: dict[str, tuple[str, tuple[Any, ...]]] = {
    "zeroth": ("radial", ("softmax", "none")),  # nothing was removed
    "gated": ("radial", ("softmax", "none")),
    "logits": ("radial", ("none",)),
    "rope_base": ("angular", ("plain", "additive", "none")),
    "rescale": ("norm", (False,)),
}
"""Arguments without an effect beside these values of another argument."""

Parts = tuple[Tensor, Tensor, Tensor, Tensor, Tensor]


class ZeroS(Mixer):
    """o_t = sum_i r_{t,i} cos(q_t, k_i) v_i, with radial weights r whose rows sum to zero.

    A logit says how far a position is from those before it (Sect. 3.2):

        s_i = -u_i . ubar_i / sqrt(d),  ubar_i = (e^tau mu + sum_{j <= i} u_j) / (e^tau + i),

    with mu [H, D] and tau [H] learned, both from 0. Of softmax's expansion around equal logits the
    zeroth order 1/t is left out, and the first order and the rest are gated by the reader t:

        delta = s_i - mean_{j <= t} s_j,   epsilon = softmax_{j <= t}(s)_i - 1/t - delta / t,
        r_{t,i} = sigma1_t delta / t + sigmah_t epsilon,   sigma = sigmoid(x_t W).

    Rows of r sum to 0; rows of r cos do not, against the remark of Sect. 3.3. The first output is
    0. The cosine is that of queries and keys which are l2-normalised and then rotated by RoPE
    (rotations keep lengths, so the order is immaterial) with the pairing of
    :func:`attention.positions.rope`, channel j with j + D/2, both turned by one angle: the
    cosine depends on positions through t - i alone. A vector of zeros has cosine 0 with any other.
    A LayerNorm without affine part follows per head, then the output projection. It normalises
    t o_t: r is O(1/t) (Lemma 3.4), so that of o_t itself would shrink late outputs by its epsilon
    of 1e-5: to 0.2 of their size at t = 64 and to 0.006 at t = 4,096 in a new layer of 12 heads of
    64 channels, on normally distributed inputs.

    Arguments:
        radial: ``softmax`` for r = softmax(s) ("w/o RWSM"), ``none`` for r = 1/t ("w/o Radial").
        logits: ``linear``, x_i w; ``quadratic``, ||x_i W||^2 / d; ``averaging``, the mean of u_i's
            channels; ``distance``, the root mean square of u_i less the mean of u_1 .. u_i
            ("2-distance"). The paper gives formulas of the first two alone; the others are called
            mean and distance_rms in its public code, and taken to be those of Table 8.
        angular: ``plain`` without positions, ``additive`` with sinusoidal positions added to what
            queries and keys are made of, ``none`` for a cosine of 1.
        zeroth: Where sigma0_t / t is restored: in the ``first`` layer or in ``all`` ("w/ 0-th").
            sigma0 = tanh(x_t W) as in Sect. 3.2, which may remove the average as well as add it;
            Sect. 3.3 writes a sigmoid.
        gated: False for gates of 1, r = softmax - 1/t ("w/o Gating").
        norm: False for no LayerNorm ("w/o Norm").
        rescale: False for the LayerNorm of o_t itself, as published.
        decay: True for the factor 1 / sqrt(t) of Proposition 3.5.
        causal: False for sums over all positions (encoder-only, Sect. 4).
        rope_base: Base of the rotary positions.
    """

    name = "zeros"
    source = "ZeroS (2025), Sects. 3.2, 3.3 and A.2"
    about = "Softmax of a key's deviation without its zeroth order, gated, times a cosine."
    kept = "H (3 D^2 + D + 2)"
    deviations = "LayerNorm of t o_t; rescale=False is the paper."
    kernels: ClassVar = {"triton": _zeros_triton.refusal, "fla": fla.head_refusal}
    arguments: ClassVar = {
        "radial": "zero_sum",
        "logits": "deviation",
        "angular": "rope",
        "zeroth": "none",
        "gated": True,
        "norm": True,
        "rescale": True,
        "decay": False,
        "causal": True,
        "rope_base": 10_000.0,
    }

    def __init__(self, n_head: int, head_dim: int, **args: Any) -> None:
        super().__init__(n_head, head_dim, **args)
        a = self.args
        if a["angular"] == "rope" and head_dim % 2:
            raise ValueError(f"RoPE needs an even head_dim, got {head_dim}")
        if a["angular"] == "additive" and self.width % 2:
            raise ValueError(f"sinusoidal positions need an even width, got {self.width}")
        self.restores = a["zeroth"] == "all" or (a["zeroth"] == "first" and self.layer == 0)
        self.value, self.project = (nn.Linear(self.width, self.width, bias=False) for _ in "vo")
        if a["angular"] != "none":
            self.query, self.key = (nn.Linear(self.width, self.width, bias=False) for _ in "qk")
        if a["radial"] != "none":
            size = n_head if a["logits"] == "linear" else self.width
            self.logit = nn.Linear(self.width, size, bias=False)
            if a["logits"] == "deviation":
                self.mu = nn.Parameter(torch.zeros(n_head, head_dim))
                self.tau = nn.Parameter(torch.zeros(n_head))
                self.undecayed = ("mu",)
        if a["radial"] == "zero_sum" and a["gated"]:
            self.gates = nn.Linear(self.width, (2 + self.restores) * n_head, bias=False)

    @classmethod
    def checked(cls, args: Mapping[str, Any]) -> dict[str, Any]:
        """Return all arguments, as in :meth:`Mixer.checked`."""
        checked = super().checked(args)
        for argument, choices in CHOICES.items():
            value = checked[argument]
            if type(value) is not type(choices[0]) or value not in choices:
                raise ValueError(
                    f"{argument} of zeros must be one of {', '.join(map(str, choices))}, "
                    f"got {value!r}"
                )
        check_positive(f"rope_base of {cls.name}", checked["rope_base"])
        for argument, (other, without) in IDLE.items():
            given = checked[argument] != cls.arguments[argument]
            if given and checked[other] in without:
                raise ValueError(
                    f"zeros with {other} {checked[other]} has no use for {argument}; leave it"
                )
        return checked

    def explicit(self, x: Tensor) -> Tensor:
        """Compute :meth:`forward` from the definition of r, in O(L^2) time."""
        parts = self._parts(x, self.new_cache())
        with full_precision(x):
            mixed = forms.explicit(*parts, self.args["causal"])
        return self._finished(mixed, x, 0)

    def _mix(self, x: Tensor, cache: RecurrentState, chunk: int | None) -> Tensor:
        if not self.args["causal"]:
            if chunk is None:
                return self.explicit(x)
            parts = self._parts(x, cache)
            with full_precision(x):
                mixed = forms.everywhere(*parts)
            return self._finished(mixed, x, 0)
        q, k, v, s, radial = self._parts(x, cache)
        known = cache.tensors
        with full_precision(x):
            if cache.length:
                state = forms.ScanState(known["log_e"], known["p"], known["bases"], cache.length)
            else:
                state = forms.ScanState.empty(k, v)
            if chunk is None:
                mixed, state = forms.recurrent(q, k, v, s, radial, state)
            else:
                mixed, state = _chunked(q, k, v, s, radial, state, chunk)
        kept = {"log_e": state.log_e, "p": state.p, "bases": state.bases}
        cache.tensors = {**cache.tensors, **{name: kept[name].clone() for name in kept}}
        return self._finished(mixed, x, cache.length)

    def _parts(self, x: Tensor, cache: RecurrentState) -> Parts:
        """Return q, k, v, s and the radial coefficients, as the three forms take them."""
        count = self._seen(x, cache.length)
        v = self._split(self.value(x))
        q, k = self._angular(x, v, cache.length)
        s = self._logits(x, v, count, cache)
        return q, k, v, s, self._radial(x, v, count)

    def _seen(self, x: Tensor, first: int) -> Tensor:
        """Return the number of positions that each position sees, [L]; ``first`` came before x."""
        if not self.args["causal"]:
            return torch.full((x.shape[1],), x.shape[1], device=x.device)
        return torch.arange(x.shape[1], device=x.device) + (first + 1)

    def _angular(self, x: Tensor, v: Tensor, first: int) -> tuple[Tensor, Tensor]:
        """Return q and k whose product is the cosine, [B, H, L, D]."""
        how = self.args["angular"]
        if how == "none":
            return torch.ones_like(v[..., :1]), torch.ones_like(v[..., :1])
        if how == "additive":
            x = x + sinusoidal(x.shape[1], self.width, first=first).to(x)
        q, k = (unit(self._split(layer(x))) for layer in (self.query, self.key))
        if how == "rope":
            positions = torch.arange(first, first + x.shape[1], device=x.device)
            q, k = (rope(z, positions, self.args["rope_base"]) for z in (q, k))
        return q, k

    def _logits(self, x: Tensor, v: Tensor, count: Tensor, cache: RecurrentState) -> Tensor:
        """Return s, [B, H, L], and keep the running sum of u in the cache."""
        how, d = self.args["logits"], self.head_dim
        if self.args["radial"] == "none":
            return torch.zeros_like(v[..., 0])
        u = self._split(self.logit(x))
        if how == "linear":
            return u[..., 0]
        if how == "quadratic":
            return u.square().sum(dim=-1) / d
        if how == "averaging":
            return u.mean(dim=-1)
        if self.args["causal"]:
            total = u.cumsum(dim=-2) + cache.tensors.get("u", torch.zeros_like(u[..., :1, :]))
        else:
            total = u.sum(dim=-2, keepdim=True)
        # A view would hold the sums at all positions.
        cache.tensors = {**cache.tensors, "u": total[..., -1:, :].clone()}
        seen = count[:, None].to(u.dtype)
        if how == "distance":
            return (u - total / seen).norm(dim=-1) / math.sqrt(d)
        # e^tau / (e^tau + i) without e^tau, which overflows.
        prior = (self.tau.to(u.dtype)[:, None, None] - seen.log()).sigmoid()
        average = torch.lerp(total / seen, self.mu.to(u.dtype)[:, None], prior)
        return -(u * average).sum(dim=-1) / math.sqrt(d)

    def _radial(self, x: Tensor, v: Tensor, count: Tensor) -> Tensor:
        """Return the coefficients of softmax, deviation and 1 in r, [B, H, L, 3]."""
        share = (1 / count.to(v.dtype)).expand(v.shape[:-1])
        one, zero = torch.ones_like(share), torch.zeros_like(share)
        if self.args["radial"] == "none":
            radial = torch.stack([zero, zero, share], dim=-1)
        elif self.args["radial"] == "softmax":
            radial = torch.stack([one, zero, zero], dim=-1)
        else:
            first, higher, zeroth = one, one, one if self.restores else zero
            if self.args["gated"]:
                gates = self._split(self.gates(x))
                first, higher = gates[..., :2].sigmoid().unbind(dim=-1)
                zeroth = gates[..., 2].tanh() if self.restores else zero
            radial = torch.stack(
                [higher, (first - higher) * share, (zeroth - higher) * share], dim=-1
            )
        return radial * share.sqrt()[..., None] if self.args["decay"] else radial

    def _finished(self, mixed: Tensor, x: Tensor, first: int) -> Tensor:
        """Return the layer's output from the mixed heads, [B, H, L, D]."""
        if self.args["norm"]:
            if self.args["rescale"]:
                mixed = self._seen(x, first)[:, None].to(mixed.dtype) * mixed
            mixed = functional.layer_norm(mixed, mixed.shape[-1:])
        return self.project(self._merge(mixed, x))


def _chunked(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    s: Tensor,
    radial: Tensor,
    state: forms.ScanState,
    chunk: int,
) -> tuple[Tensor, forms.ScanState]:
    """Compute :func:`forms.chunked` by the first of Triton, fla and PyTorch that serves."""
    if _zeros_triton.refusal(k, v) is None:
        return _zeros_triton.chunked(q, k, v, s, radial, state, chunk)
    if fla.head_refusal(k, v) is None:
        return forms.three_sums(q, k, v, s, radial, state, fla.chunked)
    return forms.chunked(q, k, v, s, radial, state, chunk)


MIXER = ZeroS
