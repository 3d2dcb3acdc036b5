"""The learner of mixtures of worlds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from benchmarks.learners import Learner
from worldmodel.data.mixture import MixtureData
from worldmodel.models.mixture import MixtureModel


def mixture_model(data: Mapping[str, Any], **model: Any) -> MixtureModel:
    """Return the world model of a mixture's data: it is told a law where the data tells it."""
    return MixtureModel(exponents=list(data["exponents"]), told=data["told"], **model)


LEARNER = Learner(mixture_model, MixtureData)
