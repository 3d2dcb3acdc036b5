"""Muon (Jordan et al. 2024) with the matrices of one shape orthogonalised together.

``torch.optim.Muon`` is its specification and keeps its state and arguments. It takes one matrix at
a time, in bfloat16; on a CPU without bfloat16 units that is emulated, and was a third of the time
of a training step of small models. Here a CPU works in float32, a GPU in bfloat16 as there.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.optim import Muon


class BatchedMuon(Muon):
    """Muon whose update is rescaled to AdamW's size (``adjust_lr_fn="match_rms_adamw"``).

    Args:
        params: Matrices.
        lr: Learning rate.
        weight_decay: Decoupled weight decay.
    """

    def __init__(self, params: list[torch.nn.Parameter], lr: float, weight_decay: float) -> None:
        super().__init__(params, lr=lr, weight_decay=weight_decay, adjust_lr_fn="match_rms_adamw")

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Evaluate the closure, if any, then update the matrices that have a gradient."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            alike: dict[tuple[Any, ...], list[tuple[Tensor, Tensor]]] = {}
            for matrix in group["params"]:
                if matrix.grad is None:
                    continue
                state, gradient = self.state[matrix], matrix.grad
                if "momentum_buffer" not in state:
                    state["momentum_buffer"] = torch.zeros_like(gradient)
                state["momentum_buffer"].lerp_(gradient, 1 - group["momentum"])
                update = gradient.lerp(state["momentum_buffer"], group["momentum"])  # Nesterov
                key = (matrix.shape, matrix.device, matrix.dtype)
                alike.setdefault(key, []).append((matrix, update))
            for (shape, *_), members in alike.items():
                matrices, updates = zip(*members, strict=True)
                steps = orthogonalised(
                    torch.stack(updates), group["ns_coefficients"], group["ns_steps"], group["eps"]
                )
                size = 0.2 * math.sqrt(max(shape))
                for matrix, direction in zip(matrices, steps, strict=True):
                    matrix.mul_(1 - group["lr"] * group["weight_decay"])
                    matrix.add_(direction, alpha=-group["lr"] * size)
        return loss


def orthogonalised(
    matrices: Tensor, coefficients: tuple[float, float, float], steps: int, eps: float
) -> Tensor:
    """Return U V^T of each matrix U S V^T, nearly, by the quintic Newton-Schulz iteration.

    Args:
        matrices: [n, rows, columns].
        coefficients: a, b and c of X <- a X + b (X X^T) X + c (X X^T)^2 X.
        steps: Iterations; five bring every singular value to between about 0.7 and 1.2.
        eps: Smallest norm that is divided by.

    Returns:
        The same shape and dtype.
    """
    a, b, c = coefficients
    tall = matrices.shape[-2] > matrices.shape[-1]
    x = matrices.to(torch.bfloat16 if matrices.is_cuda else torch.float32)
    x = x.mT if tall else x
    x = x / x.norm(dim=(-2, -1), keepdim=True).clamp(min=eps)
    for _ in range(steps):
        gram = x @ x.mT
        x = torch.baddbmm(x, torch.baddbmm(gram, gram, gram, beta=b, alpha=c), x, beta=a)
    return (x.mT if tall else x).to(matrices.dtype)
