"""The study of what a world model gains by more steps, width and data."""
