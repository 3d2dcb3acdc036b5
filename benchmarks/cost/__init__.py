"""Studies of time and memory: kernels, training steps, the generator and searches."""
