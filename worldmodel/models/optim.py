"""Muon on the block matrices, AdamW on the rest, as one optimiser, and their schedule.

One object, because Lightning's automatic optimisation (clipping, accumulation, step counting)
serves exactly one.

``torch.optim.Muon`` (Jordan et al. 2024) is the specification of :class:`BatchedMuon`, which keeps
its state and arguments. It takes one matrix at a time, in bfloat16; on a CPU without bfloat16 units
that is emulated, and was a third of the time of a training step of small models. Here the matrices
of one shape are orthogonalised together, on a CPU in float32, on a GPU in bfloat16 as there.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Literal, get_args

import torch
from torch import Tensor, nn
from torch.optim import AdamW, Muon, Optimizer
from torch.optim.lr_scheduler import LambdaLR

from attention.layer import Attention
from attention.linear import Mixer
from orbits.runs.choices import check_choice

OptimizerName = Literal["muon", "adamw"]
Parameters = list[nn.Parameter] | list[dict[str, Any]]


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


class MuonAdamW(Optimizer):
    """Run a Muon and an AdamW as one optimiser; their parameter groups are shared, not copied.

    Args:
        matrices: Two-dimensional weights of the blocks, for Muon.
        others: Everything else, for AdamW: parameters or groups of them.
        lr: Learning rate of both; Muon's update is rescaled to AdamW's size (``match_rms_adamw``).
        weight_decay: Decoupled weight decay, where a group has none of its own.
    """

    def __init__(
        self,
        matrices: list[nn.Parameter],
        others: Parameters,
        lr: float,
        weight_decay: float,
    ) -> None:
        muon = BatchedMuon(matrices, lr=lr, weight_decay=weight_decay)
        adamw = AdamW(others, lr=lr, weight_decay=weight_decay, betas=(0.9, 0.95))
        super().__init__([*muon.param_groups, *adamw.param_groups], defaults={"lr": lr})
        # Optimizer.__init__ copies nothing: these are the dictionaries of the two optimisers,
        # so a scheduler that changes lr here changes it there.
        self.parts = (muon, adamw)
        self.param_groups = [group for part in self.parts for group in part.param_groups]

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Evaluate the closure, if any, then step both."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for part in self.parts:
            part.step()
        return loss

    def state_dict(self) -> dict[str, Any]:
        """Return the states of both optimisers."""
        return {"parts": [part.state_dict() for part in self.parts]}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Restore both optimisers."""
        for part, state in zip(self.parts, state_dict["parts"], strict=True):
            part.load_state_dict(state)
        self.param_groups = [group for part in self.parts for group in part.param_groups]
        # Lightning moves optimizer.state to the device after loading.
        self.state = {k: v for part in self.parts for k, v in part.state.items()}  # type: ignore[assignment]


def check(name: str) -> None:
    """Refuse a name that is not an optimiser's."""
    check_choice("optimizer", name, get_args(OptimizerName))


def configure(
    module: nn.Module,
    name: OptimizerName,
    *,
    lr: float,
    weight_decay: float,
    warmup_steps: int,
    total_steps: int,
    min_lr_ratio: float = 0.0,
) -> tuple[Optimizer, LambdaLR]:
    """Return the optimiser and a linear warm-up followed by a cosine to the minimum.

    Args:
        module: Module that is trained; parameters that need no gradient are left out.
        name: ``muon`` or ``adamw``.
        lr: Largest learning rate.
        weight_decay: Decoupled weight decay. As in GPT-2's recipes (Karpathy, llm.c) gains, biases
            and a variant's learned numbers have none.
        warmup_steps: Steps of linear warm-up.
        total_steps: Step at which the learning rate reaches its minimum.
        min_lr_ratio: The minimum, as a share of ``lr``.
    """
    check(name)
    # Muon orthogonalises what maps hidden states to hidden states. Embeddings, heads, gains and
    # a variant's learned numbers go to AdamW.
    hidden = {
        id(layer.weight)
        for name, layer in module.named_modules()
        if isinstance(layer, nn.Linear) and ".blocks." in f".{name}"
    }
    trained = [p for p in module.parameters() if p.requires_grad]
    matrices = [p for p in trained if id(p) in hidden]
    others = [p for p in trained if id(p) not in hidden]
    optimizer: Optimizer
    if name == "muon" and matrices:
        optimizer = MuonAdamW(matrices, groups(module, others, weight_decay), lr, weight_decay)
    else:
        everything = groups(module, matrices + others, weight_decay)
        optimizer = AdamW(everything, lr=lr, weight_decay=weight_decay, betas=(0.9, 0.95))

    def of_step(step: int) -> float:
        return factor(step, warmup_steps, total_steps, min_lr_ratio)

    return optimizer, LambdaLR(optimizer, of_step)


def factor(step: int, warmup_steps: int, total_steps: int, min_lr_ratio: float = 0.0) -> float:
    """Return the share of the largest learning rate at a step, as :func:`configure` has it."""
    if step < warmup_steps:
        return (step + 1) / warmup_steps
    progress = (step - warmup_steps) / max(1, total_steps - warmup_steps)
    cosine = 0.5 * (1 + math.cos(math.pi * min(1.0, progress)))
    return min_lr_ratio + (1 - min_lr_ratio) * cosine


def groups(module: nn.Module, trained: list[nn.Parameter], weight_decay: float) -> Parameters:
    """Return parameters in groups, with and without decay; as they are where there is none.

    Args:
        module: Whose parameters they are.
        trained: The parameters.
        weight_decay: Of the optimiser that gets the groups.
    """
    if not weight_decay:
        return trained
    learned = {
        id(number)
        for layer in module.modules()
        if isinstance(layer, Attention)
        for number in layer.learned.values()
    }
    learned |= {
        id(layer.get_parameter(name))
        for layer in module.modules()
        if isinstance(layer, Mixer)
        for name in layer.undecayed
    }
    plain = learned | {id(p) for p in trained if p.dim() < 2}
    both: list[dict[str, Any]] = [
        {"params": [p for p in trained if id(p) not in plain]},
        {"params": [p for p in trained if id(p) in plain], "weight_decay": 0.0},
    ]
    return [group for group in both if group["params"]]
