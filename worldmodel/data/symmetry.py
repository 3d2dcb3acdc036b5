"""The eight symmetries of the square box, as images of observed two-body orbits.

A quarter turn maps position bins to position bins, so a turned sequence is exactly one that could
have been observed. A reflection would make the planet go round clockwise, which none does; played
backwards in time it is again an orbit like the others. Training on images of labelled sequences
makes eight of each. It tells a model that space has no preferred direction and time none either,
and nothing of how forces depend on masses and distance.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

N_SYMMETRIES = 8
ROTATIONS = (0, 3, 5, 6)
"""Symmetries with an even number of reflections and exchanges."""


def images(batch: Mapping[str, Tensor], choice: Tensor, n_bins: int) -> dict[str, Tensor]:
    """Return a batch with every sequence replaced by one of its images.

    Args:
        batch: B sequences of :class:`worldmodel.data.orbit_sequences.OrbitSequences`, of one planet
            and its star in turn, in a box with the origin in its middle, T - 1 points (an even
            number).
        choice: The symmetry of each sequence, [B], 0 (none) to 7: bit 0 reflects x, bit 1
            reflects y, bit 2 then exchanges them; an odd number of these plays time backwards.
        n_bins: Position bins of the protocol.
    """
    tokens = batch["tokens"]
    if tokens.shape[1] % 2 == 0:
        raise ValueError(f"images need an even number of points, got {tokens.shape[1] - 1}")
    bits = [(choice >> k & 1).bool() for k in range(3)]
    backwards = ~torch.isin(choice, choice.new_tensor(ROTATIONS))

    def played(values: Tensor, sign: int = 1) -> Tensor:
        """Reverse the order of steps, but not of the bodies in a step, where time runs back."""
        steps = values[:, 1:].unflatten(1, (-1, 2)).flip(1).flatten(1, 2)
        reversed_ = torch.cat([values[:, :1], sign * steps], dim=1)
        return torch.where(backwards.reshape(-1, 1, 1), reversed_, values)

    answer = dict(batch)
    moved = torch.cat([tokens[:, :1], _moved(tokens[:, 1:], bits, n_bins - 1)], dim=1)
    answer["tokens"] = played(moved)
    for name in ("coordinates", "force"):
        if name in batch:
            answer[name] = played(_moved(batch[name], bits, 0))
    if "state" in batch:
        position, velocity, masses = batch["state"].split(2, dim=-1)
        answer["state"] = torch.cat(
            [played(_moved(position, bits, 0)), played(_moved(velocity, bits, 0), -1), masses],
            dim=-1,
        )
    return answer


def _moved(pairs: Tensor, bits: list[Tensor], ends: int) -> Tensor:
    """Turn and reflect pairs [B, T, 2]; a reflection maps a value v to ends - v."""
    x, y, exchange = (bit[:, None] for bit in bits)
    first = torch.where(x, ends - pairs[..., 0], pairs[..., 0])
    second = torch.where(y, ends - pairs[..., 1], pairs[..., 1])
    return torch.stack(
        [torch.where(exchange, second, first), torch.where(exchange, first, second)], dim=-1
    )
