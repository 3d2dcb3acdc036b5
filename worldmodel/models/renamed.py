"""Class paths that configurations and checkpoints of earlier versions hold."""

from __future__ import annotations

from typing import Any

RENAMED = {
    "worldmodel.tasks.NextTokenTask": "worldmodel.models.orbit.NextTokenModel",
    "worldmodel.tasks.ForceTask": "worldmodel.models.orbit.ForceModel",
    "worldmodel.state_task.StateTask": "worldmodel.models.state.StateModel",
    "worldmodel.text_task.TextTask": "worldmodel.models.text.TextModel",
    "worldmodel.data.OrbitData": "worldmodel.data.orbits.OrbitData",
    "worldmodel.text.TextData": "worldmodel.data.text.TextData",
    "worldmodel.shard_data.ShardData": "worldmodel.data.shards.ShardData",
    "worldmodel.callbacks.PredictionWriter": "worldmodel.training.callbacks.PredictionWriter",
    "worldmodel.callbacks.SaveLastStep": "worldmodel.training.callbacks.SaveLastStep",
    "worldmodel.callbacks.SharpenWhen": "worldmodel.training.callbacks.SharpenWhen",
    "worldmodel.callbacks.SharpenAfter": "worldmodel.training.callbacks.SharpenAfter",
    "worldmodel.stopping.StopBetweenSteps": "worldmodel.training.stopping.StopBetweenSteps",
    "worldmodel.checkpoint.AtomicCheckpoints": "worldmodel.training.checkpoints.AtomicCheckpoints",
}
"""Today's path of each class that was renamed. Paths are compared as strings, never imported."""


def renamed(value: Any) -> Any:
    """Return plain data with today's path in place of each earlier one."""
    if isinstance(value, dict):
        return {key: renamed(item) for key, item in value.items()}
    if isinstance(value, list):
        return [renamed(item) for item in value]
    return RENAMED.get(value, value) if isinstance(value, str) else value
