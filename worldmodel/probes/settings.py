"""Settings that all probes share; each probe names those that its results depend on."""

from __future__ import annotations

import math
from dataclasses import dataclass

from orbits.runs.choices import check_choice
from orbits.runs.settings import check_at_least, check_not_empty
from orbits.runs.statistics import MINIMUM_SEEDS

LEAST_CELLS = 25
WHITE_NOISE = ("projection", "direction", "random")


@dataclass(frozen=True)
class Settings:
    """Settings of a run of probes.

    Attributes:
        checkpoints: Checkpoint files or folders of exported models, or LABEL:SEED=PATH to name one
            in tables. A model from outside is path/to/file.py:Class or package.module:Class, with
            or without --model in front of it.
        probes: Names of probes, or all: those that can be used on the checkpoints.
        n_sequences: Held-out test sequences.
        seeds: Seeds of whatever a probe trains or draws, one or three and more.
        steps: Fine-tuning steps; none for each probe's own number.
        datasets: White-noise datasets of the inductive-bias probe.
        white_noise: Targets of these datasets. projection is a linear function of the state, as in
            the physics of Vafa et al.: of 50, the one that keeps the order of distances best, with
            little of the masses. direction is any linear function. random is a bit per state, as
            in their discrete worlds, where a state has many sequences; states of orbits do not
            recur, so these bits cannot be extrapolated, and show whether equal states are treated
            alike.
        labels: Labelled training sequences of read-outs and force heads.
        data_seed: Seed of the data.
        law: Force law of the world in which checkpoints are evaluated; none for their own.
            implied_law then asks single steps in all worlds of its prompts, their own among them.
        cells: Cells of like r, m1 and m2 of which implied_law writes the median implied force as
            prediction files, 25 or more: behind single steps, one for each world in which these
            are asked, and of continued paths in the world of the training; as many as points
            writes the points themselves; 0 writes none.
        least_signal: Of the points behind single steps implied_law writes those, too, whose kick
            towards the other body is so many times the model's own standard deviation of a
            coordinate, without medians; 0 writes none.
        draws: Continuations of each prompt that implied_law draws from the predicted distribution,
            beside the likeliest one; 0 draws none.
        scratch: Train the control of the force heads from scratch, which takes as many steps as
            the checkpoint's pre-training and fine-tuning together.
        stop_heads: Stop force heads, the control from scratch too, where they predict best a fifth
            of the labelled sequences, which training does not see.
        shift_file: A YAML file of further shifts (:mod:`orbits.shifts`), in which next_point asks
            too.
    """

    checkpoints: tuple[str, ...] = ()
    probes: tuple[str, ...] = ("all",)
    n_sequences: int = 500
    seeds: tuple[int, ...] = (0, 1, 2)
    steps: int | None = None
    datasets: int = 100
    white_noise: str = "projection"
    labels: int = 1000
    data_seed: int = 0
    law: str | None = None
    cells: int = 0
    least_signal: float = 0.0
    draws: int = 0
    scratch: bool = True
    stop_heads: bool = False
    shift_file: str | None = None

    def __post_init__(self) -> None:
        check_at_least(
            self,
            {"n_sequences": 2, "datasets": 2, "labels": 10, "steps": 1, "cells": 0, "draws": 0},
        )
        check_not_empty(self, "probes")
        if not 0 <= self.least_signal < math.inf:
            raise ValueError(f"least_signal must be 0 or more, got {self.least_signal}")
        if self.least_signal and not self.cells:
            raise ValueError("least_signal chooses points of prediction files; give cells, too")
        if not 0 <= self.data_seed < 2**64:
            raise ValueError(f"data_seed must be in [0, 2^64), got {self.data_seed}")
        if 0 < self.cells < LEAST_CELLS:
            raise ValueError(
                f"cells must be 0 or at least {LEAST_CELLS}, which a leaderboard needs, got "
                f"{self.cells}"
            )
        check_choice("white noise", self.white_noise, WHITE_NOISE)
        if len(set(self.seeds)) != len(self.seeds) or min(self.seeds, default=-1) < 0:
            raise ValueError(f"seeds must be different numbers from 0 on, got {self.seeds}")
        if len(self.seeds) != 1 and len(self.seeds) < MINIMUM_SEEDS:
            raise ValueError(
                f"an interval over seeds needs at least {MINIMUM_SEEDS} seeds, got "
                f"{len(self.seeds)}; give one (no interval is shown) or {MINIMUM_SEEDS}"
            )
