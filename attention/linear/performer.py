"""Performer (Choromanski et al. 2020, arXiv:2009.14794)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import torch
from torch import Tensor

from attention.linear._kernel import FeatureAttention

STABILISER = 1e-6
"""Constant added to every feature, as in the authors' code."""
LARGEST = 60.0
"""Largest exponent of keys; float32 holds sums of many e^60."""


class Performer(FeatureAttention):
    """phi(x)_n = exp(w_n . x - |x|^2 / 2) / sqrt(N): FAVOR+, x = q / d^(1/4) or k / d^(1/4).

    phi(q) . phi(k) is an unbiased estimate of exp(q . k / sqrt(d)) (Lemma 1). The directions w are
    drawn once: normally distributed, orthogonal in blocks of d (Sect. 2.4).

    Factors of all features of a query, or of all keys, cancel. From a query's exponents their
    largest is taken off. Those of keys are at most max |w_n|^2 / 2, and where that is more than
    float32 holds (heads of 100 channels and more) all are lowered by one constant. The authors
    lower them by the largest of the sequence, which would look ahead.

    Arguments:
        state: N, the number of features.
        rope_base: Base of the rotary positions; None for none.
    """

    name = "performer"
    source = "Choromanski et al. 2020 (arXiv:2009.14794), Lemma 1, Sect. 2.4"
    about = "Linear attention whose random positive features estimate softmax's exponential."
    kept = "H (N D + N)"
    arguments: ClassVar = {"state": 64, "rope_base": 10_000.0}
    deviations = (
        "directions are not drawn again in training; exponents of keys are not lowered by the "
        "largest of the sequence, which would look ahead; rotary positions unless rope_base is "
        "None, as in the paper"
    )
    directions: Tensor

    def __init__(self, n_head: int, head_dim: int, **args: Any) -> None:
        super().__init__(n_head, head_dim, **args)
        self.register_buffer("directions", orthogonal_normal(self.args["state"], head_dim))

    @classmethod
    def channels(cls, head_dim: int, args: Mapping[str, Any]) -> tuple[int, int]:
        """Return how many channels keys and values have in a head."""
        return args["state"], head_dim

    def _features(self, q: Tensor, k: Tensor) -> tuple[Tensor, Tensor]:
        w = self.directions.to(q.dtype)
        q, k = (x * self.head_dim**-0.25 for x in (q, k))
        # Not |q|^2 / 2: it is the same for all features of a query.
        of_query = q @ w.mT
        of_key = k @ w.mT - k.square().sum(-1, keepdim=True) / 2
        of_query = of_query - of_query.amax(-1, keepdim=True)
        of_key = of_key - (w.square().sum(-1).max() / 2 - LARGEST).clamp_min(0.0)
        scale = len(w) ** -0.5
        return scale * (of_query.exp() + STABILISER), scale * (of_key.exp() + STABILISER)


def orthogonal_normal(count: int, dim: int) -> Tensor:
    """Return normally distributed vectors, [count, dim], orthogonal in blocks of ``dim``."""
    q, r = torch.linalg.qr(torch.randn(-(-count // dim), dim, dim))
    # Householder's signs follow the first entries, so that the directions would not be symmetric.
    directions = (q * r.diagonal(dim1=-2, dim2=-1).sign()[:, None]).mT.flatten(0, 1)[:count]
    return torch.randn(count, dim).norm(dim=-1, keepdim=True) * directions


MIXER = Performer
