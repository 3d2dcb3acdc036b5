"""The base class of linear-time mixers: a parallel form, a recurrence and a small state."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from attention.scalars import check_size
from attention.validation import check_sequences

Refusal = Callable[[Tensor, Tensor], str | None]
"""Function of keys [B, H, L, K] and values [B, H, L, V]: a reason to refuse them, or None."""


@dataclass
class RecurrentState:
    """The state of decoding after the positions seen so far; its size does not grow with them.

    Attributes:
        tensors: Tensors by name, each [B, ...]; empty before the first position.
        length: Number of positions seen.
    """

    tensors: dict[str, Tensor] = field(default_factory=dict)
    length: int = 0


class Mixer(nn.Module, ABC):
    """A sequence mixer whose time is linear and whose state is constant in the length.

    It is causal; those with an argument ``causal`` can be told not to be, and then read a whole
    sequence at once. Mixers that are ``quadratic`` have a longest sequence, which bounds their
    state.

    A subclass describes itself by constants, makes its layers in ``__init__`` and writes
    :meth:`_mix`. Its file ends with ``MIXER = ClassName`` and is called like the mixer.

    Args:
        n_head: Number of heads.
        head_dim: Channels per head; the model dimension is ``n_head * head_dim``.
        chunk: Positions that the parallel form takes at once, where it does not take all; the
            result does not depend on it.
        layer: Number of the mixer's block in a stack, from 0; for some the depth matters.
        n_layer: Blocks of the stack; None for one that ends here.
        **args: Arguments of the mixer, see ``arguments``.

    Raises:
        TypeError: An argument the mixer does not take.
        ValueError: A size below 1, or a bad argument.
    """

    name: ClassVar[str]
    """The name in ``attention.names("all")``."""
    source: ClassVar[str]
    """Paper and equation, cited."""
    about: ClassVar[str]
    """Description in one sentence."""
    kept: ClassVar[str]
    """Formula of the state's size for one sequence, in H heads of D channels and the arguments."""
    arguments: ClassVar[Mapping[str, Any]] = {}
    """Arguments that a user may set, with their defaults, as plain data."""
    deviations: ClassVar[str] = ""
    """Differences from the publication, in words."""
    undecayed: tuple[str, ...] = ()
    """Parameters that weight decay leaves alone although they are tables: a vector a head, say.

    A mixer has all of them.
    """
    quadratic: ClassVar[bool] = False
    """Whether the time of a sequence grows with the square of its length."""
    kernels: ClassVar[Mapping[str, Refusal]] = {}
    """Kernels by name, in order of choice: each says why it refuses keys and values, or None."""

    def __init__(
        self,
        n_head: int,
        head_dim: int,
        chunk: int = 64,
        layer: int = 0,
        n_layer: int | None = None,
        **args: Any,
    ) -> None:
        super().__init__()
        for label, size in (("n_head", n_head), ("head_dim", head_dim), ("chunk", chunk)):
            check_size(label, size)
        check_size("layer", layer, least=0)
        n_layer = layer + 1 if n_layer is None else n_layer
        check_size("n_layer", n_layer, least=layer + 1)
        self.n_head, self.head_dim, self.chunk = n_head, head_dim, chunk
        self.layer, self.n_layer = layer, n_layer
        self.width = n_head * head_dim
        self.args = self.checked(args)

    @classmethod
    def checked(cls, args: Mapping[str, Any]) -> dict[str, Any]:
        """Return all arguments: those given, and the defaults of the others.

        Arguments whose default is a whole number are sizes. A subclass extends this with what else
        its values must be.
        """
        for argument in args:
            if argument not in cls.arguments:
                takes = ", ".join(["chunk", *cls.arguments])
                raise TypeError(f"{cls.name} takes {takes}, not {argument!r}")
        values = {**cls.arguments, **args}
        for argument, default in cls.arguments.items():
            if type(default) is int:
                check_size(f"{argument} of {cls.name}", values[argument])
        if not isinstance(causal := values.get("causal", True), bool):
            raise ValueError(f"causal of {cls.name} must be True or False, got {causal!r}")
        return values

    @classmethod
    def label_of(cls, args: Mapping[str, Any]) -> str:
        """Return the name shown in tables: with the arguments that differ from their defaults."""
        changed = (
            f"{argument}={value:g}" if isinstance(value, float) else f"{argument}={value}"
            for argument, value in cls.checked(args).items()
            if value != cls.arguments[argument]
        )
        return " ".join([cls.name, *changed])

    @classmethod
    def channels(cls, head_dim: int, args: Mapping[str, Any]) -> tuple[int, int]:
        """Return how many channels keys and values have in a head."""
        return head_dim, head_dim

    @property
    def label(self) -> str:
        """The name shown in tables."""
        return self.label_of(self.args)

    @property
    def causal(self) -> bool:
        """Whether an output depends on no later position."""
        return self.args.get("causal", True)

    def extra_repr(self) -> str:
        """Name the mixer, so that printing a model shows it."""
        return str({"name": self.name, **self.args})

    def forward(self, x: Tensor, cache: RecurrentState | None = None) -> Tensor:
        """Mix a sequence, or the next positions of one, many positions at once.

        Args:
            x: [B, L, width].
            cache: The earlier positions; it is updated with the L new positions.

        Returns:
            [B, L, width].

        Raises:
            ValueError: x has another shape, or the cache is of another number of sequences.
        """
        return self._advance(x, cache, self.chunk)

    def recurrent(self, x: Tensor, cache: RecurrentState | None = None) -> Tensor:
        """Compute :meth:`forward` position by position: the specification."""
        return self._advance(x, cache, None)

    def new_cache(self) -> RecurrentState:
        """Return the state before the first position."""
        return RecurrentState()

    @abstractmethod
    def _mix(self, x: Tensor, cache: RecurrentState, chunk: int | None) -> Tensor:
        """Mix x [B, L, width] after ``cache``, whose tensors are replaced, not changed in place.

        Args:
            x: [B, L, width], L >= 1.
            cache: Its ``length`` is still that before x; the caller raises it.
            chunk: Positions at once; None for position by position.
        """

    def _advance(self, x: Tensor, cache: RecurrentState | None, chunk: int | None) -> Tensor:
        check_sequences(x, self.width)
        cache = self.new_cache() if cache is None else cache
        if cache.length and not self.causal:
            raise ValueError(
                f"{self.name} with causal=False reads a whole sequence, not parts of one"
            )
        for kept in cache.tensors.values():
            if len(kept) != len(x):
                raise ValueError(
                    f"cache holds {len(kept)} sequences, x has {len(x)}: use new_cache()"
                )
        if not x.numel():
            cache.length += x.shape[1]
            return x * 0  # with gradients of zero
        # A lone position, a step of decoding, is a step of the recurrence: a chunk costs more.
        mixed = self._mix(x, cache, None if x.shape[1] == 1 else chunk)
        cache.length += x.shape[1]
        return mixed

    def _split(self, x: Tensor) -> Tensor:
        """Return heads [B, H, L, D] of [B, L, H * D], in at least float32."""
        heads = x.unflatten(-1, (self.n_head, -1)).transpose(1, 2)
        return heads.to(torch.promote_types(x.dtype, torch.float32))

    def _merge(self, heads: Tensor, like: Tensor) -> Tensor:
        """Return [B, L, H * D] of heads [B, H, L, D], in the type of another tensor."""
        return heads.transpose(1, 2).flatten(-2).to(like.dtype)
