"""The inductive-bias probe: how a model extrapolates."""
