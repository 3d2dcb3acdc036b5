"""The share of the difference between the laws of prompts that continuations follow."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from orbits import laws


def followed(found: Mapping[str, float], truth: Mapping[str, float]) -> float | None:
    """Return the slope of exponents over the prompts' own, over that of the truth in bins.

    0 imposes one law on every prompt, 1 goes on by each prompt's.

    Returns:
        None with fewer than two prompts of pure powers of the distance, between which there is no
        slope. Prompts of other laws do not count.
    """
    own = {law: exponents["r"] for law in found if (exponents := laws.get(law).exponents)}
    asked = [law for law in own if law in truth]
    if len(asked) < 2:
        return None
    places = np.array([own[law] for law in asked])
    places -= places.mean()
    rise, whole = (float(places @ [of[law] for law in asked]) for of in (found, truth))
    return rise / whole
