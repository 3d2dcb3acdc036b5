"""Linear attention with a positive feature map (Katharopoulos et al. 2020)."""

from __future__ import annotations

from typing import ClassVar

from torch import Tensor
from torch.nn import functional

from attention.linear._kernel import FeatureAttention


class LinearAttention(FeatureAttention):
    """o_t = phi(q_t) S_t / (phi(q_t) . z_t), S_t = sum phi(k_i)^T v_i, z_t = sum phi(k_i).

    phi(x) = 1 + elu(x) is positive, so the running normaliser is too. phi(q) and phi(k) are
    rotated in S, not in z (Su et al. 2021, Eq. 19): without that the sums know no order.

    Arguments:
        rope_base: Base of the rotary positions; None for none, as published, where positions are
            added to the input.
    """

    name = "linear"
    source = "Katharopoulos et al. 2020, Eqs. 7 and 12"
    about = "Softmax's exponential replaced by a product of positive features, 1 + elu."
    kept = "H (D^2 + D)"
    deviations = "rotary positions unless rope_base is None, as in the paper"
    arguments: ClassVar = {"rope_base": 10_000.0}
    rotates_features = True

    def _features(self, q: Tensor, k: Tensor) -> tuple[Tensor, Tensor]:
        return features(q), features(k)


def features(x: Tensor) -> Tensor:
    """Return 1 + elu(x) without its rounding: e^x of a very negative number is not 0."""
    return functional.relu(x) + x.clamp_max(0).exp()


MIXER = LinearAttention
