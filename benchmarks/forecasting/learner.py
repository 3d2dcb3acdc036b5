"""The learner of forecasts: windows of a series, and a model of what follows."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from benchmarks.forecasting import networks, series
from benchmarks.learners import Learner
from worldmodel.data.sequences import SequenceData, Sequences
from worldmodel.models import optim
from worldmodel.models.checkpoint import read_checkpoint
from worldmodel.models.trained import TrainedModel


class Windows(Sequences):
    """Windows of a part of a series."""

    def __init__(
        self, of: series.Series, starts: Sequence[int], lookback: int, horizon: int
    ) -> None:
        super().__init__(len(starts))
        self.starts = np.asarray(starts, np.int64)
        self.lookback, self.span = lookback, lookback + horizon
        self.past = torch.from_numpy(of.filled).float()
        self.future = torch.from_numpy(of.values).float()

    def __getitems__(self, indices: list[int]) -> dict[str, Tensor]:
        """Return ``past`` [B, L, C] without gaps and ``future`` [B, H, C] with NaN in them."""
        starts = self.starts[indices]
        past = torch.stack([self.past[i : i + self.lookback] for i in starts])
        future = torch.stack([self.future[i + self.lookback : i + self.span] for i in starts])
        return {"past": past, "future": future}


class ForecastData(SequenceData):
    """Windows of a series in its three parts.

    Args:
        name: Name or path of the series.
        lookback: Steps that a model reads.
        horizon: Steps that it forecasts.
        gaps: Missing values, see :func:`benchmarks.forecasting.series.load`.
        drop: Columns left out, see the same function.
        file: The series' file; None for one that needs none.
        **kwargs: As for :class:`worldmodel.data.sequences.SequenceData`.
    """

    def __init__(
        self,
        name: str,
        lookback: int,
        horizon: int,
        gaps: str = "refuse",
        drop: Sequence[str] = (),
        file: str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.series = series.load(name, file, gaps, drop)
        self.lookback, self.horizon = lookback, horizon
        for split in ("train", "val", "test"):
            if not len(self.series.windows(split, lookback, horizon)):
                raise ValueError(
                    f"the {split} part of {name} holds no window of {lookback} + {horizon} steps; "
                    "take a smaller --lookback or --horizons"
                )
        self.n_train = len(self.series.windows("train", lookback, horizon))

    def sequences(self, split: str, length: int) -> Windows:
        """Return windows of a part: all, or so many that are spread over it."""
        starts = self.series.windows(split, self.lookback, self.horizon)
        if length < len(starts):
            starts = starts[np.linspace(0, len(starts) - 1, length).round().astype(np.int64)]
        return Windows(self.series, starts.tolist(), self.lookback, self.horizon)


class ForecastModel(TrainedModel):
    """Forecast a horizon by the least squared error.

    Args:
        lookback: Steps that it reads.
        horizon: Steps that it forecasts.
        kind: One of :data:`benchmarks.forecasting.forecasting.PEERS`, or ``mixer``.
        attention: The attention or mixer of a ``mixer``.
        attention_args: Arguments of the attention.
        patch: Steps of a piece of the look-back, which a ``mixer`` takes for a token.
        n_layer: Blocks.
        n_head: Heads per block.
        head_dim: Channels per head.
        dropout: Dropout of PatchTST and iTransformer.
        causal: Whether pieces of a ``mixer`` see earlier ones alone; False for an encoder.
        optimizer: Optimiser, see :class:`worldmodel.models.base.GPTModel`.
        lr: Learning rate, see there.
        weight_decay: Weight decay, see there.
        warmup_steps: Steps of warm-up, see there.
        min_lr_ratio: Final share of the learning rate, see there.
    """

    def __init__(
        self,
        lookback: int,
        horizon: int,
        kind: str = "mixer",
        attention: str = "softmax",
        attention_args: dict[str, Any] | None = None,
        patch: int = 8,
        n_layer: int = 2,
        n_head: int = 2,
        head_dim: int = 32,
        dropout: float = 0.0,
        causal: bool = True,
        optimizer: str = "adamw",
        lr: float = 1e-3,
        weight_decay: float = 0.0,
        warmup_steps: int = 50,
        min_lr_ratio: float = 0.0,
    ) -> None:
        super().__init__()
        self.save_hyperparameters()
        optim.check(optimizer)
        width = n_head * head_dim
        self.network: nn.Module
        if kind == "mixer":
            self.network = networks.MixerForecast(
                horizon, patch, attention, attention_args, n_layer, n_head, head_dim, causal
            )
        elif kind == "dlinear":
            self.network = networks.DLinear(lookback, horizon)
        else:
            peers = {"patchtst": networks.PatchTST, "itransformer": networks.ITransformer}
            self.network = peers[kind](lookback, horizon, width, n_head, n_layer, dropout)

    def forward(self, batch: dict[str, Tensor]) -> Tensor:
        """Return the forecast [B, H, C] of ``past`` [B, L, C]."""
        forecast: Tensor = self.network(batch["past"])
        return forecast

    def validation_step(self, batch: dict[str, Tensor], batch_idx: int) -> None:
        """Log ``val_loss``."""
        self.log_mean("val_loss", self._loss(batch), len(batch["past"]), prog_bar=True)

    def _loss(self, batch: dict[str, Tensor]) -> Tensor:
        """Return the mean squared error of the values that were measured."""
        measured = batch["future"].isfinite()
        # A window in a gap asks for nothing.
        error = (self(batch) - batch["future"].nan_to_num()).square() * measured
        return error.sum() / measured.sum().clamp_min(1)


def forecast_model(data: Mapping[str, Any], **model: Any) -> ForecastModel:
    """Return a model of the data's look-back and horizon."""
    return ForecastModel(lookback=data["lookback"], horizon=data["horizon"], **model)


def load_forecast(path: Path) -> ForecastModel:
    """Return the model of a cell's checkpoint."""
    checkpoint = read_checkpoint(path)
    # Not :func:`worldmodel.models.restored.restored`: its check counts the blocks of a GPT.
    known = inspect.signature(ForecastModel).parameters
    settings = {name: x for name, x in checkpoint["hyper_parameters"].items() if name in known}
    model = ForecastModel(**settings)
    model.load_state_dict(checkpoint["state_dict"])
    return model


LEARNER = Learner(forecast_model, ForecastData, load_forecast)
