"""Studies of synthetic problems whose answers are known: what a model can recall, copy or infer."""
