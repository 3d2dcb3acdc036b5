"""Studies of language models: extrapolation, attention sinks, ablations, downstream tasks."""
