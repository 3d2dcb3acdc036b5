"""Sizes of the benchmark: how large the models are and how long they train."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

UNLIMITED = "unlimited"


@dataclass(frozen=True)
class Preset:
    """One size.

    Attributes:
        name: The name on the command line.
        about: What it is for and what it costs.
        n_layer: Blocks of the backbone.
        n_head: Heads per block.
        head_dim: Channels per head.
        batch_size: Sequences per step.
        pretrain_steps: Steps of next-token prediction.
        finetune_steps: Steps on labelled sequences. The scratch arm takes the sum of both.
        lr: Learning rate of pre-training and of the scratch arm.
        finetune_lr: Learning rate of fine-tuning.
        n_test: Held-out test sequences.
        labels: Label budgets: numbers of labelled sequences, or ``unlimited``.
        seeds: Model seeds.
        attentions: Attention variants.
        engines: Symbolic-regression engines.
        law_seeds: Symbolic searches per row, each with its own subset and engine seed.
        protocol_args: Overrides of each protocol.
    """

    name: str
    about: str
    n_layer: int
    n_head: int
    head_dim: int
    batch_size: int
    pretrain_steps: int
    finetune_steps: int
    n_test: int
    lr: float = 6e-3
    finetune_lr: float = 3e-3
    labels: tuple[int | str, ...] = (300, UNLIMITED)
    seeds: tuple[int, ...] = (0,)
    attentions: tuple[str, ...] = ("softmax", "lssar")
    engines: tuple[str, ...] = ("operon", "operon_vafa")
    law_seeds: int = 3
    protocol_args: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)


_PRESETS = (
    Preset(
        name="tiny",
        about="smoke test, about a minute of CPU; no claims",
        n_layer=2,
        n_head=2,
        head_dim=16,
        batch_size=32,
        pretrain_steps=60,
        finetune_steps=40,
        n_test=100,
        labels=(UNLIMITED,),
        engines=("operon",),
        law_seeds=1,
        protocol_args={
            "identifiable": {"n_bins": 128},
            "paper": {"n_points": 64, "n_bins": 1000},
        },
    ),
    Preset(
        name="small",
        about="two CPU cores, minutes: the demo and its label-efficiency curve",
        n_layer=2,
        n_head=2,
        head_dim=32,
        batch_size=64,
        pretrain_steps=750,
        finetune_steps=1050,
        n_test=1000,
        protocol_args={"paper": {"n_points": 128}},
    ),
    Preset(
        name="gpu",
        about="one H200, about ten minutes per seed; not measured yet",
        n_layer=6,
        n_head=6,
        head_dim=64,
        batch_size=256,
        pretrain_steps=5_000,
        finetune_steps=5_000,
        n_test=2000,
        lr=3e-3,
        finetune_lr=1e-3,
        labels=(100, 300, 1000, 4000, UNLIMITED),
        seeds=(0, 1, 2),
        law_seeds=10,
        protocol_args={
            "identifiable": {"n_points": 256, "n_bins": 1024},
            "paper": {"n_points": 499},
        },
    ),
    Preset(
        name="paper",
        about="the published size (109M parameters), one device a cell; not run yet",
        n_layer=12,
        n_head=12,
        head_dim=64,
        batch_size=64,
        pretrain_steps=600_000,
        finetune_steps=10_000,
        n_test=1000,
        lr=6e-4,
        finetune_lr=2e-4,
        labels=(9000,),
        seeds=(0, 1, 2),
        law_seeds=10,
    ),
)


def names() -> tuple[str, ...]:
    """Return the names of all presets."""
    return tuple(preset.name for preset in _PRESETS)


def get(name: str) -> Preset:
    """Return the preset called ``name``.

    Raises:
        ValueError: There is no such preset; the message lists the choices.
    """
    for preset in _PRESETS:
        if preset.name == name:
            return preset
    raise ValueError(f"unknown preset {name!r}; choose from {', '.join(names())}")
