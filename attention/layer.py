"""The attention module of a transformer block, with its learned parameters and its cache."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from attention import reference
from attention.backends import attend_spec, check_backend
from attention.catalogue import get, names
from attention.positions import Rotations, dynamic_ntk_base
from attention.scalars import check_positive, check_size
from attention.spec import AttnSpec
from attention.validation import check_sequences


@dataclass
class KeyValueCache:
    """What attention needs of the positions seen so far, for decoding.

    Each tensor lies in one that is twice as long when it grows, so that a step copies the new
    positions alone. Where a gradient is recorded tensors are joined instead: nothing that it may
    need is written over.

    Attributes:
        capacity: Positions to set memory aside for at the first step; more come as they are needed.
        length: Number of positions seen.
    """

    capacity: int = 0
    length: int = 0

    def __post_init__(self) -> None:
        check_size("capacity of a cache", self.capacity, least=0)
        self._kept: tuple[Tensor, ...] = ()

    def append(self, *new: Tensor) -> tuple[Tensor, ...]:
        """Add positions, tensors [B, H_kv, L, ...], and return those of all positions.

        They are valid until the next call. Each call gives the same tensors in the same order.
        """
        before, self.length = self.length, self.length + new[0].shape[2]
        if torch.is_grad_enabled() and any(x.requires_grad for x in (*new, *self._kept)):
            known = [x[:, :, :before] for x in self._kept] or [x[:, :, :0] for x in new]
            self._kept = tuple(torch.cat(x, dim=2) for x in zip(known, new, strict=True))
            return self._kept
        room = self._kept[0].shape[2] if self._kept else 0
        if self.length > room:
            room = max(self.length, self.capacity, 2 * room)
            longer = tuple(x.new_empty([*x.shape[:2], room, *x.shape[3:]]) for x in new)
            for x, old in zip(longer, self._kept, strict=bool(self._kept)):
                x[:, :, :before] = old[:, :, :before]
            self._kept = longer
        for x, part in zip(self._kept, new, strict=True):
            x[:, :, before : self.length] = part
        return tuple(x[:, :, : self.length] for x in self._kept)


class Attention(nn.Module):
    """Multi-head self-attention of any variant, causal unless it is told not to be.

    Args:
        name: A name of :func:`attention.names`.
        n_head: Number of heads.
        head_dim: Channels per head; the model dimension is ``n_head * head_dim``.
        n_kv_head: Key and value heads, each shared by ``n_head / n_kv_head`` query heads
            (grouped-query attention); None for ``n_head``.
        rope_base: Base of the rotary positions, or None for none. ALiBi never rotates.
        ntk_train_length: With a number, the base grows for longer sequences (dynamic NTK).
        backend: As in :func:`attention.attend`.
        causal: False for an encoder, in which every position sees all; eager, without a cache.
        **args: Arguments of the variant.

    Learned parameters of a variant (tau, sink, bias, gates) live here. The buffer ``sharpen``
    says how far the second stage of a re-weighted variant is on: 1 fully, 0 not at all, and f
    between them with the exponent 1 + f (p - 1). It is 1 unless a training schedule changes it,
    and travels in the checkpoint.

    Raises:
        ValueError: Unknown variant or backend, a bad size or ``rope_base``, a length that the
            variant needs is missing, or an encoder of a variant with a window.
        TypeError: An argument the variant does not take.
    """

    sharpen: Tensor

    def __init__(
        self,
        name: str,
        n_head: int,
        head_dim: int,
        n_kv_head: int | None = None,
        rope_base: float | None = 10_000.0,
        ntk_train_length: int | None = None,
        backend: str = "auto",
        causal: bool = True,
        **args: Any,
    ) -> None:
        super().__init__()
        self.spec = get(name, **args)
        self.spec.check_complete()
        if not causal and self.spec.mask != "causal":
            raise ValueError(f"{name} looks back through a window: it has no causal=False")
        check_backend(backend)
        n_kv_head = n_head if n_kv_head is None else n_kv_head
        for label, size in (("n_head", n_head), ("head_dim", head_dim), ("n_kv_head", n_kv_head)):
            check_size(label, size)
        if rope_base is not None:
            check_positive(f"rope_base of {name}", rope_base)
        if n_head % n_kv_head:
            raise ValueError(f"n_head {n_head} is not a multiple of n_kv_head {n_kv_head}")
        self.rope_base = None if self.spec.bias == "alibi" else rope_base
        if self.rope_base is not None and head_dim % 2:
            raise ValueError(f"RoPE needs an even head_dim, got {head_dim}")
        if self.rope_base is not None and ntk_train_length is not None:
            dynamic_ntk_base(self.rope_base, head_dim, 1, ntk_train_length)  # refuses bad sizes
        self.n_head, self.n_kv_head, self.head_dim = n_head, n_kv_head, head_dim
        self.width = n_head * head_dim
        self.ntk_train_length, self.backend, self.causal = ntk_train_length, backend, causal
        width, kv_width = self.width, n_kv_head * head_dim
        self.query = nn.Linear(width, width, bias=False)
        self.key = nn.Linear(width, kv_width, bias=False)
        self.value = nn.Linear(width, kv_width, bias=False)
        self.project = nn.Linear(width, width, bias=False)
        sizes = {"head": n_head, "distance": self.spec.max_distance}
        starts = {"tau": self.spec.tau, "sink": 0.0, "bias": 0.0}
        self.learned = nn.ParameterDict(
            {
                parameter: torch.full([sizes[d] for d in dimensions], float(starts[parameter]))
                for parameter, dimensions in self.spec.learned.items()
            }
        )
        if self.spec.gated:
            self.gates = nn.Linear(width, 2 * n_head, bias=False)
        self.register_buffer("sharpen", torch.tensor(1.0))
        self.register_load_state_dict_post_hook(_read_sharpen)
        self._sharpen = 1.0

    def forward(
        self,
        x: Tensor,
        cache: KeyValueCache | None = None,
        rotations: Rotations | None = None,
    ) -> Tensor:
        """Mix a sequence, or the next positions of one.

        Args:
            x: [B, L, n_head * head_dim].
            cache: What came before; L new positions are added to it.
            rotations: Shared by the layers of one forward pass, so that the first computes RoPE's
                cosines and sines for all; None for a layer on its own.

        Returns:
            [B, L, n_head * head_dim].

        Raises:
            ValueError: x has another shape.
        """
        if cache is not None and not self.causal:
            raise ValueError("attention with causal=False reads a whole sequence, not parts of one")
        q, k, v, *inverse_lengths = self._heads(x, cache, rotations)
        spec, parameters = self._active(), self._parameters_of(x)
        if inverse_lengths:
            parameters["inverse_lengths"] = inverse_lengths[0]
        if self.causal:
            mixed = attend_spec(q, k, v, spec, parameters, self.backend)
        else:
            rows = reference.weights(q, k, spec, parameters, causal=False)
            mixed = reference.shared_product(rows, v)
        return self.project(mixed.transpose(1, 2).flatten(-2))

    def new_cache(self, capacity: int = 0) -> KeyValueCache:
        """Return the cache before the first position, for so many positions or, growing, more."""
        return KeyValueCache(capacity)

    def weights(self, x: Tensor) -> Tensor:
        """Return the attention matrix [B, n_head, L, L] of a sequence, for analysis."""
        q, k, *_ = self._heads(x, None)
        return reference.weights(q, k, self._active(), self._parameters_of(x), self.causal)

    def set_sharpen(self, fraction: float | None = None) -> None:
        """Set the fraction of the second stage, 0 to 1; None reads it from the buffer.

        Raises:
            ValueError: The fraction is outside [0, 1].
        """
        if fraction is not None:
            if not 0 <= fraction <= 1:
                raise ValueError(f"sharpen must be in [0, 1], got {fraction}")
            self.sharpen.fill_(fraction)
        # A mirror on the host: reading the buffer at every call would wait for the device.
        self._sharpen = float(self.sharpen)

    def extra_repr(self) -> str:
        """Name the variant, so that printing a model shows it."""
        arguments = {name: getattr(self.spec, name) for name in self.spec.arguments}
        if not self.causal:
            arguments["causal"] = False
        return str({"name": self.spec.name, **arguments})

    def _active(self) -> AttnSpec:
        """Return the variant as its schedule stands."""
        if self._sharpen == 1 or not self.spec.reweights:
            return self.spec
        if self._sharpen == 0:
            return self.spec.without_reweighting()
        return self.spec.with_arguments(p=1 + self._sharpen * (self.spec.p - 1))

    def _heads(
        self, x: Tensor, cache: KeyValueCache | None, rotations: Rotations | None = None
    ) -> tuple[Tensor, ...]:
        """Return rotated queries [B, H, L, D], and keys and values [B, H_kv, cached + L, D].

        With a cache and a variant that takes the directions of keys, one over their lengths
        [B, H_kv, cached + L] as well.
        """
        check_sequences(x, self.width)
        q, k, v = (
            layer(x).unflatten(-1, (-1, self.head_dim)).transpose(1, 2)
            for layer in (self.query, self.key, self.value)
        )
        rotations = rotations or Rotations()
        first = 0 if cache is None else cache.length
        base = self.rope_base
        if base is not None and self.ntk_train_length is not None:
            total = first + x.shape[1]
            base = dynamic_ntk_base(base, self.head_dim, total, self.ntk_train_length)
        if base is not None:
            q = rotations.rope(q, first, base)
        # A base that grows with the length turns every key anew at each step.
        turn_all = cache is not None and self.ntk_train_length is not None
        if base is not None and not turn_all:
            k = rotations.rope(k, first, base)
        kept = [k, v]
        if cache is not None:
            if self.spec.directional:
                kept.append(reference.inverse_lengths(k))  # of rotated keys the same
            kept = list(cache.append(*kept))
        if base is not None and turn_all:
            kept[0] = rotations.rope(kept[0], 0, base)
        return q, *kept

    def _parameters_of(self, x: Tensor) -> dict[str, Tensor]:
        parameters: dict[str, Tensor] = dict(self.learned.items())
        if self.spec.gated:
            gates = torch.sigmoid(self.gates(x))
            parameters["gates"] = gates.unflatten(-1, (self.n_head, 2)).transpose(1, 2)
        return parameters


def with_weights(module: nn.Module) -> Attention:
    """Return a block's module if it has attention weights.

    Raises:
        ValueError: It is a linear mixer.
    """
    if isinstance(module, Attention):
        return module
    raise ValueError(
        f"{getattr(module, 'name', type(module).__name__)} has no attention weights; this needs a "
        f"model with one of {', '.join(names())}"
    )


def _read_sharpen(module: nn.Module, incompatible_keys: object) -> None:
    """Follow the buffer after loading (a named function, so that modules can be pickled)."""
    assert isinstance(module, Attention)
    module.set_sharpen()
