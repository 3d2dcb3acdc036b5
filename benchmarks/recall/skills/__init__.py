"""The problems of MAD, mechanistic architecture design, one skill each."""
