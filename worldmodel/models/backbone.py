"""The backbone: a pre-norm GPT whose attention is any variant or linear mixer."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from torch import Tensor, nn

import attention
from attention.layer import Attention
from attention.linear import Mixer, RecurrentState
from attention.parts.cache import KeyValueCache
from attention.parts.rotations import Rotations
from attention.scalars import check_size
from worldmodel.models.mlp import build_mlp, build_norm
from worldmodel.models.windowed import Seen, Windowed

Cache = KeyValueCache | RecurrentState | Seen
"""Cache of a block's attention over earlier positions."""


def reach(window: int, n_layer: int) -> int:
    """Return the number of last positions that a stack of blocks with a window sees."""
    return 1 + n_layer * (window - 1)


class Block(nn.Module):
    """One transformer block: attention and an MLP, if it has one, each behind a norm.

    Raises:
        ValueError: The mixer reads ahead, in a stack that is causal.
    """

    def __init__(
        self, mixer: Attention | Mixer, width: int, mlp: str, norm: str, causal: bool = True
    ) -> None:
        super().__init__()
        if causal and not mixer.causal:
            name = mixer.label if isinstance(mixer, Mixer) else f"{mixer.spec.label} causal=False"
            raise ValueError(f"{name} sees what a GPT predicts: leave causal=False out")
        self.norm_attention = build_norm(norm, width)
        self.attention: Attention | Mixer | Windowed = mixer
        self.mlp = build_mlp(mlp, width)
        if self.mlp is not None:
            self.norm_mlp = build_norm(norm, width)

    def look_back(self, window: int) -> None:
        """See the last ``window`` positions and the first one of the sequence alone.

        Raises:
            ValueError: The attention has a window of its own, or a selection, or reads ahead.
        """
        check_size("window", window)
        mixer = self.attention
        assert not isinstance(mixer, Windowed), "a window is set once"
        if not mixer.causal:
            raise ValueError("a window looks back: leave causal=False out, or window")
        if isinstance(mixer, Mixer):
            self.attention = Windowed(mixer, window)
            return
        mixer.spec = mixer.spec.within(window, sinks=1)
        mixer.check_no_window()

    def new_cache(self) -> Cache:
        """Return the block's cache before the first position."""
        return self.attention.new_cache()

    def forward(
        self, x: Tensor, cache: Cache | None = None, rotations: Rotations | None = None
    ) -> Tensor:
        """Map [B, T, width] to the same shape; with a cache, x follows the positions in it.

        Blocks of one forward pass share its ``rotations``.
        """
        shared = (rotations,) if isinstance(self.attention, Attention) else ()
        x = x + self.attention(self.norm_attention(x), cache, *shared)
        return x if self.mlp is None else x + self.mlp(self.norm_mlp(x))


class GPT(nn.Module):
    """A stack of blocks on embedded inputs.

    Args:
        attention_name: A name of ``attention.names("all")``.
        attention_args: Arguments of the variant, for example ``{"p": 15}``.
        n_layer: Number of blocks.
        n_head: Heads per block.
        head_dim: Channels per head; the width is ``n_head * head_dim``.
        mlp: ``gelu``, ``swiglu`` or ``none``.
        norm: ``layer`` or ``rms``.
        window: Positions up to its own that each block sees, beside the first one of the sequence,
            which may say what the others mean; None for all. Blocks add up: :func:`reach`. A
            linear mixer runs anew on them (:class:`~worldmodel.models.windowed.Windowed`).
        causal: False for an encoder, in which every position sees all others.

    Raises:
        ValueError: An unknown variant, MLP or norm, a size below 1, a mixer that reads ahead, or a
            window for an attention that has one of its own.
        TypeError: An encoder of a mixer that only looks back; the message names those that do not.
    """

    def __init__(
        self,
        attention_name: str,
        attention_args: Mapping[str, Any] | None,
        n_layer: int,
        n_head: int,
        head_dim: int,
        mlp: str = "gelu",
        norm: str = "layer",
        window: int | None = None,
        causal: bool = True,
    ) -> None:
        super().__init__()
        ahead = {} if causal else {"causal": False}
        if own := {"n_head", "head_dim", "layer", "n_layer"} & set(attention_args or {}):
            raise ValueError(f"attention_args has {min(own)}, which is the model's own setting")
        for label, size in (("n_layer", n_layer), ("n_head", n_head), ("head_dim", head_dim)):
            check_size(label, size)
        self.width = n_head * head_dim
        self.blocks = nn.ModuleList(
            Block(
                attention.build(
                    attention_name,
                    n_head=n_head,
                    head_dim=head_dim,
                    layer=layer,
                    n_layer=n_layer,
                    **{**(attention_args or {}), **ahead},
                ),
                self.width,
                mlp,
                norm,
                causal,
            )
            for layer in range(n_layer)
        )
        if window is not None:
            for block in self.blocks:
                assert isinstance(block, Block)
                block.look_back(window)
        self.norm = build_norm(norm, self.width)
        for name, module in self.named_modules():
            if isinstance(module, nn.Linear):
                # GPT-2: residual projections start smaller by the depth of the residual stream.
                residual = name.endswith(("project", "mlp.2", "mlp.down"))
                std = 1 / math.sqrt(module.in_features)
                nn.init.normal_(
                    module.weight, std=std / math.sqrt(2 * n_layer) if residual else std
                )

    @property
    def follows_length(self) -> bool:
        """Whether positions turn otherwise in longer sequences, so that no cache of them holds."""
        layers = [block.attention for block in self.blocks]
        return any(isinstance(x, Attention) and x.ntk_train_length is not None for x in layers)

    def new_caches(self) -> list[Cache]:
        """Return the cache of each block before the first position."""
        return [block.new_cache() for block in self.blocks if isinstance(block, Block)]

    def forward(self, x: Tensor, caches: Sequence[Cache] | None = None) -> Tensor:
        """Map embedded inputs to final hidden states.

        Args:
            x: [B, T, width].
            caches: Caches of :meth:`new_caches`, where x follows the positions that they hold; T
                new positions are added to each.

        Returns:
            [B, T, width].
        """
        rotations = Rotations()
        per_block: Sequence[Cache | None] = caches or [None] * len(self.blocks)
        for block, cache in zip(self.blocks, per_block, strict=True):
            x = block(x, cache, rotations)
        return self.norm(x)
