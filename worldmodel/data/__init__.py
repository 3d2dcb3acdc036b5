"""Lightning data modules of orbits, of text and of token files."""
