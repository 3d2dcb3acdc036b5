"""Keys of the command line: what there is, what it takes, and help on it, without torch."""
