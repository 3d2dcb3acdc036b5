"""The learner of orbits: a world model, or a force head where the data is labelled."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from benchmarks.learners import Learner
from worldmodel.data.orbits import OrbitData
from worldmodel.models.base import GPTModel
from worldmodel.models.orbit import ForceModel, NextTokenModel


def orbit_model(data: Mapping[str, Any], **model: Any) -> GPTModel:
    """Return a world model for pre-training data, a force head for any other."""
    if data["population"] == "pretrain":
        return NextTokenModel(**model)
    return ForceModel(**model)


LEARNER = Learner(orbit_model, OrbitData)
