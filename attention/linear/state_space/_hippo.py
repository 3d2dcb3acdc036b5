"""HiPPO-LegS (Gu et al. 2020), the matrix from which the states of S4 and DSS start."""

from __future__ import annotations

import torch
from torch import Tensor


def legendre(state: int) -> tuple[Tensor, Tensor, Tensor]:
    """Return HiPPO-LegS as a normal matrix minus one of rank 1 (Gu et al. 2021, Theorem 1).

    A = V (diag(factors) - low_rank low_rank^*) V^* and B = V enter. Of the conjugate pairs of
    eigenvalues the ones with a positive imaginary part are returned.

    Args:
        state: N, an even number.

    Returns:
        Factors, low_rank and enter, complex128, [N / 2] each, by rising imaginary part.
    """
    place = torch.arange(state, dtype=torch.float64)
    enter = (2 * place + 1).sqrt()
    low_rank = (place + 0.5).sqrt()
    matrix = -(torch.outer(enter, enter).tril(-1) + torch.diag(place + 1))
    # The normal part is -1/2 plus a skew matrix, whose product with -i is Hermitian.
    skew = matrix + torch.outer(low_rank, low_rank) + 0.5 * torch.eye(state, dtype=torch.float64)
    imaginary, vectors = torch.linalg.eigh(-1j * skew)
    half = slice(state // 2, None)
    turned = vectors.mH @ torch.stack([low_rank, enter], dim=-1).to(vectors.dtype)
    factors = torch.complex(torch.full_like(imaginary, -0.5), imaginary)
    return factors[half], turned[half, 0], turned[half, 1]
