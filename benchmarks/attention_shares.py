"""Where the rows of attention put their weight: what studies of attention sinks report."""

from __future__ import annotations

from torch import Tensor

from attention import metrics


def shares_of(weights: Tensor) -> dict[str, float]:
    """Return the means over heads and rows of attention weights, [..., H, L, L].

    Returns:
        In %: ``sink``, the weight on the first key; ``density``, that on the others; ``missing``,
        what they lack to 100; ``zeros``, the share of visible keys whose weight is exactly 0. In
        nats: ``entropy``.
    """
    sink, density = (
        100 * float(of(weights).mean()) for of in (metrics.sink_ratio, metrics.density)
    )
    return {
        "sink": sink,
        "density": density,
        "missing": 100 - sink - density,
        "zeros": 100 * float(metrics.zero_share(weights).mean()),
        "entropy": float(metrics.row_entropy(weights).mean()),
    }
