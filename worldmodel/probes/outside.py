"""A model from outside under test, in the place of a checkpoint."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from orbits import protocols
from worldmodel import outside
from worldmodel.outside import Outside, Source
from worldmodel.probes.checkpoint import OUTSIDE, Checkpoint
from worldmodel.world_model import can


@dataclass(frozen=True)
class OutsideModel(Checkpoint):
    """A model from outside; its arm is ``outside``.

    Attributes:
        source: File and class of the model.
    """

    source: Source = field(kw_only=True)

    @classmethod
    def of(
        cls, source: Source, law: str | None = None, named: tuple[str, int] | None = None
    ) -> OutsideModel:
        """Return a model that the user named."""
        model = outside.tried(source)
        world = dataclasses.replace(model.trained_on, law=law or model.trained_on.law)
        world.systems(0, "test", range(300))  # refuses a law that does not bind these orbits
        seed = getattr(model, "seed", 0) if named is None else named[1]
        return cls(
            path=source.path,
            model=model,  # type: ignore[arg-type]
            seed=int(seed),
            steps=None,
            law=world.law,
            named=named,
            labels=getattr(model, "labels", None) if can(model, "force") else None,
            source=source,
        )

    @property
    def inputs(self) -> dict[str, Path]:
        """The files that its answers depend on, by role."""
        further = {f"file_{n}": path for n, path in enumerate(outside.files(self.source))}
        return {"checkpoint": self.path, **further}

    @cached_property
    def trained_on(self) -> protocols.Protocol:
        """The world whose sequences it reads."""
        return self._outside.trained_on

    @property
    def own_name(self) -> str:
        """Name of the model."""
        return self._outside.own_name

    @property
    def arm(self) -> str:
        """The arm of its results."""
        return OUTSIDE

    @property
    def sizes(self) -> Mapping[str, Any]:
        """Sizes that tell models of one name apart."""
        world = self.trained_on
        return {"n_points": world.n_points, "n_bins": world.n_bins}

    @property
    def arguments(self) -> dict[str, Any]:
        """Arguments that load the model again, beside the path, as plain data."""
        return {**super().arguments, "model": self.source.model}

    @property
    def leaks(self) -> str | None:
        """None: the training of a model from outside is not known."""
        return None

    def untrained(self, seed: int) -> Any:
        """Return the model with random weights, or None if it does not know how."""
        return self._outside.untrained(self.control_seed(seed))

    @property
    def _outside(self) -> Outside:
        return self.model  # type: ignore[return-value]


def load(
    path: Path, law: str | None, named: tuple[str, int] | None, model: str | None = None
) -> Checkpoint:
    """Return the model under test: a checkpoint, or with ``model`` a model from outside."""
    if model is None:
        return Checkpoint.load(path, law, named)
    return OutsideModel.of(Source(path, model), law, named)
