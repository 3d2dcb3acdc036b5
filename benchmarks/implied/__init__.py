"""The study of the laws by which world models of several worlds continue orbits of all of them."""
