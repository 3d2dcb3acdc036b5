"""Sequences of orbits by index: made from (protocol, seed, index), or read from files."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import torch

from orbits import labels, protocols
from orbits.dataset.read import OrbitDataset
from worldmodel.data import files
from worldmodel.data.sequences import Sequences, as_tensors, joined


class OrbitSequences(Sequences):
    """The sequences of one split; a batch of indices is made in one vectorised call.

    The ``force`` population has a force at the planet's rows of the second half, once there is
    something to infer it from, and NaN elsewhere.

    Args:
        protocol: Protocol of the sequences.
        population: ``pretrain`` or ``force``.
        split: The split.
        seed: Seed of the data.
        length: Number of sequences.
        fine_tuning: Give only the forces that fine-tuning may see, the few of held-out sequences
            included (:meth:`orbits.protocols.Protocol.label_mask`).
        whole: Give forces in the first half too, of which a reversed image makes its second.
        path: A dataset in files to read them from; None makes them.
    """

    def __init__(
        self,
        protocol: protocols.Protocol,
        population: str,
        split: str,
        seed: int,
        length: int,
        fine_tuning: bool = False,
        whole: bool = False,
        path: str | None = None,
    ) -> None:
        super().__init__(length)
        self.dataset = None if path is None else OrbitDataset(path, split)
        self.protocol, self.population, self.split = protocol, population, split
        self.seed, self.fine_tuning, self.whole = seed, fine_tuning, whole

    def arrays(self, indices: Sequence[int]) -> dict[str, npt.NDArray]:
        """Return the sequences of some indices with all that is known of them.

        Made, or read from files: then ``coordinates`` are the centres of the bins.
        """
        if self.dataset is not None:
            return files.batch(self.dataset, indices)
        return self.protocol.batch(self.seed, self.split, indices, self.population)

    def __getitems__(self, indices: list[int]) -> dict[str, torch.Tensor]:
        """Return the collated batch of some indices: tokens int64, the rest float32."""
        batch = self.arrays(indices)
        if self.population == "force":
            force = batch["force"]
            if self.fine_tuning:
                force[~self.protocol.label_mask(self.split, indices)] = np.nan
            if not (self.whole or (self.fine_tuning and self.split == "test")):
                force[:, : first_answer(force)] = np.nan
        return as_tensors(batch)


def first_answer(force: npt.NDArray | torch.Tensor) -> int:
    """Return the first row of [N, T, ...] at which a force may be predicted."""
    return labels.first_asked(force.shape[1])


class LeakedSequences(Sequences):
    """Training sequences, then held-out ones of which a few labels leaked into training."""

    def __init__(self, training: OrbitSequences, held_out: OrbitSequences) -> None:
        super().__init__(len(training) + len(held_out))
        self.training, self.held_out = training, held_out

    def __getitems__(self, indices: list[int]) -> dict[str, torch.Tensor]:
        """Return the collated batch of some indices, the training sequences first."""
        n = len(self.training)
        training = [index for index in indices if index < n]
        held_out = [index - n for index in indices if index >= n]
        return joined(
            part.__getitems__(numbers)
            for part, numbers in ((self.training, training), (self.held_out, held_out))
            if numbers
        )


class TrajectoryIndices(Sequences):
    """Indices without sequences, which are made on the device."""

    def __getitems__(self, indices: list[int]) -> dict[str, torch.Tensor]:
        """Return the batch of some indices, int64."""
        return {"sequence_id": torch.tensor(indices)}
