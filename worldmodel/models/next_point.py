"""Heads of next points: a distribution over bins, or a density of each coordinate.

Of all heads x and y are independent given the hidden state, and likelihoods have one scale, so that
trainings with different heads can be compared: nats of the bin that holds the place. A density p
(per AU) gives -ln(p w), with w the width of a bin, so that nats of AU are these plus ln w. A
density may know more than the bin, and its nats may then be negative.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import Literal, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from attention.parts.precision import full_precision
from orbits.tokens import TokenLayout

Predicts = Literal["bins", "mixture", "gaussian"]
COMPONENTS = 8
"""Gaussians in a mixture."""
NARROWEST = 0.01
"""Least standard deviation in bin widths: a likelihood without one has no bound."""
COMMON = 4.0
"""Initial standard deviation that all rows share, in widths of a bin."""
HALVINGS = 50
"""Bisections of a median, after which it is known to the last digits of a float64."""


def next_point_head(predicts: str, width: int, layout: TokenLayout) -> NextPointHead:
    """Return the head of a name of :data:`Predicts`.

    Raises:
        ValueError: There is no such head.
    """
    if predicts == "bins":
        return BinHead(width, layout)
    if predicts == "mixture":
        return DensityHead(width, layout, COMPONENTS)
    if predicts == "gaussian":
        return DensityHead(width, layout, 1, common=True)
    raise ValueError(f"unknown predicts {predicts!r}; choose from bins, mixture, gaussian")


class Row(NamedTuple):
    """A predicted next row.

    Attributes:
        bins: int64 [..., 2].
        place: The place in AU, float64 [..., 2].
    """

    bins: Tensor
    place: Tensor


class NextPointHead(nn.Module, ABC):
    """A distribution of the next row's place; ``output`` is the result of :meth:`forward`.

    Args:
        layout: The protocol's vocabulary.
    """

    exact = False
    """Whether places are finer than bins."""

    def __init__(self, layout: TokenLayout) -> None:
        super().__init__()
        self.layout = layout

    @abstractmethod
    def forward(self, hidden: Tensor) -> Tensor:
        """Map hidden states [B, T, width] to the parameters of both coordinates, [B, T, 2, ...]."""

    @abstractmethod
    def nats(self, output: Tensor, tokens: Tensor, coordinates: Tensor) -> Tensor:
        """Return the negative log-likelihood of each coordinate, [B, T, 2].

        Args:
            output: Output of :meth:`forward` for T rows.
            tokens: Their true bins, int64 [B, T, 2].
            coordinates: Their true places in AU, [B, T, 2].
        """

    def loss(self, output: Tensor, tokens: Tensor, coordinates: Tensor) -> Tensor:
        """Return the mean of :meth:`nats`."""
        return self.nats(output, tokens, coordinates).mean()

    @abstractmethod
    def expected(self, output: Tensor) -> Tensor:
        """Return the mean place in AU, [B, T, 2]."""

    def median(self, output: Tensor) -> Tensor:
        """Return the median of each coordinate in AU, float64 [B, T, 2]."""
        return self.quantile(output, 0.5)

    @abstractmethod
    def quantile(self, output: Tensor, share: float) -> Tensor:
        """Return the place in AU below which a share of each coordinate lies, float64 [B, T, 2]."""

    @abstractmethod
    def likeliest(self, output: Tensor) -> Row:
        """Return the row that a rollout takes."""

    @abstractmethod
    def sample(self, output: Tensor, generator: torch.Generator) -> Row:
        """Return a row drawn from the distribution, x and y independently."""


class BinHead(NextPointHead):
    """Distributions of the next row's x bin and y bin; output: logits [B, T, 2, n_bins]."""

    def __init__(self, width: int, layout: TokenLayout) -> None:
        super().__init__(layout)
        self.n_bins = layout.n_bins
        self.logits = nn.Linear(width, 2 * layout.n_bins)
        nn.init.normal_(self.logits.weight, std=0.02)
        nn.init.zeros_(self.logits.bias)

    def forward(self, hidden: Tensor) -> Tensor:
        """Map [B, T, width] to logits [B, T, 2, n_bins]."""
        return self.logits(hidden).unflatten(-1, (2, self.n_bins))

    def nats(self, output: Tensor, tokens: Tensor, coordinates: Tensor) -> Tensor:
        """Return the negative log-probability of the true bins."""
        return -output.log_softmax(dim=-1).gather(-1, tokens[..., None])[..., 0]

    def loss(self, output: Tensor, tokens: Tensor, coordinates: Tensor) -> Tensor:
        """Return the mean of :meth:`nats`."""
        return functional.cross_entropy(output.flatten(0, 2), tokens.flatten())

    def expected(self, output: Tensor) -> Tensor:
        """Return the mean of the centres."""
        numbers = torch.arange(self.n_bins, device=output.device)
        centres = self.layout.low + (numbers + 0.5) * self.layout.width
        return output.log_softmax(dim=-1).exp() @ centres.to(output.dtype)

    def quantile(self, output: Tensor, share: float) -> Tensor:
        """Return the quantile; within its bin a distribution counts as even."""
        weight = output.softmax(dim=-1).double()
        below = weight.cumsum(dim=-1)
        bin_ = (below < share).sum(dim=-1, keepdim=True).clamp(max=self.n_bins - 1)
        own = weight.gather(-1, bin_)
        part = 1 - (below.gather(-1, bin_) - share) / own
        return (self.layout.low + (bin_ + part) * self.layout.width)[..., 0]

    def likeliest(self, output: Tensor) -> Row:
        """Return the likeliest bins."""
        return self._place(output.argmax(dim=-1))

    def sample(self, output: Tensor, generator: torch.Generator) -> Row:
        """Return bins drawn by their probabilities."""
        weights = output.flatten(0, -2).softmax(dim=-1)
        bins = torch.multinomial(weights, 1, generator=generator)
        return self._place(bins.view(output.shape[:-1]))

    def _place(self, bins: Tensor) -> Row:
        return Row(bins, self.layout.low + (bins.double() + 0.5) * self.layout.width)


