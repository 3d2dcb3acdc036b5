"""World models of orbits: a GPT with pluggable attention, its heads and its data."""
