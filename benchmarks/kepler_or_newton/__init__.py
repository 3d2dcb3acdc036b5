"""When does a world model become Newtonian? Head, noise and context of its training."""
