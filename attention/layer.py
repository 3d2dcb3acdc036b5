"""The attention module of a transformer block."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from attention.api import attend_spec
from attention.positions import rope
from attention.spec import get


class Attention(nn.Module):
    """Causal multi-head self-attention of any variant, with RoPE.

    Args:
        name: A name of :func:`attention.names`.
        n_head: Number of heads.
        head_dim: Channels per head; the model dimension is ``n_head * head_dim``.
        rope_base: Base of the rotary positions.
        backend: As in :func:`attention.attend`.
        **args: Arguments of the variant.

    The buffer ``sharpen`` says whether the second stage of a re-weighted variant is on. It is
    True unless a training schedule starts without it, and travels in the checkpoint.
    """

    sharpen: Tensor

    def __init__(
        self,
        name: str,
        n_head: int,
        head_dim: int,
        rope_base: float = 10_000.0,
        backend: str = "auto",
        **args: Any,
    ) -> None:
        super().__init__()
        self.spec = get(name, **args)
        if head_dim % 2:
            raise ValueError(f"RoPE needs an even head_dim, got {head_dim}")
        self.n_head, self.head_dim = n_head, head_dim
        self.rope_base, self.backend = rope_base, backend
        width = n_head * head_dim
        self.query = nn.Linear(width, width, bias=False)
        self.key = nn.Linear(width, width, bias=False)
        self.value = nn.Linear(width, width, bias=False)
        self.project = nn.Linear(width, width, bias=False)
        self.register_buffer("sharpen", torch.tensor(True))
        self.register_load_state_dict_post_hook(lambda module, _: module.set_sharpen())
        self._sharpen = True

    def forward(self, x: Tensor) -> Tensor:
        """Map [B, L, n_head * head_dim] to the same shape."""
        q, k, v = (
            layer(x).unflatten(-1, (self.n_head, self.head_dim)).transpose(1, 2)
            for layer in (self.query, self.key, self.value)
        )
        positions = torch.arange(x.shape[1], device=x.device)
        q, k = rope(q, positions, self.rope_base), rope(k, positions, self.rope_base)
        spec = self.spec
        if not self._sharpen and spec.p is not None:
            spec = spec.without_reweighting()
        mixed = attend_spec(q, k, v, spec, self.backend)
        return self.project(mixed.transpose(1, 2).flatten(-2))

    def set_sharpen(self, on: bool | None = None) -> None:
        """Switch the second stage on or off; None takes the state of the buffer."""
        if on is not None:
            self.sharpen.fill_(on)
        # A mirror on the host: reading the buffer at every call would wait for the device.
        self._sharpen = bool(self.sharpen)

    def extra_repr(self) -> str:
        """Name the variant, so that printing a model shows it."""
        return str({"name": self.spec.name, "p": self.spec.p})


def build(name: str, *, n_head: int, head_dim: int, **args: Any) -> Attention:
    """Return the module of a variant, for example ``build("lssar", n_head=4, head_dim=32, p=15)``.

    Raises:
        ValueError: Unknown variant, an argument out of range, or an odd head_dim.
        TypeError: An argument the variant does not take.
    """
    return Attention(name, n_head, head_dim, **args)