class DensityHead(NextPointHead):
    """A mixture of Gaussians for each coordinate (Bishop 1994, mixture density networks).

    Output: log weight, mean in AU and standard deviation in AU of each component,
    [B, T, 2, components, 3].

    Args:
        width: Channels of the backbone.
        layout: The protocol's vocabulary.
        components: Gaussians.
        common: All rows and coordinates share one learned standard deviation. With one Gaussian
            its likelihood is highest where the squared error is least.
    """

    exact = True

    def __init__(
        self, width: int, layout: TokenLayout, components: int, common: bool = False
    ) -> None:
        super().__init__(layout)
        self.components, self.common = components, common
        self.reach = (layout.high - layout.low) / 2
        self.density = nn.Linear(width, 2 * components * (2 if common else 3))
        nn.init.normal_(self.density.weight, std=0.02)
        nn.init.zeros_(self.density.bias)
        # Means start evenly spread over the middle half of the box, as wide as they are apart.
        spread = (torch.arange(components) + 0.5) / components - 0.5
        with torch.no_grad():
            self.density.bias.view(2, components, -1)[..., 1] = spread
        self.start = self.reach / components
        if common:  # one number that each step moves a little: it starts near where it ends
            self.start = COMMON * layout.width
            self.log_sd = nn.Parameter(torch.zeros(()))

    def forward(self, hidden: Tensor) -> Tensor:
        """Map [B, T, width] to [B, T, 2, components, 3], places in full precision."""
        with full_precision(hidden):  # bfloat16 has three digits
            raw = self.density(hidden.to(self.density.weight.dtype))
        raw = raw.unflatten(-1, (2, self.components, -1))
        weights = raw[..., 0].log_softmax(dim=-1)
        means = (self.layout.low + self.layout.high) / 2 + self.reach * raw[..., 1]
        log_sd = self.log_sd.expand_as(means) if self.common else raw[..., 2]
        sd = self.start * log_sd.exp() + NARROWEST * self.layout.width
        return torch.stack([weights, means, sd], dim=-1)

    def nats(self, output: Tensor, tokens: Tensor, coordinates: Tensor) -> Tensor:
        """Return -ln(density x bin width) at the true places."""
        weight, mean, sd = output.unbind(dim=-1)
        z = (coordinates.to(output.dtype)[..., None] - mean) / sd
        log_p = weight - 0.5 * z**2 - sd.log() - 0.5 * math.log(2 * math.pi)
        return -log_p.logsumexp(dim=-1) - math.log(self.layout.width)

    def expected(self, output: Tensor) -> Tensor:
        """Return the mean of the mixture."""
        weight, mean, _ = output.unbind(dim=-1)
        return (weight.exp() * mean).sum(dim=-1)

    def quantile(self, output: Tensor, share: float) -> Tensor:
        """Return the quantile, by bisection between the outermost ones of the components."""
        logit, mean, sd = output.double().unbind(dim=-1)
        weight = logit.softmax(dim=-1)
        places = mean + sd * torch.special.ndtri(torch.tensor(share, dtype=mean.dtype))
        low, high = places.amin(dim=-1), places.amax(dim=-1)
        for _ in range(HALVINGS):
            middle = (low + high) / 2
            below = (weight * torch.special.ndtr((middle[..., None] - mean) / sd)).sum(dim=-1)
            is_low = below < share
            low, high = torch.where(is_low, middle, low), torch.where(is_low, high, middle)
        return (low + high) / 2

    def likeliest(self, output: Tensor) -> Row:
        """Return the medians.

        A mode of a mixture jumps where two components change places; a path of medians is smooth.
        """
        return self._place(self.median(output))

    def sample(self, output: Tensor, generator: torch.Generator) -> Row:
        """Return a place drawn from a component that is drawn by its weight."""
        weight, mean, sd = output.double().unbind(dim=-1)
        shares = weight.softmax(dim=-1).flatten(0, -2)
        chosen = torch.multinomial(shares, 1, generator=generator).view(*weight.shape[:-1], 1)
        noise = torch.empty_like(mean[..., :1]).normal_(generator=generator)
        place = mean.gather(-1, chosen) + sd.gather(-1, chosen) * noise
        return self._place(place[..., 0])

    def _place(self, place: Tensor) -> Row:
        bins = ((place - self.layout.low) * self.layout.bins_per_au).floor()
        return Row(bins.clamp(0, self.layout.n_bins - 1).long(), place)
