"""Results of schema 1 in the present form."""
