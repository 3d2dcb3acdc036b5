"""The models that each probe takes: classes of this package, and models from outside by methods.

All of it is known without torch: of a model from outside by its methods, of an exported model by
its settings, and of a probe by its file (:func:`worldmodel.probes.takes`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from worldmodel.world_model import can

ANSWERS = {"NextTokenModel": "no next row", "ForceModel": "no force"}
"""The answer that a class alone gives, as a refusal says that it is missing."""


class Takes(NamedTuple):
    """The models that a probe takes.

    Attributes:
        asks: Methods of which a model from outside needs one; none where it cannot be probed.
        of: Classes of models of this package; empty for every model of orbits.
        inside: What a probe that asks for no method does with a model of this package.
    """

    asks: Sequence[str] = ()
    of: Sequence[str] = ()
    inside: str = "it needs a GPT of this package"

    def why_not_outside(self, model: object) -> str | None:
        """Return why a model from outside cannot be probed, and the fix; None if it can."""
        if not self.asks:
            return f"{self.inside}; take a checkpoint"
        if not any(can(model, each) for each in self.asks):
            return f"the model has no {' and no '.join(self.asks)}; add the method"
        return None

    def why_not_class(self, kind: str) -> str | None:
        """Return why a model of a class of this package cannot be probed; None if it can."""
        if not self.of or kind in self.of:
            return None
        lacks = " and ".join(ANSWERS[each] for each in self.of)
        return f"a {kind} predicts {lacks}; take a {' or a '.join(self.of)}"
