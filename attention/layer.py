"""The attention module of a transformer block, with its learned parameters."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from attention import reference
from attention.backends import attend_spec, check_backend, eager
from attention.catalogue import get, names
from attention.parts import projections as projection
from attention.parts import selection
from attention.parts.cache import KeyValueCache
from attention.parts.rotations import Rotation, Rotations
from attention.positions import dynamic_ntk_base
from attention.scalars import check_positive, check_size
from attention.spec import AttnSpec
from attention.validation import check_sequences


class _Heads(NamedTuple):
    """Heads of Lq new and Lk known positions.

    Attributes:
        q: Queries [B, H, Lq, D], rotated.
        k: Keys [B, H_kv, Lk, D], rotated.
        v: Values [B, H_kv, Lk, D].
        inverse_lengths: One over the lengths of the keys [B, H_kv, Lk], where a cache keeps them.
        scores: Scores of the indexer [B, Lq, Lk], where they are needed.
        selected: The keys that a row attends to, bool [B, Lq, Lk]; None for all.
        rotation: RoPE, where queries and keys are yet to be turned.
    """

    q: Tensor
    k: Tensor
    v: Tensor
    inverse_lengths: Tensor | None
    scores: Tensor | None
    selected: Tensor | None
    rotation: Rotation | None


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
        backend: Backend, see :func:`attention.attend`.
        causal: False for an encoder, in which every position sees all; eager, without a cache.
        projections: How heads are made of the input: ``full``, a matrix each for queries, keys and
            values, or ``tpa``, sums of a few products of two factors, which alone are cached
            (:mod:`attention.parts.projections`).
        q_rank: Products of a query of ``tpa``; None for 6, as published.
        k_rank: Rank of a key; None for 2.
        v_rank: Rank of a value; None for 2.
        select: ``none``: a query attends to all keys that it sees. ``dsa``: to the ``top_k`` that
            an indexer ranks first (:mod:`attention.parts.selection`); eager.
        top_k: Keys of a query with ``select="dsa"``.
        index_heads: Heads of the indexer; None for ``n_head``.
        index_dim: Channels per head of the indexer; None for ``head_dim``.
        **args: Arguments of the variant.

    Learned parameters of a variant (tau, sink, bias, gates) live here. The buffer ``sharpen``
    says how far the second stage of a re-weighted variant is on: 1 fully, 0 not at all, and f
    between them with the exponent 1 + f (p - 1). It is 1 unless a training schedule changes it,
    and travels in the checkpoint.

    Raises:
        ValueError: Unknown variant or backend, a bad size or ``rope_base``, a length that the
            variant needs is missing, an encoder of a variant with a window or a selection, or
            a part of ``projections`` or ``select`` that does not fit the others.
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
        projections: str = "full",
        q_rank: int | None = None,
        k_rank: int | None = None,
        v_rank: int | None = None,
        select: str = "none",
        top_k: int | None = None,
        index_heads: int | None = None,
        index_dim: int | None = None,
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
        if not isinstance(causal, bool):
            raise ValueError(f"causal must be true or false, got {causal!r}")
        if rope_base is not None:
            check_positive(f"rope_base of {name}", rope_base)
        if ntk_train_length is not None:
            check_size("ntk_train_length", ntk_train_length)
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
        width, ranks = self.width, {"q_rank": q_rank, "k_rank": k_rank, "v_rank": v_rank}
        self.query, self.key, self.value = projection.build(
            projections, width, n_head, n_kv_head, head_dim, **ranks
        )
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
        self.selection = selection.build(
            select, width, top_k, index_heads, index_dim, n_head, head_dim
        )
        if self.selection is not None:
            self.check_no_window()
            if not causal:
                raise ValueError("select dsa looks back alone: it has no causal=False")
            if backend not in ("auto", "reference"):
                raise ValueError(f"select dsa is computed eagerly: leave backend={backend!r} out")
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
            cache: The earlier positions; L new positions are added to it.
            rotations: Shared by the layers of one forward pass, so that the first computes RoPE's
                cosines and sines for all; None for a layer on its own.

        Returns:
            [B, L, n_head * head_dim].

        Raises:
            ValueError: x has another shape.
        """
        if cache is not None and not self.causal:
            raise ValueError("attention with causal=False reads a whole sequence, not parts of one")
        found = self._heads(x, cache, rotations, lazily=True)
        q, k, v, selected = found.q, found.k, found.v, found.selected
        spec, parameters = self._active(), self._parameters_of(x)
        if found.inverse_lengths is not None:
            parameters["inverse_lengths"] = found.inverse_lengths
        learns = self.selection is not None and self.selection.learns
        if learns or not self.causal:
            rows = reference.weights(q, k, spec, parameters, self.causal, selected)
            mixed = reference.shared_product(rows, v)
            if self.selection is not None and found.scores is not None:
                self.selection.learn(found.scores, rows, selected)
        elif selected is not None:
            mixed = eager(q, k, v, spec, parameters, selected)
        else:
            mixed = attend_spec(q, k, v, spec, parameters, self.backend, found.rotation)
        return self.project(mixed.transpose(1, 2).flatten(-2))

    def new_cache(self) -> KeyValueCache:
        """Return the cache before the first position."""
        return KeyValueCache()

    def weights(self, x: Tensor) -> Tensor:
        """Return the attention matrix [B, n_head, L, L] of a sequence, for analysis."""
        found = self._heads(x, None)
        parameters, selected = self._parameters_of(x), found.selected
        return reference.weights(
            found.q, found.k, self._active(), parameters, self.causal, selected
        )

    @property
    def kept(self) -> int:
        """Numbers that a cache keeps of one position of a sequence."""
        lengths = self.n_kv_head if self._keeps_lengths else 0
        index = 0 if self.selection is None else self.selection.kept
        return self.key.kept + self.value.kept + lengths + index

    def check_no_window(self) -> None:
        """Refuse a window beside a selection of keys, with a ValueError."""
        if self.selection is not None and self.spec.mask != "causal":
            raise ValueError(
                f"{self.spec.name} with a window and select dsa both leave keys out: take one"
            )

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
        if not self._full:
            arguments["projections"] = "tpa"
        if self.selection is not None:
            arguments["select"] = "dsa"
        return str({"name": self.spec.name, **arguments})

    def _active(self) -> AttnSpec:
        """Return the variant as its schedule stands."""
        if self._sharpen == 1 or not self.spec.reweights:
            return self.spec
        if self._sharpen == 0:
            return self.spec.without_reweighting()
        return self.spec.with_arguments(p=1 + self._sharpen * (self.spec.p - 1))

    @property
    def _full(self) -> bool:
        """Whether keys are cached as they are, and not as factors."""
        return isinstance(self.key, projection.FullProjection)

    @property
    def _has_backend(self) -> bool:
        """Whether whole sequences go to a backend: not those of encoders and selections."""
        return self.causal and self.selection is None

    @property
    def _keeps_lengths(self) -> bool:
        """Whether a cache keeps one over the length of each key."""
        return self.spec.directional and self._full

    def _heads(
        self,
        x: Tensor,
        cache: KeyValueCache | None,
        rotations: Rotations | None = None,
        lazily: bool = False,
    ) -> _Heads:
        """Return the heads.

        ``lazily`` may leave out keys that a lone row did not select, and leave RoPE to a backend.
        """
        check_sequences(x, self.width)
        rotations = rotations or Rotations()
        first = 0 if cache is None else cache.length
        total = first + x.shape[1]
        base, chooser = self.rope_base, self.selection
        if base is not None and self.ntk_train_length is not None:
            base = dynamic_ntk_base(base, self.head_dim, total, self.ntk_train_length)
        rotation = None
        if lazily and base is not None and cache is None and self._has_backend and self._full:
            rotation, base = Rotation(rotations, first, base), None

        def turned(part: Tensor, start: int = first) -> Tensor:
            return part if base is None else rotations.rope(part, start, base)

        def last_turned(parts: list[Tensor], start: int = first) -> list[Tensor]:
            return [*parts[:-1], *(turned(part, start) for part in parts[-1:])]

        *factors, channels = self.query.parts(x)
        q = self.query.joined(*factors, turned(channels))
        keys, values = list(self.key.parts(x)), list(self.value.parts(x))
        index = [] if chooser is None else list(chooser.parts(x))
        lengths: list[Tensor] = []
        # A base that grows with the length turns every key anew at each step.
        turn_all = cache is not None and self.ntk_train_length is not None
        if not turn_all:
            keys, index = last_turned(keys), last_turned(index)
        if cache is not None:
            if self._keeps_lengths:
                lengths = [reference.inverse_lengths(keys[0])]  # of rotated keys the same
            groups = (keys, values, index, lengths)
            new = (part for group in groups for part in group)
            recorded = q.requires_grad or any(x.requires_grad for x in self.parameters())
            grown = iter(cache.append(*new, recorded=recorded))
            keys, values, index, lengths = ([next(grown) for _ in group] for group in groups)
        if turn_all:
            keys, index = last_turned(keys, 0), last_turned(index, 0)
        scores = selected = None
        if chooser is not None and (chooser.learns or chooser.narrows(total)):
            scores = chooser.scores(x, index, turned)
            selected = chooser.chosen(scores)
            # Without biases of distances the selected keys alone are a sequence of their own.
            alone = x.shape[1] == 1 and self.spec.bias == "none" and not chooser.learns
            if lazily and alone and selected is not None:
                keys, values, lengths = (
                    [selection.picked(part, selected, chooser.top_k) for part in group]
                    for group in (keys, values, lengths)
                )
                selected = None
        k, v = self.key.joined(*keys), self.value.joined(*values)
        return _Heads(q, k, v, lengths[0] if lengths else None, scores, selected, rotation)

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
