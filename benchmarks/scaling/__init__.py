"""The study of the gains of a world model by more steps, width and data."""
