"""Symbolic search, the part common to all engines: targets, arguments, fronts, state of Julia."""
