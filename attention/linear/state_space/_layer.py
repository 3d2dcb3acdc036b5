"""The layer around a state-space model: a skip, GELU, and a linear map of each position."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional

from attention.linear.mixer import Mixer, RecurrentState
from attention.parts.precision import full_precision


class StateSpace(Mixer):
    """GLU(GELU(system(x) + D x) W + b), one system per channel of the model.

    Heads only set the width. A subclass makes the parameters of the system and writes
    :meth:`_system`.
    """

    gated: ClassVar[bool] = True
    """Whether a gated linear unit follows, or a linear map."""
    paired: ClassVar[bool] = True
    """Whether states are conjugate pairs, which makes their number even."""
    state: int

    def __init__(self, n_head: int, head_dim: int, **args: Any) -> None:
        super().__init__(n_head, head_dim, **args)
        self.state = self.args["state"]
        self.skip = nn.Parameter(torch.randn(self.width))
        self.project = nn.Linear(self.width, (1 + self.gated) * self.width)

    @classmethod
    def checked(cls, args: Mapping[str, Any]) -> dict[str, Any]:
        """Return all arguments, as in :meth:`Mixer.checked`."""
        values = super().checked(args)
        if cls.paired and values["state"] % 2:
            raise ValueError(f"state of {cls.name} must be even, got {values['state']}")
        return values

    def _system(self, u: Tensor, cache: RecurrentState, chunk: int | None) -> Tensor:
        """Return the systems' outputs of u [B, L, width], of at least float32."""
        raise NotImplementedError

    def _mix(self, x: Tensor, cache: RecurrentState, chunk: int | None) -> Tensor:
        u = x.to(torch.promote_types(x.dtype, torch.float32))
        with full_precision(x):
            y = functional.gelu(self._system(u, cache, chunk) + self.skip.to(u.dtype) * u)
        y = self.project(y.to(x.dtype))
        return functional.glu(y, dim=-1) if self.gated else y


def complex_parameter(values: Tensor) -> nn.Parameter:
    """Return complex numbers as a parameter of pairs [..., 2]: casts of a model keep both."""
    return nn.Parameter(torch.view_as_real(values.to(torch.complex64)).clone())


def as_complex(pairs: Tensor, like: Tensor) -> Tensor:
    """Return complex numbers of pairs [..., 2], as precise as a real tensor."""
    return torch.view_as_complex(pairs.to(like.dtype))
