"""HedgeHog (Zhang et al. 2024, arXiv:2402.04347)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from attention.linear._kernel import FeatureAttention


class HedgeHog(FeatureAttention):
    """phi(x) = softmax([W x + b, -(W x + b)]), learned by head, for queries and keys apart.

    W starts as the identity and b at 0. The softmax over the features keeps the exponentials of
    the paper's phi(x) = [exp(W x + b), exp(-W x - b)] in range, as in the authors' code. Of a
    query it cancels; a key it weighs by the inverse of its features' sum.

    Arguments:
        rope_base: Base of the rotary positions; None for none.
    """

    name = "hedgehog"
    source = "Zhang et al. 2024 (arXiv:2402.04347), Sect. 4"
    about = "Linear attention whose features are exponentials of learned maps and their negatives."
    kept = "H (2 D^2 + 2 D)"
    arguments: ClassVar = {"rope_base": 10_000.0}
    deviations = (
        "features are trained with the model, not distilled from a softmax attention; softmax "
        "over the features, as in the authors' code; rotary positions unless rope_base is None"
    )
    undecayed = ("offsets",)

    def __init__(self, n_head: int, head_dim: int, **args: Any) -> None:
        super().__init__(n_head, head_dim, **args)
        # Plain parameters, so that a model's initialisation of linear layers leaves them.
        identity = torch.eye(head_dim).repeat(2, n_head, 1, 1)
        self.maps = nn.Parameter(identity)
        self.offsets = nn.Parameter(torch.zeros(2, n_head, 1, head_dim))

    @classmethod
    def channels(cls, head_dim: int, args: Mapping[str, Any]) -> tuple[int, int]:
        """Return how many channels keys and values have in a head."""
        return 2 * head_dim, head_dim

    def _features(self, q: Tensor, k: Tensor) -> tuple[Tensor, Tensor]:
        weights, offsets = self.maps.to(q.dtype), self.offsets.to(q.dtype)
        q, k = q @ weights[0].mT + offsets[0], k @ weights[1].mT + offsets[1]
        return torch.cat([q, -q], -1).softmax(-1), torch.cat([k, -k], -1).softmax(-1)


MIXER = HedgeHog
