"""Studies of synthetic problems with known answers: recall, copying and inference."""
