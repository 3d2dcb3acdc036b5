"""White noise: functions of the state to fit, a model that is fine-tuned on them, and references.

Vafa et al. (2025), section 2, and their code (keyonvafa/inductive-bias-probes at 69d294f).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from scipy.spatial.distance import pdist
from scipy.stats import rankdata
from sklearn.linear_model import LinearRegression, RidgeCV
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.data import DataLoader

from worldmodel.controls.ridge import ALPHAS
from worldmodel.models import optim
from worldmodel.models.orbit import OrbitModel
from worldmodel.probes.bias.histories import Array, Histories
from worldmodel.probes.read_out import Features
from worldmodel.training.trainer import quiet_trainer

LABELS = 2
"""Labelled rows per sequence."""
STEPS = 100
"""Fine-tuning steps, each on all labelled sequences: their batch of 128 is larger than the set."""

FILTERED = 3
"""Time steps that the linear filter looks back at."""

_PROJECTIONS, _RANKED_POINTS = 50, 300
_PREDICT_AT_ONCE = 50


def draw_targets(kind: str, states: Array, rng: np.random.Generator) -> Array:
    """Return one number per state, with mean 0 and variance 1.

    Args:
        kind: ``projection``: a random direction of the state space, of 50 the one whose distances
            rank most like those of the states (Spearman; on 300 points, theirs on 1000).
            ``direction``: any random direction, in which every component has its share.
            ``random``: a random bit, -1 or 1, per state. In the discrete worlds of the paper many
            sequences share a state and its bit; here it says nothing about another state.
        states: Standardised states, [N, K, 6].
        rng: Random generator.

    Returns:
        [N, K].
    """
    if kind == "random":
        return rng.choice([-1.0, 1.0], states.shape[:2])
    points = states.reshape(-1, states.shape[-1])
    if kind == "direction":
        return _standardised(states @ rng.standard_normal(points.shape[-1]))
    some = rng.choice(points, min(_RANKED_POINTS, len(points)), replace=False)
    ranks = rankdata(pdist(some))

    def spearman(direction: Array) -> float:
        return float(np.corrcoef(ranks, rankdata(pdist(some @ direction[:, None])))[0, 1])

    best = max(rng.standard_normal((_PROJECTIONS, points.shape[-1])), key=spearman)
    return _standardised(states @ best)


def _standardised(values: Array) -> Array:
    return (values - values.mean()) / values.std()


def draw_labels(targets: Array, rng: np.random.Generator) -> Array:
    """Return the targets at two random rows of each sequence, NaN elsewhere, [N, K]."""
    n, k = targets.shape
    order = rng.permuted(np.tile(np.arange(k), (n, 1)), axis=1)
    return np.where(order < LABELS, targets, np.nan)


def linear_oracle(states: Array, labels: Array) -> Array:
    """Extrapolate labels by least squares on the true states.

    Args:
        states: States of M >= N sequences, [M, K, 6].
        labels: Labels of the first N, NaN where there is none, [N, K].

    Returns:
        Answers at all states, [M, K].
    """
    inputs, values = _labelled(states, labels)
    fitted = LinearRegression().fit(inputs, values)
    return fitted.predict(states.reshape(-1, states.shape[-1])).reshape(states.shape[:2])


def mlp_oracle(states: Array, labels: Array, seed: int, epochs: int = 1000) -> Array:
    """Extrapolate labels by a ReLU network with two layers of 5; otherwise as the linear oracle.

    Trained with Adam at 0.05 on all labels at once, as published.
    """
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        mlp = nn.Sequential(
            nn.Linear(states.shape[-1], 5), nn.ReLU(), nn.Linear(5, 5), nn.ReLU(), nn.Linear(5, 1)
        )
    optimizer = torch.optim.Adam(mlp.parameters(), lr=0.05)
    inputs, values = (torch.from_numpy(x).float() for x in _labelled(states, labels))
    for _ in range(epochs):
        optimizer.zero_grad()
        functional.mse_loss(mlp(inputs)[:, 0], values).backward()
        optimizer.step()
    with torch.no_grad():
        return mlp(torch.from_numpy(states).float())[..., 0].double().numpy()


def nearest(states: Array, labels: Array) -> Array:
    """Extrapolate labels by those of the two nearest labelled states; as the linear oracle."""
    inputs, values = _labelled(states, labels)
    table = KNeighborsRegressor(2).fit(inputs, values)
    return table.predict(states.reshape(-1, states.shape[-1])).reshape(states.shape[:2])


def linear_filter(systems: Histories, labels: Array) -> Array:
    """Extrapolate labels by ridge regression on the last places of both bodies.

    They are those that a model has seen at the row, of three time steps, the planet's relative to
    the star's last one: no mass, no time step and nothing that is not linear.
    """
    seen = systems.batch["coordinates"].double().numpy()
    planet = seen[:, systems.rows]
    star = np.zeros_like(planet)
    star[:, 1:] = seen[:, systems.rows[1:] - 1]  # the star of a step comes after its planet
    origin = star
    inputs = [planet - origin]
    for lag in range(1, FILTERED):
        for body in (planet, star):
            before = np.zeros_like(body)
            before[:, lag:] = body[:, :-lag] - origin[:, lag:]
            inputs.append(before)
    return _ridge(np.concatenate(inputs, axis=-1), labels)


def hidden_read_out(features: Features, systems: Histories, labels: Array) -> Array:
    """Extrapolate each dataset by ridge regression on the last hidden states of a model.

    Args:
        features: The hidden states of a batch by layer, of which the last are read.
        systems: The M sequences.
        labels: Labels of D datasets at the planet's rows of the first N, NaN elsewhere, [D, N, K].

    Returns:
        Answers at all of these rows, [D, M, K].
    """
    parts = []
    for start in range(0, len(systems.states), _PREDICT_AT_ONCE):
        some = slice(start, start + _PREDICT_AT_ONCE)
        layers = features({name: value[some] for name, value in systems.batch.items()})
        parts.append(list(layers.values())[-1][:, systems.rows].double().numpy())
    states = np.concatenate(parts)
    return np.stack([_ridge(states, each) for each in labels])


def _ridge(inputs: Array, labels: Array) -> Array:
    """Return ridge regression's answers at all rows, [M, K], of inputs [M, K, k]."""
    known, values = _labelled(inputs, labels)
    fitted = make_pipeline(StandardScaler(), RidgeCV(ALPHAS)).fit(known, values)
    return fitted.predict(inputs.reshape(-1, inputs.shape[-1])).reshape(inputs.shape[:2])


