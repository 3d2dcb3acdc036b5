"""State-space models: linear systems with few states per channel."""
