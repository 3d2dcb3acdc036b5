"""A trainer for the small trainings and predictions inside longer work."""

from __future__ import annotations

from typing import Any

import lightning


def quiet_trainer(steps: int = 1, **settings: Any) -> lightning.Trainer:
    """Return a trainer on one device that validates, prints and writes nothing."""
    return lightning.Trainer(
        devices=1,
        max_steps=steps,
        limit_val_batches=0,
        num_sanity_val_steps=0,
        gradient_clip_val=1.0,
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        deterministic="warn",
        **settings,
    )
