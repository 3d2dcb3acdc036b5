"""Selection of keys: DeepSeek Sparse Attention (DSA), with any quadratic variant inside.

A small indexer scores every visible key for a query (DeepSeek-AI 2025, DeepSeek-V3.2, Eq. 1)::

    I[t, s] = sum_j w[t, j] relu(qI[t, j] . kI[s]),   s <= t

and the query attends to the ``top_k`` keys of the largest scores (Eq. 2), the same for all heads;
to all of them where there are no more. Among equal scores the nearer key is taken, so that a step
of decoding selects what the whole sequence does.

**What a variant does with the selected keys.** It is computed as if they were all there is: the
row number i of every formula is the number n = min(t, top_k) of selected keys. Of LSSAR that is
all of it: the scale log d log n, the sum that divides the first stage, the mean weight 1 / n above
which a key must be, ReLU(n a - o)^p with o = 0 where n <= 3, the largest entry that a row is
divided by before the power, and the second sum. Rotary positions and distance biases keep the
places in the whole sequence, and a formula's length L stays the argument ``length``.

**How the indexer learns.** A selection has no gradient, so the model's loss does not reach the
indexer, and its input is detached: it learns from a loss of its own alone, the divergence KL(p ||
softmax(I)) over the selected keys, where p is the attention summed over heads and divided by its
sum (Eq. 4); before selection is on (:meth:`Selection.set_active`), over all visible keys (Eq. 3).
:func:`index_losses` collects it. Weights below zero count by their size, rows without weights not
at all. Untrained, an indexer selects at random.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterator, Sequence

import torch
from torch import Tensor, nn

from attention.parts.precision import full_precision
from attention.scalars import check_size

KINDS = ("none", "dsa")
Turn = Callable[[Tensor], Tensor]
"""Rotation of [..., L, D] by the positions of its L rows."""


class Selection(nn.Module):
    """The indexer and its choice of keys.

    Args:
        width: Channels of the layer's input.
        top_k: Keys that a query attends to.
        n_head: Heads of the indexer.
        head_dim: Channels per head; RoPE turns half of them, as published.

    The buffer ``active`` says whether keys are selected; it travels in the checkpoint.
    """

    active: Tensor

    def __init__(self, width: int, top_k: int, n_head: int, head_dim: int) -> None:
        super().__init__()
        self.top_k, self.n_head, self.head_dim = top_k, n_head, head_dim
        self.query = nn.Linear(width, n_head * head_dim, bias=False)
        self.key = nn.Linear(width, head_dim, bias=False)
        self.norm = nn.LayerNorm(head_dim)
        self.weight = nn.Linear(width, n_head, bias=False)
        self.register_buffer("active", torch.tensor(True))
        self.register_load_state_dict_post_hook(_read_active)
        self._active = True
        self._losses: list[Tensor] | None = None

    @property
    def kept(self) -> int:
        """Numbers that a cache keeps of one position."""
        return self.head_dim

    @property
    def learns(self) -> bool:
        """Whether its losses are being collected."""
        return self._losses is not None

    def set_active(self, active: bool | None = None) -> None:
        """Select keys, or attend to all of them; None reads the buffer."""
        if active is not None:
            self.active.fill_(active)
        # A mirror on the host: reading the buffer at every call would wait for the device.
        self._active = bool(self.active)

    def narrows(self, n_keys: int) -> bool:
        """Whether some of so many keys are left out."""
        return self._active and n_keys > self.top_k

    def parts(self, x: Tensor) -> tuple[Tensor, ...]:
        """Return the tensors that a cache keeps of inputs [B, L, width], each [B, 1, L, D / 2].

        They are halves of the indexer's keys; RoPE turns the last part, as that of a projection.
        """
        with self._recorded():
            return self.norm(self.key(x.detach()))[:, None].chunk(2, dim=-1)

    def scores(self, x: Tensor, keys: Sequence[Tensor], turn: Turn) -> Tensor:
        """Return I [B, Lq, Lk], in at least float32, with no mask.

        Args:
            x: The input of the last Lq positions, [B, Lq, width].
            keys: The parts of all positions, the last one turned.
            turn: Rotation of the last Lq positions.
        """
        with self._recorded():
            queries = self.query(x.detach()).unflatten(-1, (self.n_head, -1)).transpose(1, 2)
            plain, turning = queries.chunk(2, dim=-1)
            queries, weight = torch.cat([plain, turn(turning)], dim=-1), self.weight(x.detach())
            dtype = torch.promote_types(x.dtype, torch.float32)
            with full_precision(x):
                known = torch.cat(list(keys), dim=-1).to(dtype)
                products = (queries.to(dtype) @ known.transpose(-1, -2)).relu()
                scaled = weight.to(dtype).transpose(1, 2) / math.sqrt(self.n_head * self.head_dim)
                return (scaled[..., None] * products).sum(dim=1)

    def chosen(self, scores: Tensor) -> Tensor | None:
        """Return the keys that rows attend to, bool [B, Lq, Lk]; None for all they see."""
        return largest(scores, self.top_k) if self.narrows(scores.shape[-1]) else None

    def learn(self, scores: Tensor, weights: Tensor, selected: Tensor | None) -> None:
        """Add the loss of a forward pass to those that are collected.

        Args:
            scores: [B, Lq, Lk] of :meth:`scores`.
            weights: The attention, [B, H, Lq, Lk].
            selected: The keys that took part, bool [B, Lq, Lk]; None for all visible ones.
        """
        assert self._losses is not None
        self._losses.append(index_loss(scores, weights, selected))

    def extra_repr(self) -> str:
        """Name the sizes, so that printing a model shows them."""
        return f"top_k={self.top_k}, n_head={self.n_head}, head_dim={self.head_dim}"

    def _recorded(self) -> contextlib.AbstractContextManager[object]:
        """Record gradients where the loss is collected alone: nothing else has any."""
        return torch.set_grad_enabled(self.learns and torch.is_grad_enabled())


@contextlib.contextmanager
def index_losses(module: nn.Module) -> Iterator[list[Tensor]]:
    """Collect the losses of a module's indexers, one for each layer and forward pass.

    Their gradients reach the indexers alone, and those of other losses all but the indexers, so
    that the sum of both trains either by its own. The list stays empty without indexers.

        >>> model, batch = nn.Linear(2, 1), torch.ones(3, 2)
        >>> with index_losses(model) as losses:
        ...     loss = model(batch).mean()
        >>> (loss + sum(losses)).backward()
    """
    losses: list[Tensor] = []
    selections = [part for part in module.modules() if isinstance(part, Selection)]
    for selection in selections:
        selection._losses = losses
    try:
        yield losses
    finally:
        for selection in selections:
            selection._losses = None


def index_loss(scores: Tensor, weights: Tensor, selected: Tensor | None = None) -> Tensor:
    """Return the mean over rows of KL(attention of all heads || softmax of the index scores).

    Args:
        scores: [B, Lq, Lk]; rows are the last Lq of the Lk positions.
        weights: The attention, [B, H, Lq, Lk], taken as it is: no gradient goes through it.
        selected: The keys that took part, bool [B, Lq, Lk]; None for all visible ones.
    """
    if selected is None:
        selected = visible(scores)
    target = weights.detach().to(scores.dtype).abs().sum(dim=1)
    total = target.sum(dim=-1, keepdim=True)
    target = target / total.masked_fill(total == 0, math.inf)  # a row without weights asks nothing
    learned = scores.masked_fill(~selected, -math.inf).log_softmax(dim=-1)
    cross = target * learned.masked_fill(~selected, 0.0)
    return (torch.xlogy(target, target) - cross).sum(dim=-1).mean()


def visible(scores: Tensor) -> Tensor:
    """Return the keys [Lq, Lk] that queries see, the last Lq of the Lk positions."""
    length, total = scores.shape[-2:]
    rows = torch.arange(total - length, total, device=scores.device)[:, None]
    return torch.arange(total, device=scores.device) <= rows


def largest(scores: Tensor, top_k: int) -> Tensor:
    """Return the selected keys, bool [B, Lq, Lk]: min(top_k, t) of the t that a row sees.

    Args:
        scores: [B, Lq, Lk]; rows are the last Lq of the Lk positions.
        top_k: Keys of a row; of equal scores the nearer one.
    """
    seen = visible(scores)
    scores = scores.detach().masked_fill(~seen, -math.inf)
    least = scores.topk(min(top_k, scores.shape[-1]), dim=-1).values[..., -1:]
    above, tied = scores > least, (scores == least) & seen
    room = top_k - above.sum(dim=-1, keepdim=True)
    nearer = tied.flip(-1).cumsum(dim=-1).flip(-1)
    return above | (tied & (nearer <= room))


def picked(x: Tensor, selected: Tensor, count: int) -> Tensor:
    """Return the positions of a cache's tensor [B, *, Lk, ...] that one row selected, in order.

    Args:
        x: Tensor of the cache, of all positions.
        selected: bool [B, 1, Lk], ``count`` of each row.
        count: Number of selected positions.
    """
    places = selected[:, 0].byte().topk(count, dim=-1).indices.sort(dim=-1).values
    sequences = torch.arange(len(x), device=x.device)[:, None]
    return x.transpose(1, 2)[sequences, places].transpose(1, 2)


def build(
    kind: str,
    width: int,
    top_k: int | None,
    index_heads: int | None,
    index_dim: int | None,
    n_head: int,
    head_dim: int,
) -> Selection | None:
    """Return the selection of a layer, None for all keys.

    Args:
        kind: One of ``KINDS``.
        width: Channels of the layer's input.
        top_k: Keys that a query attends to.
        index_heads: Heads of the indexer; None for ``n_head``.
        index_dim: Channels per head of the indexer, a multiple of 4; None for ``head_dim``.
        n_head: Heads of the layer.
        head_dim: Channels of a head.

    Raises:
        ValueError: An unknown kind, a size out of range or missing, or one where none is taken.
    """
    sizes = {"top_k": top_k, "index_heads": index_heads, "index_dim": index_dim}
    if kind not in KINDS:
        raise ValueError(f"unknown select {kind!r}; choose from {', '.join(KINDS)}")
    for name, size in sizes.items():
        if size is not None and kind == "none":
            raise ValueError(f"{name} is of select dsa: add select=dsa, or leave {name} out")
        if size is not None:
            check_size(name, size)
    if kind == "none":
        return None
    if top_k is None:
        raise ValueError("select dsa needs the number of keys: top_k=64, for example")
    index_dim = head_dim if index_dim is None else index_dim
    if index_dim % 4:
        raise ValueError(f"index_dim must be a multiple of 4 (RoPE turns half), got {index_dim}")
    return Selection(width, top_k, index_heads or n_head, index_dim)


def _read_active(module: nn.Module, incompatible_keys: object) -> None:
    """Follow the buffer after loading (a named function, so that modules can be pickled)."""
    assert isinstance(module, Selection)
    module.set_active()
