"""Studies of symbolic searches."""
