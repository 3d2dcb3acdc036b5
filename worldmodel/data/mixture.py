"""Sequences of a mixture of worlds, for Lightning."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from orbits import protocols
from orbits.mixture import Mixture
from worldmodel.data.sequences import SequenceData, Sequences, as_tensors


def tell(coordinates: np.ndarray, exponents: np.ndarray | float) -> None:
    """Write each sequence's exponent into the place that its time-step row leaves free.

    Args:
        coordinates: [N, T, 2], changed in place.
        exponents: Exponents of the distance, [N] or one for all.
    """
    coordinates[:, 0, 0] = exponents


class MixtureSequences(Sequences):
    """The sequences of one split of a mixture.

    Args:
        mixture: The worlds.
        split: The split.
        seed: Seed of the data.
        length: Number of sequences.
        told: Whether each sequence tells its exponent, see :func:`tell`.
        kept: Whether all are made at once and kept, as an order over few of them needs, instead of
            made where they are asked for.
    """

    def __init__(
        self,
        mixture: Mixture,
        split: str,
        seed: int,
        length: int,
        told: bool,
        kept: bool = False,
    ) -> None:
        super().__init__(length)
        self.mixture, self.split, self.seed, self.told = mixture, split, seed, told
        self.kept = kept

    def __getitems__(self, indices: list[int]) -> dict[str, torch.Tensor]:
        """Return the collated batch of some indices: tokens and bodies int64, the rest float32."""
        if self.kept:
            batch = {name: values[indices] for name, values in self._all.items()}
        else:
            batch = self.mixture.streamed(self.seed, self.split, indices)
        if self.told:
            tell(batch["coordinates"], batch["exponent"])
        return as_tensors(batch)

    @functools.cached_property
    def _all(self) -> dict[str, npt.NDArray]:
        return self.mixture.batch(self.seed, self.split, np.arange(len(self)))


class MixtureData(SequenceData):
    """Orbits of a mixture of worlds, for pre-training.

    Args:
        protocol: A name of ``orbits.protocols.names()``.
        protocol_args: Overrides of the protocol.
        exponents: Exponents of the distance in each law, in equal parts.
        told: Whether each sequence tells its exponent, see :func:`tell`.
        further: Names of laws that are no powers, see :class:`orbits.mixture.Mixture`.
        n_train: Number of different training sequences, which are kept in memory; None streams new
            ones at every step.
        **kwargs: As for :class:`worldmodel.data.sequences.SequenceData`.

    Raises:
        ValueError: A sequence should tell an exponent that it has not.
    """

    def __init__(
        self,
        exponents: Sequence[float],
        protocol: str = "neutral_step",
        protocol_args: dict[str, Any] | None = None,
        told: bool = False,
        further: Sequence[str] = (),
        n_train: int | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        if told and further:
            raise ValueError(f"law {further[0]!r} has no exponent to tell; set told=False")
        of = protocols.get(protocol, protocol_args)
        self.mixture = Mixture(of, tuple(exponents), tuple(further))
        self.n_train = n_train

    def sequences(self, split: str, length: int) -> MixtureSequences:
        """Return the first ``length`` sequences of a split."""
        seed = self.train_seed if split == "train" else self.hparams["seed"]
        kept = split == "train" and self.n_train is not None
        return MixtureSequences(self.mixture, split, seed, length, self.hparams["told"], kept)
