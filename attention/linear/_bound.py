"""The lower bound of the forget gates of HGRN, which rises with the depth."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from attention.linear.mixer import Mixer


class BoundedBelow(Mixer):
    """A mixer whose forget gates are at least ``lower_bound``, or layer / n_layer with None.

    The papers learn bounds that rise with depth, which start there. As an encoder,
    ``causal=False``, it adds the sums of both directions, with the same gates; each has the
    position itself.
    """

    def __init__(self, n_head: int, head_dim: int, **args: Any) -> None:
        super().__init__(n_head, head_dim, **args)
        bound = self.args["lower_bound"]
        self.lower_bound = self.layer / self.n_layer if bound is None else bound

    @classmethod
    def checked(cls, args: Mapping[str, Any]) -> dict[str, Any]:
        """Return all arguments, as in :meth:`Mixer.checked`; the bound is None or in [0, 1)."""
        values = super().checked(args)
        bound = values["lower_bound"]
        number = isinstance(bound, int | float) and not isinstance(bound, bool)
        if bound is not None and not (number and 0 <= bound < 1):
            raise ValueError(f"lower_bound of {cls.name} must be in [0, 1), got {bound!r}")
        return values
