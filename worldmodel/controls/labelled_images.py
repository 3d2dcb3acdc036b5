"""The labelled rows that a force head is trained on, once and in order, for other regressions.

Heads see random images of labelled sequences (:mod:`worldmodel.data.symmetry`) and are asked in
the second half of each, which of a sequence played backwards is the first: two forces where the
sequence itself has one.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import DataLoader

from attention.scalars import check_size
from worldmodel.data.orbit_sequences import first_answer
from worldmodel.data.orbits import OrbitData
from worldmodel.data.sequences import Sequences
from worldmodel.data.symmetry import N_SYMMETRIES, ROTATIONS, images

BACKWARD = tuple(x for x in range(N_SYMMETRIES) if x not in ROTATIONS)
"""The symmetries that reverse the order of time; rotations leave it."""


class LabelledImages(Sequences):
    """Images of sequences, one sequence after the other, with forces in their second half.

    Forward and reversed images take turns, and each kind comes in an order of its own for every
    sequence: two images of one hold all of its forces.

    Args:
        whole: Labelled sequences with the forces of both halves.
        n_bins: Position bins of the protocol.
        n_images: Images of each sequence, 1 to 8.
        seed: Draws the order of images.
    """

    def __init__(self, whole: Sequences, n_bins: int, n_images: int, seed: int) -> None:
        check_size("n_images", n_images)
        if n_images > N_SYMMETRIES:
            raise ValueError(f"n_images must be at most {N_SYMMETRIES}, got {n_images}")
        super().__init__(len(whole) * n_images)
        self.whole, self.n_bins, self.n_images = whole, n_bins, n_images
        self.seed = seed

    def __getitems__(self, indices: list[int]) -> dict[str, Tensor]:
        """Return the collated batch of some indices."""
        sequences, places = np.divmod(indices, self.n_images)
        choice = [self._order(s)[p] for s, p in zip(sequences.tolist(), places, strict=True)]
        batch = self.whole.__getitems__(sequences.tolist())
        batch = images(batch, torch.from_numpy(np.array(choice)), self.n_bins)
        batch["force"][:, : first_answer(batch["force"])] = torch.nan
        return batch

    def _order(self, sequence: int) -> np.ndarray:
        """Return the symmetries of a sequence in their order, [8]."""
        rng = np.random.default_rng((self.seed, sequence))
        return np.stack([rng.permutation(ROTATIONS), rng.permutation(BACKWARD)], axis=1).ravel()


def labels_as_trained(data: OrbitData, n_images: int = N_SYMMETRIES) -> DataLoader:
    """Return the labelled rows that force heads of this data train on, in order.

    Args:
        data: Labelled sequences; without ``images`` they are taken as they are.
        n_images: Images of each sequence: two hold all of its forces, eight all of its turns.

    Raises:
        ValueError: Training is unlimited (``n_train`` is null), or ``n_images`` impossible.
    """
    plain = data.labelled_dataloader()  # refuses what is unlimited
    if not data.hparams["images"]:
        return plain
    whole, n_bins = data.training_sequences(), data.protocol.n_bins
    return DataLoader(
        LabelledImages(whole, n_bins, n_images, data.train_seed),
        batch_size=data.hparams["eval_batch_size"],
        collate_fn=plain.collate_fn,
    )