def _labelled(states: Array, labels: Array) -> tuple[Array, Array]:
    there = np.isfinite(labels)
    return states[: len(labels)][there], labels[there]


class WhiteNoiseModel(OrbitModel):
    """One number per row: the backbone of a model under a fresh head, all weights trained.

    Optimised as published: AdamW at a constant 6e-4 with betas 0.9 and 0.95, weight decay 0.1 on
    matrices. Their loader casts targets to integers and takes -1 for "no label"; here they are
    what they are.
    """

    def __init__(self, start: OrbitModel, seed: int) -> None:
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            super().__init__(**start.architecture)
            self.head = nn.Linear(self.gpt.width, 1)
            nn.init.normal_(self.head.weight, std=0.02)
            nn.init.zeros_(self.head.bias)
        self.embedding.load_state_dict(start.embedding.state_dict())
        self.gpt.load_state_dict(start.gpt.state_dict())

    def forward(self, batch: dict[str, Tensor]) -> Tensor:
        """Return the output at every row, [B, T]."""
        return self.head(self.hidden(batch))[..., 0]

    def _loss(self, batch: dict[str, Tensor]) -> Tensor:
        """Return the mean squared error at the labelled rows."""
        labelled = batch["target"].isfinite()
        return functional.mse_loss(self(batch)[labelled], batch["target"][labelled])

    def configure_optimizers(self) -> torch.optim.Optimizer:
        """Return the published optimiser."""
        decay = 0.1
        groups = optim.groups(self, list(self.parameters()), decay)
        return torch.optim.AdamW(groups, lr=6e-4, weight_decay=decay, betas=(0.9, 0.95))


def extrapolate(
    model: OrbitModel, systems: Histories, labels: Array, steps: int, seed: int
) -> Array:
    """Fine-tune a model on labels of the first N sequences and return its output on all M.

    Args:
        model: The model to start from; it is left as it is.
        systems: The sequences.
        labels: At the planet's rows, NaN where there is none, [N, K].
        steps: Fine-tuning steps.
        seed: Seed of the fresh head.

    Returns:
        The output at the planet's rows, [M, K].
    """
    n, length = systems.n_systems, systems.batch["tokens"].shape[1]
    target = torch.full((n, length), torch.nan)
    target[:, systems.rows] = torch.from_numpy(labels).float()
    training = {**{name: value[:n] for name, value in systems.batch.items()}, "target": target}
    tuned = WhiteNoiseModel(model, seed)
    trainer = quiet_trainer(steps)
    trainer.fit(tuned, train_dataloaders=_batches([training] * steps))
    pieces = [
        {name: value[start : start + _PREDICT_AT_ONCE] for name, value in systems.batch.items()}
        for start in range(0, len(systems.states), _PREDICT_AT_ONCE)
    ]
    outputs: Any = trainer.predict(tuned, dataloaders=_batches(pieces))
    return torch.cat(outputs)[:, systems.rows].double().numpy()


def _batches(batches: list[dict[str, Tensor]]) -> DataLoader:
    return DataLoader(batches, batch_size=None)  # type: ignore[arg-type]
