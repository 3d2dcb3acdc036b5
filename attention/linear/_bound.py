"""The lower bound of the forget gates of HGRN, which rises with the depth."""

from __future__ import annotations

from typing import Any

from attention.linear.mixer import Mixer


def check_lower_bound(name: str, bound: Any) -> None:
    """Refuse a bound that is neither None nor a number in [0, 1), with a ValueError."""
    number = isinstance(bound, int | float) and not isinstance(bound, bool)
    if bound is not None and not (number and 0 <= bound < 1):
        raise ValueError(f"lower_bound of {name} must be in [0, 1), got {bound!r}")


def lower_bound_of(mixer: Mixer) -> float:
    """Return the bound that a mixer was given, or layer / n_layer.

    The papers learn bounds that rise with depth, which start there.
    """
    bound = mixer.args["lower_bound"]
    return mixer.layer / mixer.n_layer if bound is None else bound
