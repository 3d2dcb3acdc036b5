"""MLPs and norms of a transformer block."""

from __future__ import annotations

from typing import Literal

from torch import Tensor, nn
from torch.nn import functional

from orbits.runs.choices import check_choice

MLPName = Literal["gelu", "swiglu", "none"]
NormName = Literal["layer", "rms"]
NORMS: dict[str, type[nn.LayerNorm] | type[nn.RMSNorm]] = {
    "layer": nn.LayerNorm,
    "rms": nn.RMSNorm,
}


class SwiGLU(nn.Module):
    """(SiLU(x W_gate) * x W_up) W_down, Shazeer (2020), Eq. 6, with 8/3 of the width inside.

    It has as many weights as a GELU MLP of four times the width.
    """

    def __init__(self, width: int) -> None:
        super().__init__()
        inside = -(-8 * width // 3 // 8) * 8  # a multiple of 8, for matrix units
        self.gate = nn.Linear(width, inside, bias=False)
        self.up = nn.Linear(width, inside, bias=False)
        self.down = nn.Linear(inside, width, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        """Map [..., width] to the same shape."""
        return self.down(functional.silu(self.gate(x)) * self.up(x))


def build_mlp(name: str, width: int) -> nn.Module | None:
    """Return the MLP of a block, or None for ``none``."""
    if name == "gelu":
        return nn.Sequential(
            nn.Linear(width, 4 * width, bias=False),
            nn.GELU(),
            nn.Linear(4 * width, width, bias=False),
        )
    if name == "swiglu":
        return SwiGLU(width)
    if name == "none":
        return None
    raise ValueError(f"unknown mlp {name!r}; choose from gelu, swiglu, none")


def build_norm(name: str, width: int) -> nn.Module:
    """Return a LayerNorm or an RMSNorm."""
    check_choice("norm", name, NORMS)
    return NORMS[name](width)
