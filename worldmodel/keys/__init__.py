"""Keys of the command line: their names, their values and help on them, without torch."""
